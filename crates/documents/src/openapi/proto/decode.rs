//! Reads protobuf back, for tests.

use forebay_apimachinery::varint;

/// A field: its number and its content; numbers as their eight bytes.
pub type Field<'b> = (u32, &'b [u8]);

/// The fields of a message, in order.
pub fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let len = match key & 7 {
            0 => {
                let before = bytes;
                varint(&mut bytes);
                out.push(((key >> 3) as u32, &before[..before.len() - bytes.len()]));
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            other => panic!("wire type {other}"),
        };
        let (content, rest) = bytes.split_at(len);
        out.push(((key >> 3) as u32, content));
        bytes = rest;
    }
    out
}

fn varint(bytes: &mut &[u8]) -> u64 {
    varint::read(bytes).expect("a number")
}

pub fn find<'b>(message: &[Field<'b>], field: u32) -> Option<&'b [u8]> {
    message.iter().find(|(number, _)| *number == field).map(|(_, content)| *content)
}

pub fn find_all<'b>(message: &[Field<'b>], field: u32) -> Vec<&'b [u8]> {
    message.iter().filter(|(number, _)| *number == field).map(|(_, content)| *content).collect()
}

pub fn text<'b>(message: &[Field<'b>], field: u32) -> &'b str {
    std::str::from_utf8(find(message, field).unwrap_or_default()).expect("UTF-8")
}
