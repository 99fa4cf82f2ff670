//! Whole numbers of as many bytes as they need, seven bits in each, lowest first: protobuf's varints, and
//! HPACK's.
//!
//! In: a number, or bytes with one in front. Out: its bytes, or the number and the bytes behind it. Never:
//! what it means.

/// There is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VarintError {
    /// More has to come: a byte said so, and there is none.
    #[error("unexpected end of a number")]
    UnexpectedEof,
    #[error("number of more than 64 bits")]
    Overflow,
}

/// The byte that has the last bit of the longest one, and nothing else.
const LAST: usize = 9;

/// Appends `value`.
#[inline]
pub fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes `value` takes.
#[inline]
pub fn len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Takes a number off the front of `bytes`, which stays as it is when there is none.
///
/// # Errors
/// When it breaks off, or has more than 64 bits.
#[inline]
pub fn read(bytes: &mut &[u8]) -> Result<u64, VarintError> {
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if at == LAST && byte > 1 {
            return Err(VarintError::Overflow);
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Ok(value);
        }
    }
    Err(VarintError::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_has_that_length() {
        for (value, bytes) in [
            (0, &[0][..]),
            (0x7f, &[0x7f]),
            (0x80, &[0x80, 1]),
            (300, &[0xac, 2]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(len(value), bytes.len());
            out.push(7);
            let mut rest = out.as_slice();
            assert_eq!((read(&mut rest), rest), (Ok(value), &[7][..]));
        }
    }

    #[test]
    fn what_breaks_off_or_does_not_end_is_no_number() {
        for (bytes, error) in [
            (&[][..], VarintError::UnexpectedEof),
            (&[0x80], VarintError::UnexpectedEof),
            (&[0xff; 9], VarintError::UnexpectedEof),
            (&[0xff; 10], VarintError::Overflow),
            (&[0xff; 11], VarintError::Overflow),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02], VarintError::Overflow),
        ] {
            let mut rest = bytes;
            assert_eq!((read(&mut rest), rest), (Err(error), bytes));
        }
    }
}
