//! What several plugins do: an item appended, the name of a class.

use forebay_strategy::value::{Members, set};
use serde_json::Value;

/// Key of the taint of a node that is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub fn push(object: &mut Members, name: &str, item: Value) {
    match object.get_mut(name) {
        Some(Value::Array(items)) => items.push(item),
        _ => set(object, name, Some(Value::Array(vec![item]))),
    }
}

pub fn name_of(class: &Value) -> Option<&str> {
    class["metadata"]["name"].as_str()
}
