//! A protobuf message being written.
//!
//! In: fields, in any order. Out: bytes. What says nothing is left out, as proto3 has it.

use forebay_apimachinery::varint;

/// One message.
#[derive(Default)]
pub struct MessageWriter(Vec<u8>);

impl MessageWriter {
    /// A message with one message in it.
    pub fn of(field: u32, inner: MessageWriter) -> MessageWriter {
        let mut out = MessageWriter::default();
        out.message(field, inner);
        out
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.always_text(field, text);
        }
    }

    /// An element of a list, or one of several: there although it is empty.
    pub fn always_text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub fn message(&mut self, field: u32, inner: MessageWriter) {
        self.bytes(field, &inner.0);
    }

    pub fn flag(&mut self, field: u32, on: bool) {
        if on {
            self.always_flag(field, on);
        }
    }

    /// One of several: there although it is false.
    pub fn always_flag(&mut self, field: u32, on: bool) {
        self.tag(field, 0);
        varint::write(u64::from(on), &mut self.0);
    }

    pub fn int(&mut self, field: u32, int: i64) {
        if int != 0 {
            self.tag(field, 0);
            varint::write(int.cast_unsigned(), &mut self.0);
        }
    }

    pub fn double(&mut self, field: u32, double: f64) {
        if double != 0.0 {
            self.tag(field, 1);
            self.0.extend_from_slice(&double.to_le_bytes());
        }
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        varint::write(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        varint::write(u64::from(field << 3 | wire_type), &mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_protobuf_has_them() {
        fn check(write: impl FnOnce(&mut MessageWriter), want: &[u8]) {
            let mut message = MessageWriter::default();
            write(&mut message);
            assert_eq!(message.0, want);
        }
        check(|m| m.text(1, "ab"), &[0x0a, 2, b'a', b'b']);
        check(|m| m.text(1, ""), &[]);
        check(|m| m.always_text(1, ""), &[0x0a, 0]);
        check(|m| m.flag(31, true), &[0xf8, 0x01, 1]);
        check(|m| m.flag(1, false), &[]);
        check(|m| m.always_flag(2, false), &[0x10, 0]);
        check(|m| m.int(11, 300), &[0x58, 0xac, 0x02]);
        check(|m| m.int(1, -1), &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        check(|m| m.double(7, 1.5), &[0x39, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
        check(|m| m.message(3, MessageWriter::default()), &[0x1a, 0]);
        let mut long = vec![0x0a, 0xc8, 0x01];
        long.extend([b'x'; 200]);
        check(|m| m.text(1, &"x".repeat(200)), &long);
    }
}
