//! Strings and numbers as Go's encoding/json writes them.

/// Writes a JSON string, escaping what Go escapes: `<`, `>`, `&`, U+2028 and U+2029 besides what JSON asks
/// for.
pub(in super::super) fn write_string(text: &str, out: &mut Vec<u8>) {
    match is_plain(text.as_bytes()) {
        true => write_plain(text.as_bytes(), out),
        false => write_escaping(text, out),
    }
}

/// The same of bytes; nothing if they are not UTF-8. Most are ASCII, and looked at once.
pub(in super::super) fn write_utf8(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match is_plain(text) {
        true => write_plain(text, out),
        false => write_escaping(str::from_utf8(text).ok()?, out),
    }
    Some(())
}

fn write_plain(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

/// Whether it is ASCII of which nothing is escaped.
fn is_plain(text: &[u8]) -> bool {
    let (pieces, rest) = text.as_chunks::<16>();
    // What is left is looked at with what comes before it.
    let is_end_plain = match (text.last_chunk::<16>(), rest.first_chunk::<8>(), rest.last_chunk::<8>()) {
        _ if rest.is_empty() => true,
        (Some(end), ..) => all_plain(end),
        (None, Some(first), Some(last)) => all_plain(first) && all_plain(last),
        (None, ..) => all_plain(rest),
    };
    is_end_plain && pieces.iter().all(|piece| all_plain(piece))
}

/// No branch, so that the compiler makes a few instructions of it where the length is known.
#[inline]
fn all_plain(piece: &[u8]) -> bool {
    !piece.iter().fold(false, |any, &byte| any | is_special(byte) | !byte.is_ascii())
}

fn write_escaping(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut clean = 0; // start of what is not written yet
    let mut at = 0;
    while at < bytes.len() {
        let piece = bytes[at..].first_chunk::<16>();
        if piece.is_some_and(is_clean) {
            at += 16;
            continue;
        }
        let end = bytes.len().min(at + 16);
        while at < end {
            let width = if is_special(bytes[at]) { escaped(&bytes[at..]) } else { 0 };
            if width == 0 {
                at += 1;
                continue;
            }
            out.extend_from_slice(&bytes[clean..at]);
            write_escape(&bytes[at..at + width], out);
            at += width;
            clean = at;
        }
    }
    out.extend_from_slice(&bytes[clean..]);
    out.push(b'"');
}

/// Whether nothing in it may need an escape. No branch, so that the compiler makes a few instructions of it.
fn is_clean(piece: &[u8; 16]) -> bool {
    !piece.iter().fold(false, |any, &byte| any | is_special(byte))
}

/// How many bytes of `text`, which begins with a special one, are escaped; 0 if none is.
fn escaped(text: &[u8]) -> usize {
    match text {
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => 3,
        [0xe2, ..] => 0,
        _ => 1,
    }
}

fn write_escape(character: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match *character {
        [byte @ (b'"' | b'\\')] => out.extend_from_slice(&[b'\\', byte]),
        [0x08] => out.extend_from_slice(b"\\b"),
        [0x0c] => out.extend_from_slice(b"\\f"),
        [b'\n'] => out.extend_from_slice(b"\\n"),
        [b'\r'] => out.extend_from_slice(b"\\r"),
        [b'\t'] => out.extend_from_slice(b"\\t"),
        [byte] => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
        [.., last] => out.extend_from_slice(if last == 0xa8 { b"\\u2028" } else { b"\\u2029" }),
        [] => {}
    }
}

/// Whether a byte may need an escape; 0xe2 starts U+2028 and U+2029.
fn is_special(byte: u8) -> bool {
    let is_markup = (byte == b'<') | (byte == b'>') | (byte == b'&');
    (byte < 0x20) | (byte == b'"') | (byte == b'\\') | is_markup | (byte == 0xe2)
}

pub(in super::super) fn write_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a float: the shortest digits that read back the same, with an exponent below 1e-6 and from 1e21 on.
pub(super) fn write_float(value: f64, out: &mut Vec<u8>) {
    let size = value.abs();
    let text = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    } else {
        format!("{value}")
    };
    out.extend_from_slice(text.as_bytes());
}

/// Writes a number whatever its type; integers beyond 64 bits with a sign are floats to Go.
pub(super) fn write_number(number: &serde_json::Number, out: &mut Vec<u8>) {
    if let Some(int) = number.as_i64() {
        write_int(int, out);
    } else if let Some(float) = number.as_f64() {
        write_float(float, out);
    }
}

/// Quotes as Go's `%q`: printable characters stay, quotes and backslashes are escaped, others become escapes.
pub(crate) fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{07}' => quoted.push_str("\\a"),
            '\u{08}' => quoted.push_str("\\b"),
            '\u{0c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{0b}' => quoted.push_str("\\v"),
            c if c < ' ' || c == '\u{7f}' => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).expect("only text is written")
    }

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        let check = |text: &str, want: &str| {
            assert_eq!(written(|out| write_string(text, out)), want);
        };
        check("", r#""""#);
        check("plain", r#""plain""#);
        check("a<b>&c", r#""a\u003cb\u003e\u0026c""#);
        check("\"\\/", r#""\"\\/""#);
        check("\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}", "\"\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}\"");
        check("é\u{2028}x\u{2029}€\u{2030}", "\"é\\u2028x\\u2029€\u{2030}\"");
    }

    #[test]
    fn what_is_escaped_is_found_anywhere() {
        let specials = [
            "\"", "\\", "<", ">", "&", "\u{0}", "\u{1f}", "\u{2028}", "\u{2029}", "\u{2030}", "\u{20a8}",
            "é", "\u{7f}",
        ];
        for special in specials {
            let alone = written(|out| write_string(special, out));
            let alone = &alone[1..alone.len() - 1];
            for before in 0..40 {
                for behind in [0, 1, 15, 16, 17, 33] {
                    let (before, behind) = ("b".repeat(before), "y".repeat(behind));
                    let text = format!("{before}{special}{behind}{special}");
                    let want = format!("\"{before}{alone}{behind}{alone}\"");
                    assert_eq!(written(|out| write_string(&text, out)), want);
                }
            }
        }
    }

    #[test]
    fn bytes_are_written_as_their_text_and_what_is_none_is_not() {
        for len in 0..50 {
            for at in 0..len {
                for byte in 0..=u8::MAX {
                    let mut text = vec![b'x'; len];
                    text[at] = byte;
                    let mut out = Vec::new();
                    let is_written = write_utf8(&text, &mut out).is_some();
                    assert_eq!(is_written, byte < 0x80, "{byte:#x} at {at} of {len}");
                    if let Ok(text) = str::from_utf8(&text) {
                        let want = written(|out| write_escaping(text, out));
                        assert_eq!(String::from_utf8_lossy(&out), want);
                        assert_eq!(written(|out| write_string(text, out)), want);
                    }
                }
            }
        }
        assert_eq!(written(|out| write_utf8("né".as_bytes(), out).expect("text")), "\"né\"");
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let check = |text: &str, want: &str| {
            let number: serde_json::Number = serde_json::from_str(text).expect("a number");
            assert_eq!(written(|out| write_number(&number, out)), want, "{text}");
        };
        check("0", "0");
        check("-9223372036854775808", "-9223372036854775808");
        check("9223372036854775807", "9223372036854775807");
        check("18446744073709551615", "18446744073709552000");
        check("1.0", "1");
        check("-0.0", "-0");
        check("0.1", "0.1");
        check("1e20", "100000000000000000000");
        check("1e21", "1e+21");
        check("1.5e300", "1.5e+300");
        check("0.000001", "0.000001");
        check("0.0000001", "1e-7");
        check("-1.25e-9", "-1.25e-9");
    }

    #[test]
    fn quotes_are_those_of_percent_q() {
        assert_eq!(go_quote("spec.foo"), r#""spec.foo""#);
        assert_eq!(go_quote("a\"\\\n\u{1}é\u{85}"), r#""a\"\\\n\x01é\u0085""#);
    }
}
