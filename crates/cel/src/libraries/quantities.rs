//! What is asked of quantities.

use forebay_apimachinery::quantity::{Nanos, ONE};

use super::function::{Found, Plain, wrong};
use crate::error::Error;
use crate::objects::Object;
use crate::objects::quantity::Quantity;
use crate::value::Value;

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "quantity" => |args, _| match args {
            [Value::String(text)] => Quantity::read(text).map(|it| Value::object(Object::Quantity(it))),
            _ => wrong(),
        },
        "isQuantity" => |args, _| match args {
            [Value::String(text)] => Ok(Value::Bool(Quantity::read(text).is_ok())),
            _ => wrong(),
        },
        "sign" => |args, _| on(args, |it| Ok(Value::Int(it.nanos.signum() as i64))),
        "isInteger" => |args, _| on(args, |it| Ok(Value::Bool(it.whole().is_some()))),
        "asInteger" => |args, _| {
            on(args, |it| {
                it.whole().map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
            })
        },
        "asApproximateFloat" => |args, _| on(args, |it| Ok(Value::Double(it.nanos as f64 / ONE as f64))),
        "add" => |args, _| combine(args, |by| by),
        "sub" => |args, _| combine(args, |by| by.saturating_neg()),
        _ => return None,
    })
}

fn on<'a>(args: &[Value<'a>], what: fn(&Quantity) -> Found<'a>) -> Found<'a> {
    match args {
        [Value::Object(it)] => match &**it {
            Object::Quantity(it) => what(it),
            _ => wrong(),
        },
        _ => wrong(),
    }
}

fn combine<'a>(args: &[Value<'a>], signed: fn(Nanos) -> Nanos) -> Found<'a> {
    let [Value::Object(one), other] = args else { return wrong() };
    let Object::Quantity(one) = &**one else { return wrong() };
    let by = match other {
        Value::Int(it) => Nanos::from(*it) * ONE,
        Value::Object(it) => match &**it {
            Object::Quantity(it) => it.nanos,
            _ => return wrong(),
        },
        _ => return wrong(),
    };
    Ok(Value::object(Object::Quantity(one.moved(signed(by)))))
}
