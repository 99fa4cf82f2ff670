//! From one type to another.

use super::floats;
use super::function::{Found, Plain, wrong};
use crate::error::Error;
use crate::objects::Object;
use crate::time;
use crate::value::{Timestamp, Value};

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "dyn" => |args, _| Ok(args[0].clone()),
        "type" => |args, _| Ok(Value::Type(args[0].type_name().into())),
        "bool" => |args, _| match &args[0] {
            it @ Value::Bool(_) => Ok(it.clone()),
            Value::String(text) => match &**text {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
                _ => Err(Error::new("type conversion error from 'string' to 'bool'")),
            },
            _ => wrong(),
        },
        "bytes" => |args, _| match &args[0] {
            it @ Value::Bytes(_) => Ok(it.clone()),
            Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
            _ => wrong(),
        },
        "double" => |args, _| double(&args[0]),
        "int" => |args, _| int(&args[0]),
        "uint" => |args, _| uint(&args[0]),
        "string" => |args, _| string(&args[0]),
        "duration" => |args, _| match &args[0] {
            it @ Value::Duration(_) => Ok(it.clone()),
            Value::Int(_) => {
                Err(Error::new("type conversion error from 'int' to 'google.protobuf.Duration'"))
            }
            Value::String(text) => time::duration(text).map(Value::Duration),
            _ => wrong(),
        },
        "timestamp" => |args, _| match &args[0] {
            it @ Value::Timestamp(_) => Ok(it.clone()),
            Value::Int(seconds) => time::in_range(Timestamp::utc(*seconds, 0)).map(Value::Timestamp),
            Value::String(text) => time::timestamp(text).map(Value::Timestamp),
            _ => wrong(),
        },
        _ => return None,
    })
}

fn double<'a>(it: &Value<'a>) -> Found<'a> {
    Ok(Value::Double(match it {
        Value::Double(it) => *it,
        Value::Int(it) => *it as f64,
        Value::Uint(it) => *it as f64,
        Value::String(text) => {
            floats::read(text).ok_or_else(|| Error::new("type conversion error from 'string' to 'double'"))?
        }
        _ => return wrong(),
    }))
}

fn int<'a>(it: &Value<'a>) -> Found<'a> {
    let overflow = || Error::new("integer overflow");
    Ok(Value::Int(match it {
        Value::Int(it) => *it,
        Value::Uint(it) => i64::try_from(*it).map_err(|_| overflow())?,
        Value::Double(it) if *it > -9_223_372_036_854_775_808.0 && *it < 9_223_372_036_854_775_808.0 => {
            *it as i64
        }
        Value::Double(_) => return Err(overflow()),
        Value::Duration(nanos) => *nanos,
        Value::Timestamp(at) => at.seconds,
        Value::String(text) => {
            text.parse().map_err(|_| Error::new("type conversion error from 'string' to 'int'"))?
        }
        _ => return wrong(),
    }))
}

fn uint<'a>(it: &Value<'a>) -> Found<'a> {
    let overflow = || Error::new("unsigned integer overflow");
    Ok(Value::Uint(match it {
        Value::Uint(it) => *it,
        Value::Int(it) => u64::try_from(*it).map_err(|_| overflow())?,
        Value::Double(it) if *it >= 0.0 && *it < 18_446_744_073_709_551_616.0 => *it as u64,
        Value::Double(_) => return Err(overflow()),
        Value::String(text) if !text.starts_with('+') => {
            text.parse().map_err(|_| Error::new("type conversion error from 'string' to 'uint'"))?
        }
        Value::String(_) => return Err(Error::new("type conversion error from 'string' to 'uint'")),
        _ => return wrong(),
    }))
}

fn string<'a>(it: &Value<'a>) -> Found<'a> {
    Ok(Value::text(match it {
        same @ Value::String(_) => return Ok(same.clone()),
        Value::Bool(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Uint(it) => it.to_string(),
        Value::Double(it) => floats::text(*it),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(Error::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Value::Duration(nanos) => time::seconds_text(*nanos),
        Value::Timestamp(at) => time::text(*at),
        Value::Object(it) => match &**it {
            Object::Ip(it) => it.to_string(),
            Object::Cidr(it) => it.to_string(),
            _ => return wrong(),
        },
        _ => return wrong(),
    }))
}
