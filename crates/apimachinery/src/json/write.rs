//! Writing JSON as Go's `encoding/json` does, compact.
//!
//! In: strings and values. Out: bytes with members sorted, `<`, `>`, `&` and the two line separators escaped.
//! Never: indents; adds a newline.

use std::io::Write;

use serde_json::{Map, Number, Value};

/// Bytes that Go writes as they are: ASCII from the space on, but for `"`, `\` and what HTML would trip over.
/// `0xE2` begins the line separators, which need a closer look.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        plain[byte] = false;
        byte += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain[b'<' as usize] = false;
    plain[b'>' as usize] = false;
    plain[b'&' as usize] = false;
    plain[0xE2] = false;
    plain
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` escaped, without the quotes around it.
pub fn go_escape(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut written = 0;
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|&byte| !PLAIN[usize::from(byte)]) {
        at += offset;
        let (escape, len) = escape_at(&bytes[at..]);
        if escape[0] != 0 {
            out.extend_from_slice(&bytes[written..at]);
            let end = escape.iter().position(|&byte| byte == 0).unwrap_or(escape.len());
            out.extend_from_slice(&escape[..end]);
            written = at + len;
        }
        at += len;
    }
    out.extend_from_slice(&bytes[written..]);
}

/// How long `text` is when it is [escaped](go_escape).
fn escaped_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut len, mut at) = (bytes.len(), 0);
    while let Some(offset) = bytes[at..].iter().position(|&byte| !PLAIN[usize::from(byte)]) {
        at += offset;
        let (escape, stands_for) = escape_at(&bytes[at..]);
        let escaped = escape.iter().take_while(|byte| **byte != 0).count();
        len += escaped.saturating_sub(stands_for);
        at += stands_for;
    }
    len
}

/// The longest text of a number.
const NUMBER_BYTES_MAX: usize = 25;

/// How long `value` is as [text](write_sorted), from above: by what numbers and words may take. Cost: a walk
/// over it, as deep as it is.
pub fn written_len_max(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => "false".len(),
        Value::Number(_) => NUMBER_BYTES_MAX,
        Value::String(text) => 2 + escaped_len(text),
        Value::Array(items) => 2 + items.iter().map(|item| 1 + written_len_max(item)).sum::<usize>(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| 4 + escaped_len(name) + written_len_max(value);
            2 + members.iter().map(member).sum::<usize>()
        }
    }
}

/// What stands for the beginning of `rest`, filled up with zeros and empty when nothing needs to, and the
/// length that it stands for.
fn escape_at(rest: &[u8]) -> ([u8; 6], usize) {
    let short = |letter| ([b'\\', letter, 0, 0, 0, 0], 1);
    match *rest {
        [byte @ (b'"' | b'\\'), ..] => short(byte),
        [0x08, ..] => short(b'b'),
        [0x0c, ..] => short(b'f'),
        [b'\n', ..] => short(b'n'),
        [b'\r', ..] => short(b'r'),
        [b'\t', ..] => short(b't'),
        [0xE2, 0x80, 0xA8, ..] => (*b"\\u2028", 3),
        [0xE2, 0x80, 0xA9, ..] => (*b"\\u2029", 3),
        [0xE2, ..] => ([0; 6], 1),
        [byte, ..] => {
            ([b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xF)]], 1)
        }
        [] => ([0; 6], 0),
    }
}

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    go_escape(text, out);
    out.push(b'"');
}

/// Appends `value`, compact, with the members of every object in byte order of their names.
///
/// The depth of the recursion is that of `value`, which [`super::parse`] bounds.
pub fn write_sorted(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_sorted(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => write_object(members, out),
    }
}

/// `value` as text: how Go shows a list or an object in a message.
pub fn to_go_text(value: &Value) -> String {
    let mut out = Vec::new();
    write_sorted(value, &mut out);
    String::from_utf8(out).expect("JSON made of strings is UTF-8")
}

/// The map's own order is sorted unless some crate in the build asks serde_json for insertion order.
fn write_object(members: &Map<String, Value>, out: &mut Vec<u8>) {
    out.push(b'{');
    if members.keys().is_sorted() {
        write_members(members.iter(), out);
    } else {
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| name.as_str());
        write_members(sorted.into_iter(), out);
    }
    out.push(b'}');
}

fn write_members<'m>(members: impl Iterator<Item = (&'m String, &'m Value)>, out: &mut Vec<u8>) {
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_sorted(value, out);
    }
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    let written = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), _, _) => write!(out, "{integer}"),
        (_, Some(integer), _) => write!(out, "{integer}"),
        (_, _, Some(float)) => write_float(float, out),
        (None, None, None) => write!(out, "{number}"),
    };
    written.expect("a Vec takes every write");
}

/// The shortest digits that give the same float; with an exponent below 1e-6 and from 1e21 on, as in
/// ECMAScript. Go writes `-0` as well, but reads that as 0 from what it has stored, before a client sees it.
fn write_float(float: f64, out: &mut Vec<u8>) -> std::io::Result<()> {
    let size = float.abs();
    if size == 0.0 {
        out.write_all(b"0")
    } else if (1e-6..1e21).contains(&size) {
        write!(out, "{float}")
    } else if size < 1.0 {
        write!(out, "{float:e}")
    } else {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        write!(out, "{digits}e+{exponent}")
    }
}
