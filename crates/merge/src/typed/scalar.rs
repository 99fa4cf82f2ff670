//! Scalars: whether a value is one of a kind, and whether two values are the same.
//!
//! In: values. Out: what is wrong, in upstream's words; yes or no. Never: a path.

use serde_json::{Number, Value};

use crate::gotext;
use crate::schema::ScalarType;

/// What is wrong with `value`, if it is no such scalar; null is any.
pub fn fault(scalar: ScalarType, value: &Value, side: &str) -> Option<String> {
    let is_right = match value {
        Value::Null => true,
        Value::Number(_) => matches!(scalar, ScalarType::Numeric | ScalarType::Untyped),
        Value::String(_) => matches!(scalar, ScalarType::String | ScalarType::Untyped),
        Value::Bool(_) => matches!(scalar, ScalarType::Boolean | ScalarType::Untyped),
        Value::Array(_) | Value::Object(_) => false,
    };
    (!is_right).then(|| match scalar {
        ScalarType::Numeric => {
            format!("{side}expected numeric (int or float), got {}", gotext::type_of(value))
        }
        ScalarType::String => format!("{side}expected string, got {}", gotext::shown_in_full(value)),
        ScalarType::Boolean => format!("{side}expected boolean, got {}", gotext::shown(value)),
        ScalarType::Untyped => format!("{side}expected any scalar, got {}", gotext::shown(value)),
    })
}

/// Whether two values are the same; numbers by what they are worth. Cost: linear.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => equal_numbers(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let same = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b,
    }
}

fn equal_numbers(a: &Number, b: &Number) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        _ => a.as_f64() == b.as_f64(),
    }
}
