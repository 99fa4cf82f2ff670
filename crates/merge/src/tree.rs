//! Lists and objects as keys: only who wrote `fieldsV1` by hand has them.
//!
//! In: trees of values. Out: their order, and how they stand in a path. Never: fast.

use std::cmp::Ordering;

use forebay_apimachinery::json::go_quote;
use serde_json::{Map, Number, Value};

use crate::gotext;

/// Numbers, texts, booleans, lists, objects, null; numbers by what they are worth.
pub fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => order_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let items = a.iter().zip(b).map(|(a, b)| order(a, b));
            items.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => order_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn order_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        // JSON has no NaN.
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}

/// Name by name, as upstream: what has a name before the other has it is less, unless one of the two has no
/// more.
fn order_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for (index, name) in names.into_iter().enumerate() {
        let order = match (a.get(name), b.get(name)) {
            _ if index == a.len() => Ordering::Less,
            _ if index == b.len() => Ordering::Greater,
            (None, _) => Ordering::Greater,
            (_, None) => Ordering::Less,
            (Some(a), Some(b)) => order(a, b),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// How a value stands in a path.
pub fn path_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => gotext::number(number),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(path_text).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}={}", path_text(value))).collect()
        }
    }
}
