//! What functions do: the standard ones, and those of apiserver's libraries.
//!
//! In: arguments. Out: values, or errors in upstream's words. Never: a cost, which `cost/` counts; a depth
//! that an expression chooses.

use std::sync::Arc;

use crate::error::Error;
use crate::objects::Object;
use crate::value::{Map, MapKey, TextValue, Value};

mod addresses;
mod authorize;
pub(crate) mod collections;
mod convert;
mod floats;
mod formats;
pub(crate) mod formatting;
mod function;
pub(crate) mod matcher;
mod numbers;
mod quantities;
mod semver;
mod texts;
mod time;
mod urls;

use function::Plain;
pub(crate) use function::{Context, Function};

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<Function> {
    let found = numbers::find(name)
        .or_else(|| convert::find(name))
        .or_else(|| texts::find(name))
        .or_else(|| collections::find(name))
        .or_else(|| time::find(name))
        .or_else(|| of_kubernetes(name))?;
    Some(Function::Plain(found))
}

fn of_kubernetes(name: &str) -> Option<Plain> {
    addresses::find(name)
        .or_else(|| quantities::find(name))
        .or_else(|| semver::find(name))
        .or_else(|| shared(name))
        .or_else(|| urls::find(name))
        .or_else(|| formats::find(name))
        .or_else(|| authorize::find(name))
        .or_else(|| matcher::find(name))
}

/// Functions that quantities and versions both have.
fn shared(name: &str) -> Option<Plain> {
    use std::cmp::Ordering;
    fn order<'a>(args: &[Value<'a>]) -> Result<Ordering, Error> {
        let [Value::Object(one), Value::Object(two)] = args else { return Err(Error::Unsuited) };
        match (&**one, &**two) {
            (Object::Quantity(one), Object::Quantity(two)) => Ok(one.cmp(two)),
            (Object::Semver(one), Object::Semver(two)) => Ok(one.order(two)),
            _ => Err(Error::Unsuited),
        }
    }
    Some(match name {
        "isGreaterThan" => |args, _| order(args).map(|order| Value::Bool(order.is_gt())),
        "isLessThan" => |args, _| order(args).map(|order| Value::Bool(order.is_lt())),
        "compareTo" => |args, _| order(args).map(|order| Value::Int(order as i64)),
        _ => return None,
    })
}

/// What is said of arguments that a function is not for: how much, depends on how upstream calls it.
pub(crate) fn refused(name: &str, args: &[Value<'_>]) -> Error {
    let is_receiver =
        matches!(args.first(), Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)));
    let is_operand = match (name, args.first()) {
        ("_<_" | "_<=_" | "_>_" | "_>=_", Some(Value::Bool(_) | Value::Bytes(_))) => true,
        ("_+_", Some(Value::Bytes(_) | Value::List(_))) => true,
        ("-_", Some(Value::Uint(_))) | ("_%_", Some(Value::Double(_))) => false,
        ("size" | "sort", _) => false,
        _ => matches!(args.first(), Some(Value::Int(_) | Value::Uint(_) | Value::Double(_))),
    };
    match name {
        "!_" | "@in" | "contains" | "startsWith" | "endsWith" | "matches" => Error::no_such_overload(),
        "find" | "findAll" if !matches!(args.first(), Some(Value::String(_))) => Error::no_such_overload(),
        "findAll" if matches!(args, [_, Value::String(_), _]) => Error::no_such_overload(),
        "_<_" | "_<=_" | "_>_" | "_>=_" | "_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "-_" | "size" | "sort" => {
            if is_operand || is_receiver {
                Error::no_such_overload()
            } else {
                Error::new(format!("no such overload: {name}"))
            }
        }
        "flatten" => {
            let types: Vec<_> = args.iter().map(of_go).collect();
            Error::new(format!("no such overload: {}.flatten({})", types[0], types[1..].join(", ")))
        }
        _ => {
            let types: Vec<_> = args.iter().map(Value::type_name).collect();
            Error::new(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}

/// A value's type with its parameters.
fn of_go<'v>(value: &'v Value<'_>) -> &'v str {
    match value {
        Value::Map(_) => "map(dyn, dyn)",
        Value::List(_) => "list(dyn)",
        other => other.type_name(),
    }
}

/// A constant as nothing borrows it.
pub(crate) fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Null => Value::Null,
        Value::Bool(it) => Value::Bool(it),
        Value::Int(it) => Value::Int(it),
        Value::Uint(it) => Value::Uint(it),
        Value::Double(it) => Value::Double(it),
        Value::String(text) => Value::String(owned_text(text)),
        Value::Bytes(it) => Value::Bytes(it),
        Value::Duration(it) => Value::Duration(it),
        Value::Timestamp(it) => Value::Timestamp(it),
        Value::Type(it) => Value::Type(it),
        Value::Object(it) => Value::Object(it),
        // A literal with a type's name is no constant.
        Value::Struct(_) | Value::Composed => Value::Null,
        // What is owned is as high as it was.
        Value::Optional(it) => same(Value::optional(it.map(|it| owned(collections::taken(it))))),
        Value::List(list) => {
            same(Value::list(list.to_vec().unwrap_or_default().into_iter().map(owned).collect()))
        }
        Value::Map(Map::Owned(entries)) => {
            let entries = Arc::unwrap_or_clone(entries).into_map().into_iter();
            same(Value::map(entries.map(|(key, value)| (owned_key(key), owned(value))).collect()))
        }
        // A constant is no tree.
        Value::Map(Map::Tree(..)) => Value::Null,
    }
}

fn same(made: Result<Value<'static>, Error>) -> Value<'static> {
    made.unwrap_or(Value::Null)
}

fn owned_key(key: MapKey<'_>) -> MapKey<'static> {
    match key {
        MapKey::Bool(it) => MapKey::Bool(it),
        MapKey::Number(it, signed) => MapKey::Number(it, signed),
        MapKey::String(text) => MapKey::String(owned_text(text)),
    }
}

fn owned_text(text: TextValue<'_>) -> TextValue<'static> {
    match text {
        TextValue::Borrowed(text) => TextValue::Shared(text.into()),
        TextValue::Shared(text) => TextValue::Shared(text),
    }
}
