//! Which old value a new one is compared with on an update, and whether the two are the same.
//!
//! Fields correlate by name, items of a list that is a map by their keys, other items not at all. A field
//! without a schema does not correlate, so an object that has one never counts as unchanged; Kubernetes does
//! it so.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::schema::{Flags, Kind, Node};

/// The old items of a list, by the keys of its schema; empty for lists that do not correlate.
pub(crate) struct ListIndex<'a> {
    keys: Vec<&'a str>,
    /// key values as JSON -> the first old item that has them
    items: HashMap<String, &'a Value>,
}

impl<'a> ListIndex<'a> {
    pub(crate) fn of(node: &'a Node, old: &'a Value) -> Self {
        let mut index = ListIndex { keys: Vec::new(), items: HashMap::new() };
        let (true, Kind::Array, Value::Array(items)) = (node.has(Flags::LIST_MAP), node.kind, old) else {
            return index;
        };
        index.keys = node.list_map_keys().iter().map(|key| &**key).collect();
        for item in items {
            if let Some(key) = index.key(item) {
                index.items.entry(key).or_insert(item);
            }
        }
        index
    }

    pub(crate) fn find(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&self.key(item)?).copied()
    }

    fn key(&self, item: &Value) -> Option<String> {
        let item = item.as_object().filter(|_| !self.keys.is_empty())?;
        let mut key = String::new();
        for name in &self.keys {
            let value = item.get(*name).filter(|v| !(v.is_null() || v.is_array() || v.is_object()))?;
            key.push_str(&value.to_string());
            key.push('\0');
        }
        Some(key)
    }
}

/// Whether a value is what it was before, items of keyed lists in any order.
pub(crate) fn is_unchanged(node: &Node, value: &Value, old: &Value) -> bool {
    match (value, old) {
        (Value::Array(items), Value::Array(old_items)) => {
            items.len() == old_items.len() && list_is_unchanged(node, items, old)
        }
        (Value::Object(fields), Value::Object(old)) => {
            fields.len() == old.len() && object_is_unchanged(node, fields, old)
        }
        (value, old) => value == old,
    }
}

fn list_is_unchanged(node: &Node, items: &[Value], old: &Value) -> bool {
    if !node.has(Flags::LIST_MAP) {
        return old.as_array().is_some_and(|old| old == items);
    }
    let index = ListIndex::of(node, old);
    let Some(schema) = node.item() else { return items.is_empty() };
    items.iter().all(|item| index.find(item).is_some_and(|old| is_unchanged(schema, item, old)))
}

fn object_is_unchanged(node: &Node, fields: &Map<String, Value>, old: &Map<String, Value>) -> bool {
    fields.iter().all(|(name, value)| {
        let schema = node.property(name).or_else(|| node.additional_schema());
        match (schema, old.get(name)) {
            (Some(schema), Some(old)) => is_unchanged(schema, value, old),
            _ => false,
        }
    })
}
