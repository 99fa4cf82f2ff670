//! What a JSON string says.
//!
//! In: bytes between quotes. Out: the text without its escapes, as Go reads it: a lone surrogate is U+FFFD.
//! Never: builds anything for a string that nobody asks for.

use std::borrow::Cow;

use memchr::memchr;

use super::error::{WireError, garbled};

/// What stands between the quotes of a string, without escapes.
pub(super) fn unescape(inner: &[u8]) -> Result<Cow<'_, [u8]>, WireError> {
    if memchr(b'\\', inner).is_none() {
        return Ok(Cow::Borrowed(inner));
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(hit) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..hit]);
        rest = &rest[hit + 1..];
        let Some((&byte, behind)) = rest.split_first() else { return garbled("half an escape") };
        rest = behind;
        match byte {
            b'"' | b'\\' | b'/' => out.push(byte),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => out.extend_from_slice(unicode(&mut rest)?.encode_utf8(&mut [0; 4]).as_bytes()),
            _ => return garbled("an unknown escape"),
        }
    }
    out.extend_from_slice(rest);
    Ok(Cow::Owned(out))
}

/// The character whose four digits come next, with the other half of its pair if there is one.
fn unicode(rest: &mut &[u8]) -> Result<char, WireError> {
    let Some(unit) = hex(rest) else { return garbled("an escape without four digits") };
    *rest = &rest[4..];
    let pair = match rest {
        [b'\\', b'u', low @ ..] if (0xd800..0xdc00).contains(&unit) => hex(low),
        _ => None,
    };
    match pair {
        Some(low @ 0xdc00..0xe000) => {
            *rest = &rest[6..];
            let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
        }
        _ => Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    let digits = digits.get(..4)?;
    digits.iter().try_fold(0, |sum, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))
}

/// What a value says: `None` for null.
///
/// # Errors
/// It is neither null nor a string.
pub(super) fn string(value: &[u8]) -> Result<Option<String>, WireError> {
    match value {
        b"null" => Ok(None),
        [b'"', inner @ .., b'"'] => match String::from_utf8(unescape(inner)?.into_owned()) {
            Ok(text) => Ok(Some(text)),
            Err(_) => garbled("a string that is not UTF-8"),
        },
        _ => garbled("a string was expected"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_what_go_reads() {
        let rows = [
            (r"a", "a"),
            (r"\u006eame", "name"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ude00\u0041", "\u{fffd}A"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            ("é\\u00e9", "éé"),
        ];
        for (inner, want) in rows {
            assert_eq!(unescape(inner.as_bytes()).as_deref(), Ok(want.as_bytes()), "{inner}");
        }
        for inner in [r"\x", r"\u12", r"\u12g4", "\\", r"\u+123"] {
            assert!(unescape(inner.as_bytes()).is_err(), "{inner}");
        }
    }

    #[test]
    fn null_is_no_string_and_neither_is_a_number() {
        assert_eq!(string(b"null"), Ok(None));
        assert_eq!(string(b"\"\""), Ok(Some(String::new())));
        for value in [&b"5"[..], b"\"", b"{}", b"\"\xff\""] {
            assert!(string(value).is_err(), "{}", value.escape_ascii());
        }
    }
}
