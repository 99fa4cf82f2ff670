//! The few elements of DER that a certificate is written with.
//!
//! In: content. Out: an element, its length in front. Never: reads any.

pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OID: u8 = 0x06;
pub const UTF8_STRING: u8 = 0x0c;
pub const PRINTABLE_STRING: u8 = 0x13;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
/// `TRUE`, whole.
pub const TRUE: [u8; 3] = [0x01, 0x01, 0xff];

/// An element.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        short @ 0..0x80 => out.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let said = &bytes[(long.leading_zeros() / 8) as usize..];
            out.push(0x80 | said.len() as u8);
            out.extend(said);
        }
    }
    out.extend(content);
    out
}

/// A sequence of elements.
pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A number that is not negative.
pub fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len().saturating_sub(1));
    let mut content = bytes[first..].to_vec();
    if content.first().is_none_or(|byte| *byte >= 0x80) {
        content.insert(0, 0);
    }
    element(INTEGER, &content)
}

/// Named bits, the first the highest of the first byte, without zeros at the end.
pub fn named_bits(bits: u16) -> Vec<u8> {
    let unused = bits.trailing_zeros().min(15);
    let bytes = bits.to_be_bytes();
    let kept = if unused >= 8 { &bytes[..1] } else { &bytes[..] };
    element(BIT_STRING, &[&[(unused % 8) as u8][..], kept].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_as_openssl_writes_them() {
        assert_eq!(element(SEQUENCE, &[]), [0x30, 0]);
        assert_eq!(element(OCTET_STRING, &[7; 0x7f])[..2], [0x04, 0x7f]);
        assert_eq!(element(OCTET_STRING, &[7; 0x80])[..3], [0x04, 0x81, 0x80]);
        assert_eq!(element(OCTET_STRING, &[7; 0x1234])[..4], [0x04, 0x82, 0x12, 0x34]);
        assert_eq!(unsigned(&[0, 0, 0x7f]), [0x02, 1, 0x7f]);
        assert_eq!(unsigned(&[0x80]), [0x02, 2, 0, 0x80]);
        assert_eq!(unsigned(&[0]), [0x02, 1, 0]);
        // Digital signature; that with key encipherment; decipher only.
        assert_eq!(named_bits(0x8000), [0x03, 2, 7, 0x80]);
        assert_eq!(named_bits(0xa000), [0x03, 2, 5, 0xa0]);
        assert_eq!(named_bits(0x0080), [0x03, 3, 7, 0x00, 0x80]);
    }
}
