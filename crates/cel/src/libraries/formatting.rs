//! `format`: values in a text.

use std::borrow::Cow;

use super::floats;
use super::function::{Context, Found};
use crate::error::Error;
use crate::limits::{ELEMENT_BYTES, PRECISION_MAX};
use crate::spent::Spent;
use crate::time;
use crate::value::{List, Map, Value};

pub(super) fn format<'a>(text: &str, list: &List<'a>, context: &Context<'a>) -> Found<'a> {
    let mut values = list.iter();
    let formatted = walk(text, list.len(), |_, clause| {
        let value = values.next().unwrap_or(Ok(Value::Null))?;
        context.spent().walk(0)?;
        written(clause, &value, context.spent())
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

fn written(Clause { kind, precision }: Clause, value: &Value<'_>, spent: &Spent) -> Result<String, Error> {
    let digits = precision.unwrap_or(6);
    if kind == 's' {
        let mut shown = Shown { out: String::new(), spent };
        shown.value(value, true)?;
        return Ok(shown.out);
    }
    // A number, or two digits a byte.
    spent.make(digits.saturating_add(value.bytes().saturating_mul(2)).saturating_add(ELEMENT_BYTES))?;
    Ok(match (kind, value) {
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
    let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let digit = |at: u8| char::from(digits[usize::from(at & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
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

/// A text that is written, each part of it paid for before.
struct Shown<'s> {
    out: String,
    spent: &'s Spent,
}

impl Shown<'_> {
    fn push(&mut self, text: &str) -> Result<(), Error> {
        self.spent.make(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn quoted(&mut self, before: &str, text: &str) -> Result<(), Error> {
        self.push(before)?;
        self.push("\"")?;
        self.push(text)?;
        self.push("\"")
    }

    /// Bytes as a text, as far as they are one.
    fn lossy<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, str>, Error> {
        // What is none takes three bytes each.
        self.spent.make(bytes.len().saturating_mul(3))?;
        Ok(String::from_utf8_lossy(bytes))
    }

    /// A value as a text has it: texts in lists are quoted, others are not.
    fn value(&mut self, value: &Value<'_>, top: bool) -> Result<(), Error> {
        // A list may have one list many times.
        self.spent.walk(value.bytes())?;
        match value {
            Value::String(text) if top => self.push(text),
            Value::String(text) => self.quoted("", text),
            Value::Null => self.push("null"),
            Value::Bool(it) => self.push(&it.to_string()),
            Value::Int(it) => self.push(&it.to_string()),
            Value::Uint(it) => self.push(&it.to_string()),
            Value::Double(it) if top => self.push(&floats::text(*it)),
            Value::Double(it) if it.is_finite() => self.push(&format!("{it:.6}")),
            Value::Double(it) => self.quoted("", &floats::text(*it)),
            Value::Bytes(bytes) if !top => {
                let text = self.lossy(bytes)?;
                self.quoted("b", &text)
            }
            Value::Duration(it) if !top => {
                self.quoted("duration(", &time::seconds_text(*it))?;
                self.push(")")
            }
            Value::Timestamp(at) if !top => {
                self.quoted("timestamp(", &time::text(*at))?;
                self.push(")")
            }
            Value::Bytes(bytes) => {
                let text = self.lossy(bytes)?;
                self.push(&text)
            }
            Value::Duration(it) => self.push(&time::seconds_text(*it)),
            Value::Timestamp(at) => self.push(&time::text(*at)),
            Value::Type(name) => self.push(name),
            Value::List(list) => {
                self.push("[")?;
                for (at, item) in list.iter().enumerate() {
                    if at > 0 {
                        self.push(", ")?;
                    }
                    self.value(&item?, false)?;
                }
                self.push("]")
            }
            Value::Map(map) => self.map(map),
            _ => Err(refusal('s', value.type_name())),
        }
    }

    /// The entries in the order of their texts.
    fn map(&mut self, map: &Map<'_>) -> Result<(), Error> {
        let mut entries = Vec::new();
        for key in map.keys(self.spent) {
            let key = key?;
            let mut entry = Shown { out: String::new(), spent: self.spent };
            entry.value(&key, false)?;
            entry.push(":")?;
            let value = key.key().map_or(Ok(None), |key| map.get(&key))?;
            entry.value(&value.unwrap_or(Value::Null), false)?;
            self.spent.make_elements(1)?;
            entries.push(entry.out);
        }
        entries.sort();
        self.push("{")?;
        for (at, entry) in entries.iter().enumerate() {
            if at > 0 {
                self.push(", ")?;
            }
            self.push(entry)?;
        }
        self.push("}")
    }
}
