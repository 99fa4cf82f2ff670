//! JSON, as YAML.
//!
//! Byte for byte as yaml.v2 writes it with keys in order: lists are not indented below their key, texts go
//! without quotes where they can, long ones are folded at 80 columns.

use std::cmp::Ordering;

use forebay_apimachinery::json;
use serde_json::Value;

use crate::length;
use crate::resolve::{Scalar, is_timestamp, resolve};

/// Text goes on in the next line once it is longer.
const WIDTH: usize = 80;
const STEP: usize = 2;
/// A name that is longer, or has several lines, gets a mark of its own.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// `json` as YAML, a newline at its end.
///
/// # Errors
/// What is wrong with the JSON.
pub fn from_json(json: &[u8]) -> Result<Vec<u8>, json::ParseError> {
    let value = json::read(json)?;
    let mut out = String::with_capacity(length::of_json(json));
    write(&value, &mut out);
    Ok(out.into_bytes())
}

/// Appends `value` as a document.
pub fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => mapping(members, 0, out),
        Value::Array(items) if !items.is_empty() => sequence(items, 0, out),
        flat => {
            scalar(flat, STEP, out);
            out.push('\n');
        }
    }
}

type Members = serde_json::Map<String, Value>;

/// Members, each on lines of its own; the first begins where `out` ends.
fn mapping(members: &Members, indent: usize, out: &mut String) {
    for (place, (name, value)) in in_order(members.iter().collect()).into_iter().enumerate() {
        if place > 0 {
            pad(indent, out);
        }
        member(name, value, indent, out);
    }
}

/// One member, from where `out` ends to a newline.
pub fn member(name: &str, value: &Value, indent: usize, out: &mut String) {
    if name.len() > SIMPLE_KEY_BYTES_MAX || name.contains('\n') {
        out.push_str("? ");
        text(name, indent + STEP, Place::Value, out);
        out.push('\n');
        pad(indent, out);
        out.push_str(": ");
        return compact(value, indent, out);
    }
    text(name, indent + STEP, Place::Key, out);
    out.push(':');
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            out.push('\n');
            pad(indent + STEP, out);
            mapping(inner, indent + STEP, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            pad(indent, out);
            sequence(items, indent, out);
        }
        flat => {
            out.push(' ');
            scalar(flat, indent + STEP, out);
            out.push('\n');
        }
    }
}

/// Items; the first begins where `out` ends.
fn sequence(items: &[Value], indent: usize, out: &mut String) {
    for (place, value) in items.iter().enumerate() {
        if place > 0 {
            pad(indent, out);
        }
        item(value, indent, out);
    }
}

/// One item, from where `out` ends to a newline.
pub fn item(value: &Value, indent: usize, out: &mut String) {
    out.push_str("- ");
    compact(value, indent, out);
}

/// One item on a single line, for one whose depth would make it far longer than it is. It means the same.
pub fn flow_item(value: &Value, out: &mut String) {
    out.push_str("- ");
    flow(value, out);
    out.push('\n');
}

fn flow(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push('{');
            for (place, (name, value)) in members.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                quoted(name, out);
                out.push_str(": ");
                flow(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (place, value) in items.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                flow(value, out);
            }
            out.push(']');
        }
        Value::String(value) => quoted(value, out),
        flat => scalar(flat, 0, out),
    }
}

/// In double quotes, and not folded.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if is_printable(c) => out.push(c),
            c => escape(c, out),
        }
    }
    out.push('"');
}

/// A value behind a mark of two columns, from where `out` ends to a newline.
fn compact(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => mapping(members, indent + STEP, out),
        Value::Array(items) if !items.is_empty() => sequence(items, indent + STEP, out),
        flat => {
            scalar(flat, indent + STEP, out);
            out.push('\n');
        }
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// What stands on one line, or on several that go on at `indent`.
fn scalar(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        Value::String(value) => text(value, indent, Place::Value, out),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Value,
}

fn text(text: &str, indent: usize, place: Place, out: &mut String) {
    let traits = Traits::of(text);
    let folds = place == Place::Value;
    if text.contains('\n') && place == Place::Value {
        return if traits.literal {
            literal(text, indent, out)
        } else {
            double_quoted(text, indent, folds, out)
        };
    }
    let means_text = resolve(text) == Scalar::Text && !is_base_60(text) && !is_timestamp(text);
    match (means_text, text.contains('\n')) {
        (true, false) if traits.plain => folded(text, indent, folds, "", out),
        (true, false) if traits.single_quoted => {
            out.push('\'');
            folded(text, indent, folds, "'", out);
            out.push('\'');
        }
        _ => double_quoted(text, indent, folds, out),
    }
}

/// How a text can be written.
struct Traits {
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

impl Traits {
    fn of(text: &str) -> Traits {
        let mut traits = Traits { plain: true, single_quoted: true, literal: true };
        if text.starts_with("---") || text.starts_with("...") {
            traits.plain = false;
        }
        let (mut before_is_space, mut before_is_break) = (false, false);
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let space_follows = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t' | '\n' | '\r'));
            let last = chars.peek().is_none();
            let after_blank = first || before_is_space || before_is_break;
            match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if first =>
                {
                    traits.plain = false;
                }
                '?' | '-' if first && space_follows => traits.plain = false,
                ':' if space_follows => traits.plain = false,
                '#' if after_blank => traits.plain = false,
                _ => {}
            }
            let is_break = matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
            if !is_break && !is_printable(c) {
                return Traits { plain: false, single_quoted: false, literal: false };
            }
            if c == ' ' {
                traits.plain &= !first && !last;
                traits.literal &= !last;
                if before_is_break {
                    (traits.plain, traits.single_quoted) = (false, false);
                }
            }
            if is_break {
                traits.plain = false;
                // Readers take the others for a newline, or for a space. go-yaml writes them as they are, and
                // they are lost.
                traits.single_quoted &= c == '\n';
                traits.literal &= c == '\n';
                if before_is_space {
                    return Traits { plain: false, single_quoted: false, literal: false };
                }
            }
            (before_is_space, before_is_break, first) = (c == ' ', is_break, false);
        }
        traits
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '\x20'..='\x7e' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

/// `1:30`: a number to base 60 in old YAML.
fn is_base_60(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || !digits.contains(':') {
        return false;
    }
    let mut parts = digits.split(':');
    let first = parts.next().is_some_and(|part| part.chars().all(|c| c.is_ascii_digit() || c == '_'));
    let rest: Vec<&str> = parts.collect();
    let fine = |(place, part): (usize, &&str)| {
        let whole = if place + 1 == rest.len() { part.split('.').next().unwrap_or("") } else { part };
        let digits = whole.bytes().all(|byte| byte.is_ascii_digit());
        let fraction = part.len() == whole.len()
            || part[whole.len() + 1..].chars().all(|c| c.is_ascii_digit() || c == '_');
        digits
            && fraction
            && (1..=2).contains(&whole.len())
            && (whole.len() == 1 || whole.as_bytes()[0] < b'6')
    };
    first && rest.iter().enumerate().all(fine)
}

/// Columns of the line that `out` ends with.
fn column(out: &str) -> usize {
    out.rsplit('\n').next().map_or(0, |line| line.chars().count())
}

/// Text on one line that goes on in the next at a single space. `doubled` is written twice.
fn folded(text: &str, indent: usize, folds: bool, doubled: &str, out: &mut String) {
    let mut column = column(out);
    let (mut before_is_space, mut first) = (false, true);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_space = chars.peek() == Some(&' ');
        let inner = doubled.is_empty() || (!first && chars.peek().is_some());
        if c == ' ' && folds && !before_is_space && column > WIDTH && !next_is_space && inner {
            out.push('\n');
            pad(indent, out);
            column = indent;
        } else {
            out.push(c);
            column += 1;
            if doubled.starts_with(c) {
                out.push(c);
                column += 1;
            }
        }
        (before_is_space, first) = (c == ' ', false);
    }
}

fn double_quoted(text: &str, indent: usize, folds: bool, out: &mut String) {
    let mut column = column(out) + 1;
    out.push('"');
    let (mut before_is_space, mut first) = (false, true);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let from = out.len();
        match c {
            ' ' if folds && !before_is_space && column > WIDTH && !first && chars.peek().is_some() => {
                out.push('\n');
                pad(indent, out);
                if chars.peek() == Some(&' ') {
                    out.push('\\');
                }
                column = indent;
                (before_is_space, first) = (true, false);
                continue;
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if is_printable(c) => out.push(c),
            c => escape(c, out),
        }
        column += out[from..].chars().count();
        (before_is_space, first) = (c == ' ', false);
    }
    out.push('"');
}

fn escape(c: char, out: &mut String) {
    let short = match c {
        '\0' => "\\0",
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\x0b' => "\\v",
        '\x0c' => "\\f",
        '\r' => "\\r",
        '\x1b' => "\\e",
        '\u{85}' => "\\N",
        '\u{2028}' => "\\L",
        '\u{2029}' => "\\P",
        _ => "",
    };
    match u32::from(c) {
        _ if !short.is_empty() => out.push_str(short),
        code @ ..0x100 => out.push_str(&format!("\\x{code:02X}")),
        code @ ..0x1_0000 => out.push_str(&format!("\\u{code:04X}")),
        code => out.push_str(&format!("\\U{code:08X}")),
    }
}

/// `|`, then the lines.
fn literal(text: &str, indent: usize, out: &mut String) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push_str(&STEP.to_string());
    }
    if !text.ends_with('\n') {
        out.push('-');
    } else if text == "\n" || text.ends_with("\n\n") {
        out.push('+');
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(indent, out);
            out.push_str(line);
        }
    }
}

/// In yaml.v2's order of keys, which is none for some of them: `10` comes before `1a`, that before `2`, and
/// that before `10`. The standard library's sort may panic there.
fn in_order<T>(mut front: Vec<(&String, T)>) -> Vec<(&String, T)> {
    if front.len() < 2 {
        return front;
    }
    let back = front.split_off(front.len() / 2);
    let mut merged = Vec::with_capacity(front.len() + back.len());
    let (mut front, mut back) =
        (in_order(front).into_iter().peekable(), in_order(back).into_iter().peekable());
    while let (Some((one, _)), Some((other, _))) = (front.peek(), back.peek()) {
        merged.extend(if key_order(other, one).is_lt() { back.next() } else { front.next() });
    }
    merged.extend(front.chain(back));
    merged
}

/// At the first difference: other characters before letters, letters by code, numbers by value.
///
/// Source: `go.yaml.in/yaml/v2` v2.4.3 `sorter.go`.
fn key_order(a: &str, b: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(place) = left.iter().zip(&right).position(|(l, r)| l != r) else {
        return left.len().cmp(&right.len());
    };
    let (l, r) = (left[place], right[place]);
    match (l.is_alphabetic(), r.is_alphabetic()) {
        (false, false) => number_at(&left, place, r).cmp(&number_at(&right, place, l)).then(l.cmp(&r)),
        (true, true) => l.cmp(&r),
        (is_letter, is_other) => is_letter.cmp(&is_other),
    }
}

/// The number from `place` on, and how long it is. Where one of both begins with a zero there, behind digits
/// that are not all zeros, it is a digit among others.
fn number_at(chars: &[char], place: usize, other: char) -> (i64, usize) {
    let before = chars[..place].iter().rev().take_while(|c| c.is_ascii_digit());
    let goes_on = (chars[place] == '0' || other == '0') && before.into_iter().any(|&c| c != '0');
    let digits = chars[place..].iter().map_while(|c| c.to_digit(10));
    digits.fold((i64::from(goes_on), 0), |(value, len), digit| {
        (value.wrapping_mul(10).wrapping_add(i64::from(digit)), len + 1)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_that_is_long_or_has_several_lines_gets_a_mark_of_its_own() {
        let (fits, long) = ("l".repeat(128), "k".repeat(129));
        let value = json!({"a\nb": "x", &fits: "y", &long: {"in": {&long: [1, {"c": 2}], "p": []}}});
        let mut out = String::new();
        write(&value, &mut out);
        let want = format!(
            "? |-\n  a\n  b\n: x\n? {long}\n: in:\n    ? {long}\n    : - 1\n      - c: 2\n    p: []\n{fits}: \"y\"\n"
        );
        assert_eq!(out, want);
    }

    #[test]
    fn keys_are_in_the_order_of_yaml_v2() {
        // As it writes pairs of them.
        for (first, second) in [
            ("a-b", "ab"),
            ("a.b", "ab"),
            ("aB", "ab"),
            ("A_b", "ab"),
            ("a2", "a10"),
            ("a1", "a01"),
            ("x0", "x00"),
            ("x9", "x09"),
            ("x19", "x109"),
            ("a1-b", "a1b"),
            ("10x", "1ax"),
            ("1ax", "2x"),
            ("2x", "10x"),
        ] {
            assert!(key_order(first, second).is_lt() && key_order(second, first).is_gt(), "{first} {second}");
        }
    }

    #[test]
    fn keys_of_no_order_are_all_written() {
        let key = |number: u32| format!("{:x}", number.wrapping_mul(2_654_435_761) >> 20);
        let members: Members = (0..5_000).map(|number| (key(number), Value::Null)).collect();
        let mut out = String::new();
        write(&Value::Object(members.clone()), &mut out);
        assert_eq!(out.lines().count(), members.len());
    }
}
