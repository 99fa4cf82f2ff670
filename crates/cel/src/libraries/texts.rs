//! Texts: what cel-go's standard functions and its library of strings do to them, counted in code points.

use super::formatting;
use super::function::{Context, Found, Plain, text_list, wrong};
use crate::error::Error;
use crate::value::{TextValue, Value};

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "contains" => |args, _| both(args, |text, part| text.contains(part)),
        "startsWith" => |args, _| both(args, |text, part| text.starts_with(part)),
        "endsWith" => |args, _| both(args, |text, part| text.ends_with(part)),
        "charAt" => |args, _| match args {
            [Value::String(text), Value::Int(at)] => char_at(text, *at),
            _ => wrong(),
        },
        "lowerAscii" => |args, _| changed(args, |text| text.to_ascii_lowercase()),
        "upperAscii" => |args, _| changed(args, |text| text.to_ascii_uppercase()),
        "trim" => |args, _| changed(args, |text| text.trim_matches(is_space).to_owned()),
        "jsonpatch.escapeKey" => |args, _| changed(args, |text| text.replace('~', "~0").replace('/', "~1")),
        "strings.quote" => |args, _| changed(args, quoted),
        "replace" => |args, context| match args {
            [Value::String(text), Value::String(from), Value::String(to)] => {
                replaced(text, from, to, -1, context)
            }
            [Value::String(text), Value::String(from), Value::String(to), Value::Int(most)] => {
                replaced(text, from, to, *most, context)
            }
            _ => wrong(),
        },
        "split" => |args, context| match args {
            [Value::String(text), Value::String(by)] => split(text, by, -1, context),
            [Value::String(text), Value::String(by), Value::Int(most)] => split(text, by, *most, context),
            _ => wrong(),
        },
        "substring" => |args, _| match args {
            [Value::String(text), Value::Int(from)] => substring(text, *from, None),
            [Value::String(text), Value::Int(from), Value::Int(to)] => substring(text, *from, Some(*to)),
            _ => wrong(),
        },
        "join" => join,
        "format" => |args, context| match args {
            [Value::String(text), Value::List(list)] => formatting::format(text, list, context),
            _ => wrong(),
        },
        _ => return None,
    })
}

fn both<'a>(args: &[Value<'a>], is: fn(&str, &str) -> bool) -> Found<'a> {
    match args {
        [Value::String(one), Value::String(two)] => Ok(Value::Bool(is(one, two))),
        _ => wrong(),
    }
}

fn changed<'a>(args: &[Value<'a>], to: fn(&str) -> String) -> Found<'a> {
    match args {
        [Value::String(text)] => Ok(Value::text(to(text))),
        _ => wrong(),
    }
}

/// White space as Go knows it.
fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn out_of_range(at: i64) -> Error {
    Error::new(format!("index out of range: {at}"))
}

fn char_at<'a>(text: &str, at: i64) -> Found<'a> {
    let wanted = usize::try_from(at).map_err(|_| out_of_range(at))?;
    match text.chars().nth(wanted) {
        Some(c) => Ok(Value::text(c.to_string())),
        None if text.chars().count() == wanted => Ok(Value::text("")),
        None => Err(out_of_range(at)),
    }
}

/// The byte that the code point `at` begins at.
fn byte(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

fn substring<'a>(text: &TextValue<'a>, from: i64, to: Option<i64>) -> Found<'a> {
    if let Some(to) = to
        && from > to
    {
        return Err(Error::new(format!("invalid substring range. start: {from}, end: {to}")));
    }
    let begin = byte(text, from).ok_or_else(|| out_of_range(from))?;
    let end = match to {
        Some(to) => byte(text, to).ok_or_else(|| out_of_range(to))?,
        None => text.len(),
    };
    Ok(Value::String(match text {
        TextValue::Borrowed(text) => TextValue::Borrowed(&text[begin..end]),
        TextValue::Shared(text) => TextValue::Shared(text[begin..end].into()),
    }))
}

fn replaced<'a>(text: &str, from: &str, to: &str, most: i64, context: &Context<'a>) -> Found<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = text.matches(from).take(most).count();
    context.make(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(Value::text(text.replacen(from, to, most)))
}

fn split<'a>(text: &str, by: &str, most: i64, context: &Context<'a>) -> Found<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(text_list([]));
    }
    context.make(text.len())?;
    if by.is_empty() {
        // Each is a text of its own.
        context.make_elements(text.chars().take(most).count().saturating_mul(2))?;
        let mut parts: Vec<String> = text.chars().take(most).map(String::from).collect();
        if text.chars().count() > most {
            let from = byte(text, most as i64 - 1).unwrap_or(text.len());
            parts[most - 1] = text[from..].to_owned();
        }
        return Ok(text_list(parts));
    }
    context.make_elements(text.matches(by).take(most).count())?;
    Ok(text_list(text.splitn(most, by).map(str::to_owned)))
}

fn join<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return wrong(),
    };
    let mut joined = String::new();
    for (at, item) in list.iter().enumerate() {
        context.spent().walk(0)?;
        match item? {
            Value::String(text) => {
                context.make(text.len() + separator.len())?;
                if at > 0 {
                    joined.push_str(separator);
                }
                joined.push_str(&text);
            }
            // The first is what upstream judges a list by.
            _ if at == 0 => return wrong(),
            _ => return Err(Error::new("join: invalid input")),
        }
    }
    Ok(Value::text(joined))
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Where `part` is in `text`, from the code point `from` on; -1 where it is not.
pub(super) fn index_of(text: &str, part: &str, from: i64) -> Result<i64, Error> {
    if part.is_empty() {
        return Ok(from);
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Some(begin) = byte(text, from) else { return Ok(-1) };
    let found = text[begin..].find(part).map(|at| text[..begin + at].chars().count() as i64);
    Ok(found.unwrap_or(-1))
}

/// Where `part` is in `text`, no further on than the code point `until`.
pub(super) fn last_index_of(text: &str, part: &str, until: Option<i64>) -> Result<i64, Error> {
    let count = text.chars().count() as i64;
    if part.is_empty() {
        return Ok(until.unwrap_or(count));
    }
    if let Some(until) = until
        && until < 0
    {
        return Err(out_of_range(until));
    }
    if until.is_some_and(|until| until >= count) {
        return Ok(-1);
    }
    let end = match until.and_then(|until| byte(text, until.saturating_add(part.chars().count() as i64))) {
        Some(end) => end,
        None => text.len(),
    };
    Ok(text[..end].rfind(part).map_or(-1, |at| text[..at].chars().count() as i64))
}
