//! What the names in certificates, and in requests for them, say: read as Go reads them, whatever type of
//! string they are.
//!
//! In: an attribute of a name. Out: its text. A text that Go would read and we would not is one that the
//! check of a name passes over while the name counts elsewhere. Never: decides what a name is good for.
//!
//! Source: Go 1.26 `encoding/asn1/asn1.go` (requests) and `crypto/x509/parser.go` (certificates), which decode strings alike.

use x509_parser::asn1_rs::{Any, Class, Tag};
use x509_parser::oid_registry::Oid;
use x509_parser::x509::X509Name;

/// Why an attribute has no text, in Go's words.
pub type Error = &'static str;

/// The attributes of a name in order, with their texts.
pub fn attributes<'n>(
    name: &'n X509Name<'_>,
) -> impl Iterator<Item = (&'n Oid<'n>, Result<Option<String>, Error>)> {
    name.iter_attributes().map(|attribute| (attribute.attr_type(), text(attribute.attr_value())))
}

/// The text of a value. `None`: it is no string, or of a type that Go does not read: in a request it counts
/// as not there, and a certificate that has it is none.
///
/// # Errors
/// It has what its type does not allow.
pub fn text(value: &Any<'_>) -> Result<Option<String>, Error> {
    if value.class() != Class::Universal || value.header.constructed() {
        return Ok(None);
    }
    let bytes = value.data;
    let of = |is_allowed: fn(u8) -> bool, fault: Error| {
        // What is allowed is ASCII.
        if bytes.iter().copied().all(is_allowed) {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        } else {
            Err(fault)
        }
    };
    match value.tag() {
        Tag::PrintableString => {
            of(is_printable, "asn1: syntax error: PrintableString contains invalid character")
        }
        Tag::NumericString => of(
            |byte| byte.is_ascii_digit() || byte == b' ',
            "asn1: syntax error: NumericString contains invalid character",
        ),
        Tag::Ia5String => {
            of(|byte| byte.is_ascii(), "asn1: syntax error: IA5String contains invalid character")
        }
        Tag::Utf8String => {
            std::str::from_utf8(bytes).map(str::to_string).map_err(|_| "asn1: invalid UTF-8 string")
        }
        // As if it were Latin-1.
        Tag::TeletexString => Ok(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString => two_byte(bytes),
        _ => return Ok(None),
    }
    .map(Some)
}

/// With `*` and `&`, which are not allowed and yet there.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}

/// UCS-2, without the zero that some end it with.
fn two_byte(bytes: &[u8]) -> Result<String, Error> {
    const FAULT: Error = "invalid BMPString";
    let (pairs, []) = bytes.as_chunks::<2>() else { return Err(FAULT) };
    let pairs = pairs.strip_suffix(&[[0, 0]]).unwrap_or(pairs);
    let letter = |pair: &[u8; 2]| {
        let point = u16::from_be_bytes(*pair);
        let is_no_character = point >= 0xfffe || (0xfdd0..=0xfdef).contains(&point);
        char::from_u32(point.into()).filter(|_| !is_no_character).ok_or(FAULT)
    };
    pairs.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tag: Tag, bytes: &[u8], want: Result<Option<&str>, Error>) {
        let got = text(&Any::from_tag_and_data(tag, bytes));
        assert_eq!(got.as_ref().map(Option::as_deref), want.as_ref().copied(), "{tag:?} {bytes:?}");
    }

    #[test]
    fn every_string_that_go_reads_is_read_as_go_reads_it() {
        const MASTERS: &[u8] = b"system:masters";
        for tag in [Tag::PrintableString, Tag::Ia5String, Tag::Utf8String, Tag::TeletexString] {
            check(tag, MASTERS, Ok(Some("system:masters")));
            check(tag, b"", Ok(Some("")));
        }
        check(Tag::NumericString, b"1 2", Ok(Some("1 2")));
        check(Tag::NumericString, b"a", Err("asn1: syntax error: NumericString contains invalid character"));
        check(Tag::PrintableString, b"*&", Ok(Some("*&")));
        check(
            Tag::PrintableString,
            b"a@b",
            Err("asn1: syntax error: PrintableString contains invalid character"),
        );
        check(Tag::Ia5String, b"a@b", Ok(Some("a@b")));
        check(Tag::Ia5String, b"\xfc", Err("asn1: syntax error: IA5String contains invalid character"));
        check(Tag::Utf8String, "jürgen".as_bytes(), Ok(Some("jürgen")));
        check(Tag::Utf8String, b"j\xfcrgen", Err("asn1: invalid UTF-8 string"));
        check(Tag::TeletexString, b"j\xfcrgen", Ok(Some("jürgen")));
        check(Tag::BmpString, b"\0j\0\xfc\x20\xac", Ok(Some("jü€")));
        check(Tag::BmpString, b"\0j\0\0", Ok(Some("j")));
        check(Tag::BmpString, b"\0j\0\0\0\0", Ok(Some("j\0")));
        for bad in [&b"\0"[..], b"\xd8\x00\xdc\x00", b"\xff\xff", b"\xff\xfe", b"\xfd\xd0"] {
            check(Tag::BmpString, bad, Err("invalid BMPString"));
        }
    }

    #[test]
    fn what_go_does_not_read_has_no_text() {
        for tag in [Tag::GeneralString, Tag::UniversalString, Tag::VisibleString, Tag::OctetString] {
            check(tag, b"system:masters", Ok(None));
        }
        let own = Any::from_tag_and_data(Tag::Utf8String, b"system:masters");
        assert_eq!(text(&own.clone().with_class(Class::ContextSpecific)), Ok(None));
        let parts = Any { header: own.header.clone().with_constructed(true), ..own };
        assert_eq!(text(&parts), Ok(None));
    }
}
