//! Types of custom resources: hand-written schemas of every kind of node, and random ones.

use forebay_crd::Definition;
use forebay_fieldmanager::FieldType;
use forebay_merge::TypeRef;
use serde_json::{Map, Value, json};

use crate::go;
use crate::random::Random;
use crate::types::{told, upstream_told};

const RANDOM: usize = 300;

/// A CRD whose objects have this schema.
pub fn crd(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn by_hand() -> Vec<Value> {
    let keyed = |keys: Value, item: Value| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": item});
    let port = json!({"type": "object", "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}});
    let fields = [
        json!({"type": "string"}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "string", "format": "byte"}),
        json!({"type": "integer", "format": "int32"}),
        json!({"type": "number"}),
        json!({"type": "boolean", "default": true}),
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}}}}),
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "x-kubernetes-map-type": "granular", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "additionalProperties": true}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}}}}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": port}),
        keyed(json!(["port", "protocol"]), port.clone()),
        keyed(
            json!(["kind"]),
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true, "properties": {"kind": {"type": "string", "default": "A"}}}),
        ),
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}),
    ];
    let named = fields.into_iter().enumerate().map(|(index, field)| (format!("f{index:02}"), field));
    let spec: Map<String, Value> = named.collect();
    let metadata = json!({"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}});
    vec![
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "metadata": metadata}}),
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}}}}),
    ]
}

/// A random structural schema.
pub fn random_schema(random: &mut Random, depth: usize) -> Value {
    let leaves = [
        json!({"type": "string"}),
        json!({"type": "string", "format": "uuid"}),
        json!({"type": "integer"}),
        json!({"type": "boolean"}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
    ];
    match random.below(if depth == 0 { 6 } else { 12 }) {
        leaf @ 0..6 => leaves[leaf].clone(),
        6 | 7 => random_object(random, depth),
        8 => json!({"type": "object", "additionalProperties": random_schema(random, depth - 1)}),
        9 => json!({"type": "array", "items": random_schema(random, depth - 1)}),
        10 => json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        _ => {
            let mut item = random_object(random, depth);
            item["properties"]["key"] = json!({"type": "string", "default": "k"});
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"], "items": item})
        }
    }
}

fn random_object(random: &mut Random, depth: usize) -> Value {
    let properties: Map<String, Value> =
        (0..random.below(4)).map(|index| (format!("p{index}"), random_schema(random, depth - 1))).collect();
    let mut object = json!({"type": "object", "properties": properties});
    match random.below(6) {
        0 => object["x-kubernetes-map-type"] = json!("atomic"),
        1 => object["x-kubernetes-preserve-unknown-fields"] = json!(true),
        2 if !properties.is_empty() => object["x-kubernetes-embedded-resource"] = json!(true),
        _ => {}
    }
    object
}

/// The same of a type and of all fields below it, told apart from what is beside it.
fn compare(path: &str, ours: FieldType<'_>, types: &Value, theirs: &Value, differ: &mut Vec<String>) {
    let (ours_told, theirs_told) = (told(ours), upstream_told(types, theirs));
    if ours_told != theirs_told {
        differ.push(format!("{path}: {ours_told}, but upstream: {theirs_told}"));
    }
    if matches!(ours, FieldType::BuiltIn(..)) || theirs["named"].is_string() {
        return;
    }
    let atom = theirs["named"].as_str().map_or(&theirs["inlined"], |name| &types[name]);
    for (name, of) in atom["map"]["fields"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let Some(field) = ours.field(name) else {
            differ.push(format!("{path}: not declared"));
            continue;
        };
        let default = ours.default_of(name);
        if default.as_ref() != of.get("default") {
            differ.push(format!("{path}: default {default:?}, but upstream: {:?}", of.get("default")));
        }
        compare(&path, field, types, &of["type"], differ);
    }
    if let (Some(list), Some(theirs)) = (ours.atom().list, atom.get("list")) {
        compare(&format!("{path}[]"), list.item.expect("an item"), types, &theirs["element"], differ);
    }
    if let (Some(item), Some(theirs)) = (ours.atom().map.and_then(|map| map.item), atom["map"].get("element"))
    {
        compare(&format!("{path}{{}}"), item, types, theirs, differ);
    }
}

#[test]
fn schemas_of_crds_become_the_types_that_kube_apiserver_makes_of_them() {
    let mut random = Random::new(1);
    let mut schemas = by_hand();
    let random_root = |random: &mut Random| json!({"type": "object", "properties": {"spec": random_object(random, 4), "status": random_object(random, 3)}});
    schemas.extend((0..RANDOM).map(|_| random_root(&mut random)));
    let crds: Vec<Value> = schemas.into_iter().map(crd).collect();
    let questions: String = crds.iter().map(|crd| format!("{crd}\n")).collect();
    let Some(answers) = go::ask(&["crds"], &questions) else { return };
    assert_eq!(answers.len(), crds.len());
    let mut differ = Vec::new();
    for (crd, types) in crds.iter().zip(&answers) {
        let definition = Definition::compile(crd);
        let schema = definition.versions[0].schema.as_ref().expect("a schema");
        let before = differ.len();
        compare(
            "",
            FieldType::of_schema(schema),
            types,
            &json!({"inlined": types["com.example.v1.Thing"]}),
            &mut differ,
        );
        if differ.len() > before {
            differ.push(format!("  in {}", crd["spec"]["versions"][0]["schema"]));
        }
    }
    assert!(differ.is_empty(), "{}", differ[..differ.len().min(20)].join("\n"));
}
