//! Drops fields that a schema does not know, and nulls that it does not allow.
//!
//! In: a decoded custom resource. Out: the same without unknown fields, and the paths of what was dropped.
//! The type and metadata of the root and of embedded resources stay. Never judges values.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/pruning`, `…/defaulting/prunenulls.go`.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::field::Unknown;
use super::schema::{Additional, Flags, Node, Schema};

impl Schema {
    /// Drops unknown fields of a whole object; returns their paths, in order.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune(object, self.root(), Meta::Root)
    }

    /// Drops nulls from objects where the schema neither allows them nor has a default for them.
    pub fn prune_nulls(&self, object: &mut Value) {
        prune_nulls(object, Some(self.root()));
    }
}

/// Whether the pruned value is an object with metadata of its own.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Meta {
    /// It is, whatever the schema says.
    Root,
    /// It is if the schema says so.
    AsSchema,
}

pub(super) fn prune(value: &mut Value, node: &Node, meta: Meta) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.prune(value, Some(node), meta == Meta::Root);
    pruner.unknown.paths.sort();
    pruner.unknown.paths
}

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// What a schema says of a field that may be unknown to it.
enum Known<'a> {
    /// A schema, or leave to hold anything flat.
    Yes(Option<&'a Node>),
    No,
}

fn known<'a>(node: &'a Node, name: &str) -> Known<'a> {
    match (node.property(name), &node.additional) {
        (Some(property), _) => Known::Yes(Some(property)),
        (None, Additional::Unset) => Known::No,
        (None, Additional::Schema(schema)) => Known::Yes(Some(schema)),
        (None, Additional::Allow | Additional::Deny) => Known::Yes(None),
    }
}

#[derive(Default)]
struct Pruner {
    path: String,
    unknown: Unknown,
}

impl Pruner {
    /// Runs a step one name deeper.
    fn at_name(&mut self, name: &str, step: impl FnOnce(&mut Self)) {
        let mark = self.path.len();
        if mark > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        step(self);
        self.path.truncate(mark);
    }

    /// What is here is not known.
    fn unknown(&mut self) {
        self.unknown.extend(std::iter::once_with(|| self.path.clone()));
    }

    fn at_index(&mut self, index: usize, step: impl FnOnce(&mut Self)) {
        let mark = self.path.len();
        let _ = write!(self.path, "[{index}]");
        step(self);
        self.path.truncate(mark);
    }

    fn prune(&mut self, value: &mut Value, node: Option<&Node>, is_root: bool) {
        if let Some(node) = node.filter(|node| node.has(Flags::PRESERVE_UNKNOWN)) {
            return self.skip(value, node, is_root);
        }
        match value {
            Value::Object(map) => self.prune_object(map, node, is_root),
            Value::Array(items) => {
                let schema = node.and_then(Node::item);
                for (i, item) in items.iter_mut().enumerate() {
                    self.at_index(i, |p| p.prune(item, schema, false));
                }
            }
            _ => {}
        }
    }

    fn prune_object(&mut self, map: &mut Map<String, Value>, node: Option<&Node>, is_root: bool) {
        map.retain(|name, value| {
            let Some(node) = node else {
                self.at_name(name, Self::unknown);
                return false;
            };
            if (is_root || node.has(Flags::EMBEDDED)) && is_meta(name) {
                return true;
            }
            match known(node, name) {
                Known::Yes(schema) => {
                    self.at_name(name, |p| p.prune(value, schema, false));
                    true
                }
                Known::No => {
                    if !is_meta(name) || !self.path.is_empty() {
                        self.at_name(name, Self::unknown);
                    }
                    false
                }
            }
        });
    }

    /// Keeps everything here, but prunes inside of what the schema names.
    fn skip(&mut self, value: &mut Value, node: &Node, is_root: bool) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if (is_root || node.has(Flags::EMBEDDED)) && is_meta(name) {
                        continue;
                    }
                    if let Known::Yes(schema) = known(node, name) {
                        self.at_name(name, |p| p.prune(value, schema, false));
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = node.item() else { return };
                for (i, item) in items.iter_mut().enumerate() {
                    self.at_index(i, |p| p.skip(item, schema, false));
                }
            }
            _ => {}
        }
    }
}

fn prune_nulls(value: &mut Value, node: Option<&Node>) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let schema = node.and_then(|node| node.property(name).or_else(|| node.additional_schema()));
            let unwanted = |node: &Node| !node.nullable() && node.default_value().is_none();
            if value.is_null() && schema.is_some_and(unwanted) {
                return false;
            }
            prune_nulls(value, schema);
            true
        }),
        Value::Array(items) => {
            let schema = node.and_then(Node::item);
            items.iter_mut().for_each(|item| prune_nulls(item, schema));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_more_paths_are_kept_than_a_client_reads() {
        let fields: Map<String, Value> =
            (0..20_000).map(|number| (format!("f{number}"), Value::Null)).collect();
        let mut object = json!({"m": {"k".repeat(50_000): fields}});
        let schema = json!({"type": "object", "properties": {"m": {"type": "object",
            "additionalProperties": {"type": "object"}}}});
        let unknown = Schema::compile(&schema).prune(&mut object);
        assert!((1..50).contains(&unknown.len()), "{}", unknown.len());
        assert_eq!(
            object["m"].as_object().map(|kept| kept.values().all(|value| value == &json!({}))),
            Some(true)
        );
    }

    fn check(schema: Value, object: Value, want: Value, unknown: &[&str]) {
        let mut pruned = object.clone();
        let found = Schema::compile(&schema).prune(&mut pruned);
        assert_eq!(
            (&pruned, found),
            (&want, unknown.iter().map(|s| (*s).to_owned()).collect()),
            "{schema} {object}"
        );
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "integer"}, "l": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"c": {"type": "string"}}}}}}}});
        check(
            schema.clone(),
            json!({"kind": "Foo", "apiVersion": "v1", "metadata": {"x": 1}, "status": {}, "spec": {"a": 1, "z": 2,
                "l": [{"b": "x", "y": 1}, 5], "m": {"k.1": {"c": "x", "d": {"e": 1}}}}}),
            json!({"kind": "Foo", "apiVersion": "v1", "metadata": {"x": 1}, "spec": {"a": 1,
                "l": [{"b": "x"}, 5], "m": {"k.1": {"c": "x"}}}}),
            &["spec.l[0].y", "spec.m.k.1.d", "spec.z", "status"],
        );
        check(schema, json!({"spec": {"a": {"nested": 1}}}), json!({"spec": {"a": {}}}), &["spec.a.nested"]);
    }

    #[test]
    fn preserved_parts_keep_what_the_schema_does_not_name() {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "integer"},
                "any": {"x-kubernetes-preserve-unknown-fields": true}}}}});
        check(
            schema,
            json!({"extra": {"x": {"y": 1}}, "spec": {"a": 1, "b": 2, "any": {"p": {"q": [{"r": 1}]}}}}),
            json!({"extra": {"x": {"y": 1}}, "spec": {"a": 1, "any": {"p": {"q": [{"r": 1}]}}}}),
            &["spec.b"],
        );
    }

    #[test]
    fn embedded_resources_keep_their_type_and_metadata() {
        let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}});
        let schema = json!({"type": "object", "properties": {"e": embedded, "plain": {"type": "object", "properties": {}}}});
        check(
            schema,
            json!({"e": {"apiVersion": "v1", "kind": "X", "metadata": {"z": 1}, "spec": {"a": 1, "b": 1}, "status": 1},
                "plain": {"kind": "X"}}),
            json!({"e": {"apiVersion": "v1", "kind": "X", "metadata": {"z": 1}, "spec": {"a": 1}}, "plain": {}}),
            &["e.spec.b", "e.status", "plain.kind"],
        );
    }

    #[test]
    fn additional_properties_without_a_schema_hold_flat_values_only() {
        let schema =
            json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": true}}});
        check(schema, json!({"m": {"a": 1, "b": {"c": 1}}}), json!({"m": {"a": 1, "b": {}}}), &["m.b.c"]);
    }

    #[test]
    fn nulls_go_unless_allowed_or_defaulted() {
        let schema = json!({"type": "object", "properties": {
            "plain": {"type": "string"}, "nullable": {"type": "string", "nullable": true},
            "defaulted": {"type": "string", "default": "x"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}}}});
        let mut object = json!({"plain": null, "nullable": null, "defaulted": null, "unknown": null,
            "map": {"a": null, "b": "x"}, "list": [null, "x"]});
        Schema::compile(&schema).prune_nulls(&mut object);
        assert_eq!(
            object,
            json!({"nullable": null, "defaulted": null, "unknown": null, "map": {"b": "x"}, "list": [null, "x"]})
        );
    }
}
