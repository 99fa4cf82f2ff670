//! `format`: values in a text.

use super::floats;
use super::function::{Context, Found};
use crate::error::Error;
use crate::limits::{MADE_BYTES_MAX, PRECISION_MAX};
use crate::time;
use crate::value::{List, Value};

pub(super) fn format<'a>(text: &str, list: &List<'a>, context: &Context<'a>) -> Found<'a> {
    let mut values = list.iter();
    let formatted = walk(text, list.len(), |_, clause| {
        let value = values.next().unwrap_or(Ok(Value::Null))?;
        let text = written(clause, &value)?;
        context.make(text.len())?;
        Ok(text)
    });
    formatted.map(Value::text)
}

/// A clause of a format: its letter, and digits after the point.
#[derive(Clone, Copy)]
pub(crate) struct Clause {
    pub kind: char,
    precision: Option<usize>,
}

/// Goes through a format for `count` arguments; `each` says what becomes of a clause, told its number.
pub(crate) fn walk(
    text: &str,
    count: usize,
    mut each: impl FnMut(usize, Clause) -> Result<String, Error>,
) -> Result<String, Error> {
    let (mut out, mut rest, mut at) = (String::with_capacity(text.len()), text, 0);
    while let Some(begin) = rest.find('%') {
        out.push_str(&rest[..begin]);
        rest = &rest[begin + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        if at >= count {
            return Err(Error::new(format!("index {at} out of range")));
        }
        if rest.is_empty() {
            return Err(Error::new("unexpected end of string"));
        }
        let (precision, after) = precision(rest)?;
        let kind = after.chars().next().ok_or_else(|| Error::new("unexpected end of string"))?;
        if !"sdfebxXo".contains(kind) {
            let why = format!("could not parse formatting clause: unrecognized formatting clause \"{kind}\"");
            return Err(Error::new(why));
        }
        rest = &after[kind.len_utf8()..];
        out.push_str(&each(at, Clause { kind, precision })?);
        at += 1;
    }
    out.push_str(rest);
    Ok(out)
}

fn precision(text: &str) -> Result<(Option<usize>, &str), Error> {
    let failed = |why: &str| {
        Error::new(format!("could not parse formatting clause: error while parsing precision: {why}"))
    };
    let Some(digits) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .ok_or_else(|| failed("could not find end of precision specifier"))?;
    let read = digits[..end].parse().ok().filter(|read| *read <= PRECISION_MAX);
    let read = read.ok_or_else(|| failed("error while converting precision to integer"))?;
    Ok((Some(read), &digits[end..]))
}

/// What is said where a clause is given what it is not for.
pub(crate) fn refusal(kind: char, given: &str) -> Error {
    let what = match kind {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps"
        }
    };
    Error::new(format!("error during formatting: {what}, was given {given}"))
}

fn written(Clause { kind, precision }: Clause, value: &Value<'_>) -> Result<String, Error> {
    let digits = precision.unwrap_or(6);
    Ok(match (kind, value) {
        ('s', _) => {
            let mut out = String::new();
            shown(&mut out, value, true)?;
            out
        }
        ('d', Value::Int(it)) => it.to_string(),
        ('d', Value::Uint(it)) => it.to_string(),
        ('b', Value::Bool(it)) => u8::from(*it).to_string(),
        ('b', Value::Int(it)) => signed(*it, |it| format!("{it:b}")),
        ('b', Value::Uint(it)) => format!("{it:b}"),
        ('o', Value::Int(it)) => signed(*it, |it| format!("{it:o}")),
        ('o', Value::Uint(it)) => format!("{it:o}"),
        ('x', Value::Int(it)) => signed(*it, |it| format!("{it:x}")),
        ('X', Value::Int(it)) => signed(*it, |it| format!("{it:X}")),
        ('x', Value::Uint(it)) => format!("{it:x}"),
        ('X', Value::Uint(it)) => format!("{it:X}"),
        ('x' | 'X', Value::String(text)) => hex(text.as_bytes(), kind == 'X'),
        ('x' | 'X', Value::Bytes(bytes)) => hex(bytes, kind == 'X'),
        ('f' | 'e', _) => {
            let number = double(value).ok_or_else(|| refusal(kind, value.type_name()))?;
            match (special(number), kind) {
                (Some(special), 'f') => special.to_owned(),
                // Upstream takes the digits for a width.
                (Some(special), _) => format!("{special:>digits$}"),
                (None, 'f') => grouped(number, digits),
                (None, _) => scientific(number, digits),
            }
        }
        _ => return Err(refusal(kind, value.type_name())),
    })
}

/// A number, or a text that names one that no literal does.
fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(it) => Some(*it),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn signed(it: i64, digits: fn(u64) -> String) -> String {
    let sign = if it < 0 { "-" } else { "" };
    format!("{sign}{}", digits(it.unsigned_abs()))
}

fn hex(bytes: &[u8], upper: bool) -> String {
    bytes.iter().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
}

fn special(it: f64) -> Option<&'static str> {
    match it {
        _ if it.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// With commas between thousands, as the language that upstream formats in has it.
fn grouped(it: f64, digits: usize) -> String {
    let text = format!("{it:.digits$}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !part.is_empty() {
        out.push('.');
        out.push_str(part);
    }
    out
}

fn scientific(it: f64, digits: usize) -> String {
    let text = format!("{it:.digits$e}");
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut out = format!("{number}×10");
    if exponent.starts_with('-') {
        out.push('⁻');
    }
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = exponent.trim_start_matches('-');
    for digit in format!("{exponent:0>2}").bytes() {
        out.push(RAISED[usize::from(digit - b'0')]);
    }
    out
}

fn quoted(out: &mut String, before: &str, text: &str) {
    out.push_str(before);
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// A value as a text has it: texts in lists are quoted, others are not.
fn shown(out: &mut String, value: &Value<'_>, top: bool) -> Result<(), Error> {
    // A list may have one long text many times.
    if out.len() as u64 > MADE_BYTES_MAX {
        return Err(Error::CostExceeded);
    }
    match value {
        Value::String(text) if top => out.push_str(text),
        Value::String(text) => quoted(out, "", text),
        Value::Null => out.push_str("null"),
        Value::Bool(it) => out.push_str(&it.to_string()),
        Value::Int(it) => out.push_str(&it.to_string()),
        Value::Uint(it) => out.push_str(&it.to_string()),
        Value::Double(it) if top => out.push_str(&floats::text(*it)),
        Value::Double(it) if it.is_finite() => out.push_str(&format!("{it:.6}")),
        Value::Double(it) => quoted(out, "", &floats::text(*it)),
        Value::Bytes(bytes) if !top => quoted(out, "b", &String::from_utf8_lossy(bytes)),
        Value::Duration(it) if !top => {
            quoted(out, "duration(", &time::seconds_text(*it));
            out.push(')');
        }
        Value::Timestamp(at) if !top => {
            quoted(out, "timestamp(", &time::text(*at));
            out.push(')');
        }
        Value::Bytes(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
        Value::Duration(it) => out.push_str(&time::seconds_text(*it)),
        Value::Timestamp(at) => out.push_str(&time::text(*at)),
        Value::Type(name) => out.push_str(name),
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                shown(out, &item?, false)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                let (mut left, mut right) = (String::new(), String::new());
                shown(&mut left, &key, false)?;
                let value = key.key().map_or(Ok(None), |key| map.get(&key))?;
                shown(&mut right, &value.unwrap_or(Value::Null), false)?;
                entries.push(format!("{left}:{right}"));
            }
            entries.sort();
            out.push_str(&format!("{{{}}}", entries.join(", ")));
        }
        _ => return Err(refusal('s', value.type_name())),
    }
    Ok(())
}
