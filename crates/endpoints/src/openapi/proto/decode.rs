//! Reads protobuf back, for tests.

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
    let mut out = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a byte more");
        *bytes = rest;
        out |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    out
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
