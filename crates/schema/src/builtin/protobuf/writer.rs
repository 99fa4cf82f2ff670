//! Writes protobuf's wire format.
//!
//! In: field numbers and values. Out: bytes appended to a buffer. Never: what the fields mean.

use forebay_apimachinery::varint;

use super::reader::{BYTES, FIXED64, VARINT};

/// Where the content of an open message starts.
#[must_use]
pub(super) struct Open(usize);

#[inline]
fn tag(number: u16, wire: u8, out: &mut Vec<u8>) {
    varint::write(u64::from(number) << 3 | u64::from(wire), out);
}

#[inline]
pub(super) fn varint_field(number: u16, value: u64, out: &mut Vec<u8>) {
    tag(number, VARINT, out);
    varint::write(value, out);
}

pub(super) fn double_field(number: u16, value: f64, out: &mut Vec<u8>) {
    tag(number, FIXED64, out);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

#[inline]
pub(super) fn bytes_field(number: u16, bytes: &[u8], out: &mut Vec<u8>) {
    tag(number, BYTES, out);
    varint::write(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// What stands before the bytes of a field.
pub(super) fn bytes_head(number: u16, len: usize, out: &mut Vec<u8>) {
    tag(number, BYTES, out);
    varint::write(len as u64, out);
}

/// What a field of so many bytes takes, its head counted in.
pub(super) fn bytes_field_len(number: u16, len: usize) -> usize {
    varint::len(u64::from(number) << 3) + varint::len(len as u64) + len
}

/// Begins a field of a length that is not known yet.
pub(super) fn open(number: u16, out: &mut Vec<u8>) -> Open {
    tag(number, BYTES, out);
    out.push(0);
    Open(out.len())
}

/// Ends it. A length of more than one byte costs a move of the content.
pub(super) fn close(open: Open, out: &mut Vec<u8>) {
    let (start, end) = (open.0, out.len());
    let len = end - start;
    if len < 0x80 {
        out[start - 1] = len as u8;
        return;
    }
    varint::write(len as u64, out);
    let more = out.len() - end - 1; // bytes of the length besides the one that is kept for it
    let mut digits = [0; 10];
    digits[..=more].copy_from_slice(&out[end..]);
    out.truncate(end + more);
    out.copy_within(start..end, start + more);
    out[start - 1..start + more].copy_from_slice(&digits[..=more]);
}
