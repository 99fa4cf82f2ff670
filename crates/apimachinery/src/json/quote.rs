//! Text inside messages, quoted as Go's `strconv.Quote` does it.
//!
//! In: what a client sent. Out: the same between double quotes, printable. Never: JSON, whose escapes differ.

use std::fmt::Write;

/// `"a\tb"`: how Go writes a string with `%q`.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        push_escaped(&mut quoted, c, '"');
    }
    quoted.push('"');
    quoted
}

/// `'x'`: how a JSON syntax error names the byte that it did not expect.
pub(super) fn quote_byte(byte: u8) -> String {
    let mut quoted = String::from("'");
    push_escaped(&mut quoted, char::from(byte), '\'');
    quoted.push('\'');
    quoted
}

fn push_escaped(out: &mut String, c: char, quote: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        c if c == quote => out.extend(['\\', c]),
        c if is_print(c) => out.push(c),
        c => push_code(out, u32::from(c)),
    }
}

fn push_code(out: &mut String, code: u32) {
    let written = match code {
        ..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x10000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("a String takes every write");
}

/// Whether Go's `unicode.IsPrint` says so: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // The standard library has the table, but shows it only through escaping: a character that follows
    // another one is escaped there exactly when it is not printable.
    let mut buffer = [b'a'; 5];
    let len = 1 + c.encode_utf8(&mut buffer[1..]).len();
    let text = std::str::from_utf8(&buffer[..len]).expect("'a' and a char are UTF-8");
    text.escape_debug().nth(1) != Some('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_like_strconv() {
        for (text, want) in [
            ("abc", r#""abc""#),
            ("a\"b'\\", r#""a\"b'\\""#),
            ("\0\x07\x08\x0b\x0c\n\r\t\x7f", r#""\x00\a\b\v\f\n\r\t\x7f""#),
            ("é\u{301}世\u{1f600}", "\"é\u{301}世\u{1f600}\""),
            ("\u{a0}\u{200b}\u{2028}\u{feff}\u{e0001}", r#""\u00a0\u200b\u2028\ufeff\U000e0001""#),
        ] {
            assert_eq!(go_quote(text), want);
        }
    }

    #[test]
    fn a_byte_is_named_between_single_quotes() {
        for (byte, want) in [
            (b'x', "'x'"),
            (b'"', "'\"'"),
            (b'\'', r"'\''"),
            (b'\n', r"'\n'"),
            (0, r"'\x00'"),
            (0x85, r"'\u0085'"),
            (0xc3, "'Ã'"),
        ] {
            assert_eq!(quote_byte(byte), want);
        }
    }
}
