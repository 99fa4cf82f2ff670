//! Patterns: RE2's syntax, in time that is linear in the text.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::function::{Context, Found, Function, Plain, text_list, wrong};
use crate::error::Error;
use crate::limits::PATTERN_BYTES_MAX;
use crate::value::Value;

/// A pattern that is compiled once, and what is asked of it.
pub(crate) struct Pattern {
    regex: Regex,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Matches,
    Find,
    FindAll,
}

fn what(name: &str) -> Option<What> {
    Some(match name {
        "matches" => What::Matches,
        "find" => What::Find,
        "findAll" => What::FindAll,
        _ => return None,
    })
}

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "matches" => |args, context| match args {
            [Value::String(_), Value::String(pattern)] => {
                applied(&compile(pattern)?, What::Matches, args, context)
            }
            _ => wrong(),
        },
        "find" => |args, context| match args {
            [Value::String(_), Value::String(pattern)] => {
                applied(&compile(pattern).map_err(illegal)?, What::Find, args, context)
            }
            _ => wrong(),
        },
        "findAll" => |args, context| match args {
            [Value::String(_), Value::String(pattern)]
            | [Value::String(_), Value::String(pattern), Value::Int(_)] => {
                applied(&compile(pattern).map_err(illegal)?, What::FindAll, args, context)
            }
            _ => wrong(),
        },
        _ => return None,
    })
}

fn applied<'a>(regex: &Regex, what: What, args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    let [Value::String(text), _, rest @ ..] = args else { return wrong() };
    let most = match rest {
        [] => usize::MAX,
        // Below zero is as many as there are.
        [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => return wrong(),
    };
    Ok(match what {
        What::Matches => Value::Bool(regex.is_match(text)),
        What::Find => Value::text(regex.find(text).map_or("", |found| found.as_str())),
        What::FindAll => {
            let found: Vec<_> = regex.find_iter(text).take(most).map(|found| found.as_str()).collect();
            context.make_elements(found.len())?;
            text_list(found.into_iter().map(str::to_owned))
        }
    })
}

fn illegal(why: Error) -> Error {
    Error::new(format!("Illegal regex: {why}"))
}

/// A pattern, if Go takes it for one.
pub(crate) fn compile(pattern: &str) -> Result<Regex, Error> {
    let failed = |why: String| Error::new(format!("error parsing regexp: {why}"));
    if let Some(why) = refused_by_go(pattern) {
        return Err(failed(why));
    }
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().map_err(|why| {
        let why = why.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        failed(match why {
            "unopened group" => format!("unexpected ): `{pattern}`"),
            "unclosed group" => format!("missing closing ): `{pattern}`"),
            other => other.to_owned(),
        })
    })
}

/// Repetitions that Go has no meaning for, and this engine has: of a repetition, and of more than a thousand.
fn refused_by_go(pattern: &str) -> Option<String> {
    const REPEATS_MAX: u64 = 1000;
    let (mut rest, mut repeated, mut in_class) = (pattern, None, false);
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        let mut repeats = false;
        match c {
            '\\' => length += rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => in_class = true,
            ']' => in_class = false,
            '*' | '+' | '?' if !in_class => repeats = true,
            '{' if !in_class => {
                if let Some((inner, most)) = counts(rest) {
                    if most > REPEATS_MAX {
                        return Some(format!("invalid repeat count: `{inner}`"));
                    }
                    (length, repeats) = (inner.len(), true);
                }
            }
            _ => {}
        }
        let operator = &rest[..length];
        rest = &rest[length..];
        if !repeats {
            repeated = None;
            continue;
        }
        // What follows at once makes it lazy.
        let lazy = rest.strip_prefix('?');
        let whole = if lazy.is_some() { format!("{operator}?") } else { operator.to_owned() };
        rest = lazy.unwrap_or(rest);
        if let Some(before) = repeated {
            return Some(format!("invalid nested repetition operator: `{before}{whole}`"));
        }
        repeated = Some(whole);
    }
    None
}

/// `{n}`, `{n,}` or `{n,m}`, and the larger of both numbers.
fn counts(text: &str) -> Option<(&str, u64)> {
    let inner = &text[..=text.find('}')?];
    let numbers = &inner[1..inner.len() - 1];
    let (low, high) = numbers.split_once(',').unwrap_or((numbers, ""));
    let is_count =
        !low.is_empty() && [low, high].iter().all(|number| number.bytes().all(|b| b.is_ascii_digit()));
    let number = |text: &str| if text.is_empty() { 0 } else { text.parse().unwrap_or(u64::MAX) };
    is_count.then(|| (inner, number(low).max(number(high))))
}

/// A function that is asked of a pattern which an expression spells out; `None` for any other function.
///
/// # Errors
/// If it is no pattern.
pub(crate) fn of_constant(name: &str, pattern: &str) -> Option<Result<Function, Error>> {
    let what = what(name)?;
    Some(compile(pattern).map(|regex| Function::Pattern(Arc::new(Pattern { regex, what }))))
}

impl Pattern {
    pub fn apply<'a>(&self, args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
        applied(&self.regex, self.what, args, context)
    }
}
