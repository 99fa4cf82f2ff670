//! Lists that are sets or maps: no two items alike.
//!
//! In: a custom resource and its schema. Out: one Duplicate error for the second of each group of equal
//! items. Items that are objects or lists are compared by their JSON, scalars by type and value.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/listtype`.

use std::collections::HashMap;

use forebay_apimachinery::steps;
use serde_json::{Map, Value};

use super::field::{BadValue, Faults, FieldError, Path};
use super::schema::{Flags, Node, Schema};
use forebay_apimachinery::go_format as go;

impl Schema {
    /// Returns the repeated items of all lists of a whole object.
    pub fn validate_lists(&self, object: &Value) -> Vec<FieldError> {
        let mut faults = Faults::default();
        visit(object, self.root(), &Path::NIL, &mut faults);
        faults.into_vec()
    }
}

fn visit(value: &Value, node: &Node, path: &Path<'_>, errors: &mut Faults) {
    if !node.has(Flags::KEYED_LIST_BELOW) {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(schema) = node.additional_schema() {
                    visit(value, schema, &path.key(name), errors);
                }
                if let Some(schema) = node.property(name) {
                    visit(value, schema, &path.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            if node.has(Flags::LIST_SET) {
                let repeated = second_of_equals(items.iter().map(identity));
                let errs = repeated.map(|i| FieldError::duplicate(&path.index(i), BadValue::Json(&items[i])));
                errors.extend(errs);
            } else if node.has(Flags::LIST_MAP) {
                map_items(items, node, path, errors);
            }
            if let Some(schema) = node.item() {
                for (i, item) in items.iter().enumerate() {
                    visit(item, schema, &path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn map_items(items: &[Value], node: &Node, path: &Path<'_>, errors: &mut Faults) {
    // Once: for the whole list.
    if let Some(i) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        errors.extend([FieldError::invalid(&path.index(i), BadValue::Json(&items[i]), detail)]);
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| keys_of(item, node)).collect();
    let identities = keys.iter().map(|keys| match (node.list_map_keys(), keys) {
        // A single key is compared like the item of a set.
        ([name], keys) => keys.get(&**name).map(identity).unwrap_or_default(),
        (_, keys) => identity(keys),
    });
    let repeated = second_of_equals(identities);
    errors.extend(repeated.map(|i| FieldError::duplicate(&path.index(i), BadValue::Json(&keys[i]))));
}

/// The key fields that an item has.
fn keys_of(item: &Value, node: &Node) -> Value {
    let (Some(item), names) = (item.as_object(), node.list_map_keys()) else {
        return Value::Object(Map::new());
    };
    steps::add(item.len().min(names.len()) as u64);
    if item.len() < names.len() {
        let is_key = |name: &str| names.binary_search_by(|key| (**key).cmp(name)).is_ok();
        let keys = item.iter().filter(|(name, _)| is_key(name));
        return keys.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    let keys = names.iter().filter_map(|name| item.get_key_value(&**name));
    keys.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Text that is equal for equal values: `1` and `1.0` differ alone, but not inside of an object.
fn identity(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => go::to_json(value),
        scalar => scalar.to_string(),
    }
}

/// Positions of the second of each group of equals.
fn second_of_equals(identities: impl Iterator<Item = String>) -> impl Iterator<Item = usize> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut second = Vec::new();
    for (i, identity) in identities.enumerate() {
        let count = times.entry(identity).or_default();
        *count += 1;
        if *count == 2 {
            second.push(i);
        }
    }
    second.into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(list: Value, items: Value, want: &[&str]) {
        let schema =
            json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": list}}});
        let object = json!({"m": {"k": items}});
        let found: Vec<String> =
            Schema::compile(&schema).validate_lists(&object).iter().map(FieldError::to_string).collect();
        assert_eq!(found, want, "{object}");
    }

    #[test]
    fn sets_hold_each_value_once() {
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        check(set.clone(), json!(["a", "b"]), &[]);
        check(
            set.clone(),
            json!(["a", "b", "a", "a", "b"]),
            &["m[k][2]: Duplicate value: \"a\"", "m[k][4]: Duplicate value: \"b\""],
        );
        check(set.clone(), json!([1, 1.0, true, "1"]), &[]);
        check(set, json!([{"a": 1}, {"a": 1.0}]), &["m[k][1]: Duplicate value: {\"a\":1}"]);
    }

    #[test]
    fn maps_hold_each_key_once() {
        let map = |keys: Value| {
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
                "items": {"type": "object", "properties": {"a": {"type": "string"}}}})
        };
        check(
            map(json!(["a"])),
            json!([{"a": "x", "c": 1}, {"a": "y"}, {"a": "x"}]),
            &["m[k][2]: Duplicate value: {\"a\":\"x\"}"],
        );
        check(map(json!(["a"])), json!([{"a": 1}, {"a": 1.0}]), &[]);
        check(map(json!(["a"])), json!([{}, null, {"c": 1}]), &["m[k][1]: Duplicate value: {}"]);
        check(
            map(json!(["a", "b"])),
            json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}]),
            &["m[k][1]: Duplicate value: {\"a\":1,\"b\":2}"],
        );
        check(
            map(json!(["a"])),
            json!([{}, "x"]),
            &["m[k][1]: Invalid value: \"x\": must be an object for an array of list-type map"],
        );
    }

    #[test]
    fn lists_inside_of_items_are_judged_too() {
        let inner = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let outer = json!({"type": "array", "items": {"type": "object", "properties": {"s": inner}}});
        check(outer, json!([{}, {"s": ["a", "a"]}]), &["m[k][1].s[1]: Duplicate value: \"a\""]);
    }
}
