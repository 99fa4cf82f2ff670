//! LimitRanges and pods that tests of limits are about.

use forebay_strategy::value::Members;
use serde_json::{Value, json};

pub fn members(value: &Value) -> &Members {
    value.as_object().expect("an object")
}

pub fn range(limit: Value) -> Value {
    json!({"spec": {"limits": [limit]}})
}

/// A pod of containers that ask for these, and as many init containers.
pub fn pod(containers: &[(Value, Value)], init: &[(Value, Value)]) -> Value {
    let listed = |all: &[(Value, Value)]| -> Vec<Value> {
        let named = all.iter().enumerate();
        named
            .map(|(at, (requests, limits))| {
                json!({"name": format!("foo-{at}"), "resources": {"requests": requests, "limits": limits}})
            })
            .collect()
    };
    json!({"metadata": {}, "spec": {"containers": listed(containers), "initContainers": listed(init)}})
}

/// So many names in the list of a range for containers.
pub fn many(list: &str, count: usize) -> Value {
    let amounts: Members = (0..count).map(|at| (format!("a.b/c{at:06}"), json!("1"))).collect();
    range(json!({"type": "Container", list: amounts}))
}

pub fn bare(count: usize) -> Value {
    pod(&vec![(json!({}), json!({})); count], &[])
}
