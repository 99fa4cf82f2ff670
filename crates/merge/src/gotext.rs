//! Text as the Go programs write it that clients know: JSON of `fieldsV1`, and values in messages.
//!
//! In: values. Out: text. Never: what it means.
//!
//! Source: jsoniter 1.1.12 as structured-merge-diff sets it up, which escapes otherwise than `encoding/json`; Go's `fmt`.

use forebay_apimachinery::json::go_quote;
use serde_json::{Number, Value};

use crate::limits::SHOWN_BYTES_MAX;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a JSON string that is not escaped for HTML: names of members.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    write_escaped(text, |byte| byte < 0x20 || byte == b'"' || byte == b'\\', out);
}

/// Appends a JSON string that HTML may hold: values.
pub fn write_html_string(text: &str, out: &mut Vec<u8>) {
    let stop = |byte| byte < 0x20 || matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xE2);
    write_escaped(text, stop, out);
}

/// - `stop`: bytes that may need to be escaped; of those that begin a character only the two line separators
///   do.
fn write_escaped(text: &str, stop: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(&stop) {
        let (plain, found) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let char = found.chars().next().expect("a byte was found");
        match char {
            '"' | '\\' => out.extend_from_slice(&[b'\\', char as u8]),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{2028}' => out.extend_from_slice(b"\\u2028"),
            '\u{2029}' => out.extend_from_slice(b"\\u2029"),
            _ if char.is_ascii() => {
                let byte = usize::from(char as u8);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[byte >> 4], HEX[byte & 0xF]]);
            }
            _ => out.extend_from_slice(&found.as_bytes()[..char.len_utf8()]),
        }
        rest = &found[char.len_utf8()..];
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

/// A value as compact JSON.
pub fn json(value: &Value) -> String {
    forebay_apimachinery::json::to_go_text(value)
}

/// A float in JSON.
pub fn json_float(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) { format!("{float}") } else { exponential(float) }
}

/// A float as `%v` shows it: with an exponent from a million on.
pub fn float(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-4..1e6).contains(&size) { format!("{float}") } else { exponential(float) }
}

/// Go gives an exponent its sign and two digits at least.
fn exponential(float: f64) -> String {
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A value that stands alone, as `%v` shows upstream's pointer to one.
pub fn shown(value: &Value) -> String {
    let mut out = String::from("&{");
    show(value, &mut out);
    cut(out) + "}"
}

/// A value as `%#v` shows upstream's pointer to one.
pub fn shown_in_full(value: &Value) -> String {
    let mut out = String::from("&value.valueUnstructured{Value:");
    show_in_full(value, &mut out);
    cut(out) + "}"
}

/// Go's type of a value, as `%T` shows it.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn cut(mut text: String) -> String {
    if text.len() > SHOWN_BYTES_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        text.push_str("...");
    }
    text
}

/// A number as `%v` shows it.
pub fn number(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => float(number.as_f64().unwrap_or(f64::INFINITY)),
    }
}

fn show(value: &Value, out: &mut String) {
    if out.len() > SHOWN_BYTES_MAX {
        return;
    }
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Value::Number(found) => out.push_str(&number(found)),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                show(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push_str("map[");
            for (index, (name, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                out.push_str(name);
                out.push(':');
                show(value, out);
            }
            out.push(']');
        }
    }
}

fn show_in_full(value: &Value, out: &mut String) {
    if out.len() > SHOWN_BYTES_MAX {
        return;
    }
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::String(text) => out.push_str(&go_quote(text)),
        Value::Bool(_) | Value::Number(_) => show(value, out),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                show_in_full(item, out);
            }
            out.push('}');
        }
        Value::Object(members) => {
            out.push_str("map[string]interface {}{");
            for (index, (name, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(&go_quote(name));
                out.push(':');
                show_in_full(value, out);
            }
            out.push('}');
        }
    }
}
