//! Lists of strings in what a client sends.
//!
//! In: JSON. Out: the strings. Never: a fault; what is none is left out.

use serde_json::Value;

/// The strings of an array.
pub fn texts(array: &Value) -> Vec<String> {
    array.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string).collect()
}
