//! Character classes and escapes of Go patterns: `[…]`, `\d`, `\pL`, `\x{…}`, octal.
//!
//! In: the pattern from the class or backslash on. Out: its text for the `regex` crate and what follows it.
//! Ranges are written as code points, so nothing in them can be read as an operator of the other dialect.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::compiled::TOO_LARGE;
use super::translate::{Refused, refused};
use crate::limits::{POINTS_MAX, PROPERTY_POINTS};

const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Code points of the classes of one pattern together. Each is looked at where letters are as good in either
/// case, before anything bounds what is made of them.
#[derive(Default)]
pub(super) struct Points(u64);

impl Points {
    fn take(&mut self, more: u64) -> Result<(), Refused> {
        self.0 += more;
        if self.0 > POINTS_MAX { refused(TOO_LARGE, "") } else { Ok(()) }
    }
}

/// Translates a bracket class; `text` begins with `[`.
pub(super) fn bracket<'a>(text: &'a str, points: &mut Points) -> Result<(String, &'a str), Refused> {
    let mut out = String::from("[");
    let mut rest = &text[1..];
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((name, after)) = named(rest)? {
            out.push_str(name);
            rest = after;
        } else if let Some((class, after)) = shorthand(rest, points)? {
            out.push_str(&class);
            rest = after;
        } else {
            rest = range(rest, text, &mut out, points)?;
        }
    }
    out.push(']');
    Ok((out, &rest[1..]))
}

/// A POSIX class such as `[:alpha:]`, if one begins here.
fn named(text: &str) -> Result<Option<(&str, &str)>, Refused> {
    let Some(name) = text.strip_prefix("[:").filter(|name| !name.is_empty()) else { return Ok(None) };
    let Some((name, rest)) = name.split_once(":]") else { return Ok(None) };
    let class = &text[..text.len() - rest.len()];
    match NAMED.contains(&name.strip_prefix('^').unwrap_or(name)) {
        true => Ok(Some((class, rest))),
        false => refused("invalid character class range", class),
    }
}

/// One character or a range of two.
fn range<'a>(text: &'a str, whole: &str, out: &mut String, points: &mut Points) -> Result<&'a str, Refused> {
    let (low, mut rest) = class_char(text, whole)?;
    let mut high = low;
    let is_range = rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]");
    if is_range {
        (high, rest) = class_char(&rest[1..], whole)?;
    }
    if high < low {
        return refused("invalid character class range", &text[..text.len() - rest.len()]);
    }
    points.take(u64::from(high - low) + 1)?;
    let _ = write!(out, r"\x{{{low:x}}}-\x{{{high:x}}}");
    Ok(rest)
}

fn class_char<'a>(text: &'a str, whole: &str) -> Result<(u32, &'a str), Refused> {
    match text.chars().next() {
        None => refused("missing closing ]", whole),
        Some('\\') => escaped(text),
        Some(c) => Ok((c as u32, &text[c.len_utf8()..])),
    }
}

/// `\d`, `\pL` and the like as the inside of a bracket class, if one begins here.
pub(super) fn shorthand<'a>(
    text: &'a str,
    points: &mut Points,
) -> Result<Option<(String, &'a str)>, Refused> {
    let Some(escape) = text.strip_prefix('\\') else { return Ok(None) };
    let class = match escape.as_bytes().first() {
        Some(b'd') => "0-9",
        Some(b'D') => "[^0-9]",
        Some(b's') => r"\t\n\x0c\r ",
        Some(b'S') => r"[^\t\n\x0c\r ]",
        Some(b'w') => "0-9A-Za-z_",
        Some(b'W') => "[^0-9A-Za-z_]",
        Some(b'p' | b'P') => return unicode(text, points).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((class.to_owned(), &escape[1..])))
}

/// `\pL`, `\p{Greek}`, `\P{^Greek}`.
fn unicode<'a>(text: &'a str, points: &mut Points) -> Result<(String, &'a str), Refused> {
    let after = &text[2..];
    let (name, rest) = match after.strip_prefix('{') {
        Some(braced) => match braced.split_once('}') {
            Some((name, rest)) => (name, rest),
            None => return refused("invalid character class range", text),
        },
        None => after.split_at(after.chars().next().map_or(0, char::len_utf8)),
    };
    let whole = &text[..text.len() - rest.len()];
    let (name, inverted) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let kind = if text.starts_with(r"\P") != inverted { 'P' } else { 'p' };
    let canonical = name.replace(['_', '-', ' '], "").to_ascii_lowercase();
    let Some(of) = property(&canonical) else { return refused("invalid character class range", whole) };
    let is_wide = ["any", "assigned", "unassigned", "c", "cn", "other"].contains(&&*canonical);
    points.take(if is_wide { 0x11_0000 } else { PROPERTY_POINTS })?;
    Ok((format!(r"\{kind}{{{of}={canonical}}}"), rest))
}

/// Of which property of Unicode that is a value: Go knows categories and scripts, and no others. A name is
/// looked up once; there are only so many that are one.
fn property(canonical: &str) -> Option<&'static str> {
    static KNOWN: LazyLock<Mutex<HashMap<Box<str>, &'static str>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if canonical.is_empty() || !canonical.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    if let Some(of) = known().get(canonical) {
        return Some(of);
    }
    let is_valid = |of: &&str| regex::Regex::new(&format!(r"\p{{{of}={canonical}}}")).is_ok();
    let of =
        ["gc", "sc"].into_iter().find(is_valid).filter(|of| *of == "gc" || !is_script_code(canonical))?;
    known().insert(canonical.into(), of);
    Some(of)
}

/// Whether the name of a script is its code of four letters, which Go does not know.
fn is_script_code(canonical: &str) -> bool {
    const NAMES: [&str; 8] = ["ahom", "cham", "kawi", "lisu", "modi", "newa", "thai", "toto"];
    canonical.len() == 4 && !NAMES.contains(&canonical)
}

/// An escaped single character; `text` begins with the backslash.
pub(super) fn escaped(text: &str) -> Result<(u32, &str), Refused> {
    let Some(c) = text[1..].chars().next() else {
        return refused("trailing backslash at end of expression", "");
    };
    let rest = &text[1 + c.len_utf8()..];
    let plain = match c {
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        'x' => return hex(text, rest),
        '0' => return Ok(octal(&text[1..])),
        '1'..='7' if rest.starts_with(|d| ('0'..='7').contains(&d)) => return Ok(octal(&text[1..])),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => c as u32,
        _ => return refused("invalid escape sequence", &text[..text.len() - rest.len()]),
    };
    Ok((plain, rest))
}

fn octal(text: &str) -> (u32, &str) {
    let digits = text.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
    (u32::from_str_radix(&text[..digits], 8).unwrap_or(0), &text[digits..])
}

fn hex<'a>(text: &'a str, rest: &'a str) -> Result<(u32, &'a str), Refused> {
    let mut value = 0u32;
    let braced = rest.starts_with('{');
    let mut seen = 0;
    for (i, c) in rest.char_indices().skip(usize::from(braced)) {
        let after = &rest[i + c.len_utf8()..];
        let bad = &text[..text.len() - after.len()];
        match c.to_digit(16) {
            Some(digit) => value = value * 16 + digit,
            None if braced && c == '}' && seen > 0 => return scalar(value, after, bad),
            // Two digits are read before either is judged.
            None if !braced && seen == 0 => {
                let next = after.chars().next().map_or(0, char::len_utf8);
                return refused("invalid escape sequence", &text[..text.len() - after.len() + next]);
            }
            None => return refused("invalid escape sequence", bad),
        }
        seen += 1;
        if value > 0x10FFFF {
            return refused("invalid escape sequence", bad);
        }
        if !braced && seen == 2 {
            return Ok((value, after));
        }
    }
    refused("invalid escape sequence", text)
}

/// A surrogate is refused: Go's parser takes it, but no text can hold one, so such a pattern is a mistake.
fn scalar<'a>(value: u32, rest: &'a str, bad: &str) -> Result<(u32, &'a str), Refused> {
    match char::from_u32(value) {
        Some(_) => Ok((value, rest)),
        None => refused("invalid escape sequence", bad),
    }
}
