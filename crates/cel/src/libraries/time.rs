//! What is asked of points in time and spans of it.

use super::function::{Found, Plain, wrong};
use crate::time::{Civil, offset_at, zone_of};
use crate::value::Value;

const SECOND: i64 = 1_000_000_000;

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "getDate" => |args, _| part(args, |at| at.day),
        "getDayOfMonth" => |args, _| part(args, |at| at.day - 1),
        "getDayOfWeek" => |args, _| part(args, |at| at.weekday),
        "getDayOfYear" => |args, _| part(args, |at| at.day_of_year),
        "getFullYear" => |args, _| part(args, |at| at.year),
        "getMonth" => |args, _| part(args, |at| at.month - 1),
        "getHours" => |args, _| match args {
            [Value::Duration(it)] => Ok(Value::Int(it / (3600 * SECOND))),
            _ => part(args, |at| at.second_of_day / 3600),
        },
        "getMinutes" => |args, _| match args {
            [Value::Duration(it)] => Ok(Value::Int(it / (60 * SECOND))),
            _ => part(args, |at| at.second_of_day / 60 % 60),
        },
        "getSeconds" => |args, _| match args {
            [Value::Duration(it)] => Ok(Value::Int(it / SECOND)),
            _ => part(args, |at| at.second_of_day % 60),
        },
        "getMilliseconds" => |args, _| match args {
            [Value::Duration(it)] => Ok(Value::Int(it / 1_000_000)),
            _ => part(args, |at| at.nanos / 1_000_000),
        },
        _ => return None,
    })
}

fn part<'a>(args: &[Value<'a>], of: fn(&Civil) -> i64) -> Found<'a> {
    let (at, offset) = match args {
        [Value::Timestamp(at)] => (at, 0),
        [Value::Timestamp(at), Value::String(zone)] => (at, offset_at(at.seconds, &zone_of(zone)?)),
        _ => return wrong(),
    };
    Ok(Value::Int(of(&Civil::of(at.seconds + offset, at.nanos))))
}
