//! What is asked of versions.

use super::function::{Found, Plain, wrong};
use crate::error::Error;
use crate::objects::Object;
use crate::objects::semver::{Semver, normalized, read};
use crate::value::Value;

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "semver" => |args, _| {
            read_args(args).map_or_else(wrong, |read| read.map(|it| Value::object(Object::Semver(it))))
        },
        "isSemver" => |args, _| read_args(args).map_or_else(wrong, |read| Ok(Value::Bool(read.is_ok()))),
        "major" => |args, _| number(args, 0),
        "minor" => |args, _| number(args, 1),
        "patch" => |args, _| number(args, 2),
        _ => return None,
    })
}

fn read_args(args: &[Value<'_>]) -> Option<Result<Semver, Error>> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Some(read(text)),
        [Value::String(text), Value::Bool(true)] => Some(normalized(text).and_then(|text| read(&text))),
        _ => None,
    }
}

fn number<'a>(args: &[Value<'a>], at: usize) -> Found<'a> {
    match args {
        [Value::Object(it)] => match &**it {
            Object::Semver(it) => Ok(Value::Int(it.numbers[at] as i64)),
            _ => wrong(),
        },
        _ => wrong(),
    }
}
