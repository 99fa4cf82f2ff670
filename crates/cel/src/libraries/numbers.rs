//! Arithmetic that overflows into an error, and the order of values.

use std::cmp::Ordering;

use super::function::{Context, Found, Plain, wrong};
use crate::error::Error;
use crate::value::{Timestamp, Value, compare};

use crate::time;

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "_+_" => add,
        "_-_" => |args, _| subtract(args),
        "_*_" => |args, _| match args {
            [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
            [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
            [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
            _ => wrong(),
        },
        "_/_" => |args, _| match args {
            [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
                Err(Error::new("division by zero"))
            }
            [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
            [Value::Uint(a), Value::Uint(b)] => uint(a.checked_div(*b)),
            [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
            _ => wrong(),
        },
        "_%_" => |args, _| match args {
            [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
                Err(Error::new("modulus by zero"))
            }
            [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
            [Value::Uint(a), Value::Uint(b)] => uint(a.checked_rem(*b)),
            _ => wrong(),
        },
        "-_" => |args, _| match args {
            [Value::Int(a)] => int(a.checked_neg()),
            [Value::Double(a)] => Ok(Value::Double(-a)),
            _ => wrong(),
        },
        "!_" => |args, _| match args {
            [Value::Bool(a)] => Ok(Value::Bool(!a)),
            _ => wrong(),
        },
        "@not_strictly_false" | "__not_strictly_false__" => |args, _| Ok(args[0].clone()),
        "_<_" => |args, _| ordered(args, Ordering::is_lt),
        "_<=_" => |args, _| ordered(args, Ordering::is_le),
        "_>_" => |args, _| ordered(args, Ordering::is_gt),
        "_>=_" => |args, _| ordered(args, Ordering::is_ge),
        _ => return None,
    })
}

fn int<'a>(it: Option<i64>) -> Found<'a> {
    it.map(Value::Int).ok_or_else(|| Error::new("integer overflow"))
}

fn uint<'a>(it: Option<u64>) -> Found<'a> {
    it.map(Value::Uint).ok_or_else(|| Error::new("unsigned integer overflow"))
}

fn duration<'a>(it: Option<i64>) -> Found<'a> {
    it.map(Value::Duration).ok_or_else(|| Error::new("duration overflow"))
}

fn add<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => {
            context.make(a.len() + b.len())?;
            Ok(Value::text([&**a, &**b].concat()))
        }
        [Value::Bytes(a), Value::Bytes(b)] => {
            context.make(a.len() + b.len())?;
            Ok(Value::Bytes([&**a, &**b].concat().into()))
        }
        [Value::List(a), Value::List(b)] => {
            context.make_elements(a.len() + b.len())?;
            a.clone().concat(b, context.spent()).map(Value::List)
        }
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_add(*b)),
        [Value::Timestamp(at), Value::Duration(by)] | [Value::Duration(by), Value::Timestamp(at)] => {
            time::moved(*at, *by).map(Value::Timestamp)
        }
        _ => wrong(),
    }
}

fn subtract<'a>(args: &[Value<'a>]) -> Found<'a> {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_sub(*b)),
        [Value::Timestamp(at), Value::Duration(by)] => {
            let back = by.checked_neg().ok_or_else(|| Error::new("timestamp overflow"))?;
            time::moved(*at, back).map(Value::Timestamp)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            between(*a, *b).map(Value::Duration).ok_or_else(|| Error::new("integer overflow"))
        }
        _ => wrong(),
    }
}

fn between(one: Timestamp, two: Timestamp) -> Option<i64> {
    let seconds = i128::from(one.seconds) - i128::from(two.seconds);
    i64::try_from(seconds * 1_000_000_000 + i128::from(one.nanos) - i128::from(two.nanos)).ok()
}

fn ordered<'a>(args: &[Value<'a>], is: fn(Ordering) -> bool) -> Found<'a> {
    let [one, two] = args else { return wrong() };
    match (one, two) {
        // A number that is none is in no order, which is not an error.
        (Value::Double(_), Value::Int(_) | Value::Uint(_) | Value::Double(_))
        | (Value::Int(_) | Value::Uint(_), Value::Double(_)) => compare(one, two)
            .map(|order| Value::Bool(is(order)))
            .ok_or_else(|| Error::new("NaN values cannot be ordered")),
        _ => compare(one, two).map_or_else(wrong, |order| Ok(Value::Bool(is(order)))),
    }
}
