//! The wire format of protobuf, as far as the messages of our services use it.
//!
//! In and out: bytes. Out of a message that is read: its fields one after another, their contents shared with
//! it and not copied. Never: knows a message.

use bytes::{Buf, Bytes};
use forebay_apimachinery::varint;

/// A message that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message cannot be read")]
pub struct Malformed;

/// The fields of a message that are still to be read.
pub struct Fields(Bytes);

/// What stands in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldContent {
    Number(u64),
    /// A string, bytes or another message.
    Bytes(Bytes),
    /// Of a wire type that no message of ours has.
    Other,
}

impl Fields {
    pub fn of(message: Bytes) -> Fields {
        Fields(message)
    }

    /// The next field's number and content; `None` at the end.
    ///
    /// # Errors
    /// When the message breaks off or has no such wire type.
    pub fn next_field(&mut self) -> Result<Option<(u64, FieldContent)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let content = match tag & 7 {
            0 => FieldContent::Number(self.varint()?),
            1 => self.skip(8)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                if length > self.0.len() {
                    return Err(Malformed);
                }
                FieldContent::Bytes(self.0.split_to(length))
            }
            5 => self.skip(4)?,
            _ => return Err(Malformed),
        };
        Ok(Some((tag >> 3, content)))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut rest = &self.0[..];
        let value = varint::read(&mut rest).map_err(|_| Malformed)?;
        self.0.advance(self.0.len() - rest.len());
        Ok(value)
    }

    fn skip(&mut self, bytes: usize) -> Result<FieldContent, Malformed> {
        if bytes > self.0.len() {
            return Err(Malformed);
        }
        self.0.advance(bytes);
        Ok(FieldContent::Other)
    }
}

impl FieldContent {
    /// The number, or 0 where something else stands.
    pub fn number(&self) -> u64 {
        if let FieldContent::Number(number) = self { *number } else { 0 }
    }

    pub fn is_true(&self) -> bool {
        self.number() != 0
    }

    /// The bytes, or none where something else stands.
    pub fn bytes(self) -> Bytes {
        if let FieldContent::Bytes(bytes) = self { bytes } else { Bytes::new() }
    }

    pub fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

/// A message that is being written. A field that has its zero value is left out, as proto3 has it.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    #[must_use]
    pub fn number(mut self, field: u64, value: u64) -> Message {
        if value != 0 {
            varint::write(field << 3, &mut self.0);
            varint::write(value, &mut self.0);
        }
        self
    }

    #[must_use]
    pub fn flag(self, field: u64, value: bool) -> Message {
        self.number(field, u64::from(value))
    }

    #[must_use]
    pub fn bytes(self, field: u64, value: &[u8]) -> Message {
        if value.is_empty() { self } else { self.delimited(field, value) }
    }

    /// A message within this one, which is there also when it is empty.
    #[must_use]
    pub fn message(self, field: u64, value: Message) -> Message {
        self.delimited(field, &value.0)
    }

    /// A number in a oneof: there also when it is 0.
    #[must_use]
    pub fn choice(mut self, field: u64, value: u64) -> Message {
        varint::write(field << 3, &mut self.0);
        varint::write(value, &mut self.0);
        self
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn delimited(mut self, field: u64, value: &[u8]) -> Message {
        varint::write(field << 3 | 2, &mut self.0);
        varint::write(value.len() as u64, &mut self.0);
        self.0.extend_from_slice(value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let inner = Message::default().bytes(1, b"key").number(3, u64::MAX);
        let message = Message::default().number(1, 300).flag(2, false).message(3, inner).choice(4, 0);
        let mut fields = Fields::of(Bytes::from(message.finish()));
        assert_eq!(fields.next_field(), Ok(Some((1, FieldContent::Number(300)))));
        let Ok(Some((3, FieldContent::Bytes(inner)))) = fields.next_field() else { panic!("a message") };
        assert_eq!(fields.next_field(), Ok(Some((4, FieldContent::Number(0)))));
        assert_eq!(fields.next_field(), Ok(None));
        let mut fields = Fields::of(inner);
        assert_eq!(fields.next_field(), Ok(Some((1, FieldContent::Bytes(Bytes::from_static(b"key"))))));
        assert_eq!(fields.next_field(), Ok(Some((3, FieldContent::Number(u64::MAX)))));
    }

    #[test]
    fn what_breaks_off_is_malformed_and_what_is_unknown_is_passed_over() {
        for broken in [&[0x0a, 5, 1][..], &[0x80], &[0x0b], &[0x09, 1], &[0x0d, 1, 2, 3], &[0xff; 11]] {
            assert_eq!(Fields::of(Bytes::copy_from_slice(broken)).next_field(), Err(Malformed), "{broken:?}");
        }
        let mut fields = Fields::of(Bytes::from_static(&[0x0d, 1, 2, 3, 4, 0x08, 1]));
        assert_eq!(fields.next_field(), Ok(Some((1, FieldContent::Other))));
        assert_eq!(fields.next_field(), Ok(Some((1, FieldContent::Number(1)))));
    }
}
