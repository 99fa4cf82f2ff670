//! The definition of a custom resource.
//!
//! In: the schema of a CRD's version as written, and the names of its kind. Out: the definitions of the kind
//! and of its list. Never: judges the schema; what is not structural is left out by the caller.
//!
//! Source: apiextensions-apiserver v1.36.3 `controller/openapi/builder`, `controller/openapi/v2`.

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::dialect::Dialect;
use super::gvk::gvk;

/// Deeper schemas than this are cut off; a body cannot nest deeper either.
const DEPTH_MAX: usize = 160;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Members that say nothing when they are false or empty, and are left out then.
const OMITTED_WHEN_EMPTY: [&str; 16] = [
    "nullable",
    "uniqueItems",
    "exclusiveMinimum",
    "exclusiveMaximum",
    PRESERVE,
    EMBEDDED,
    INT_OR_STRING,
    "type",
    "description",
    "title",
    "format",
    "pattern",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
];

/// Members that OpenAPI v2, or kubectl's reading of it, cannot cope with.
const NOT_IN_V2: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "nullable", "default"];

/// The names that a version of a CRD gives its kind.
#[derive(Clone, Copy, Debug)]
pub struct CustomKind<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    pub list_kind: &'a str,
    /// Dotted paths that field selectors may name.
    pub selectable_fields: &'a [String],
}

/// What a schema is written with.
#[derive(Clone, Copy)]
struct Writer<'d> {
    descriptions: &'d Descriptions,
    dialect: Dialect,
}

/// The name of a custom definition: the group backwards, version and kind.
pub fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let mut name: String = group.rsplit('.').collect::<Vec<_>>().join(".");
    for part in [version, kind] {
        name.push('.');
        name.push_str(part);
    }
    name
}

/// The definition of the kind.
///
/// - `schema`: `openAPIV3Schema`, if there is one and it is structural. Without it any object will do.
pub fn custom_definition(
    kind: &CustomKind<'_>,
    schema: Option<&Value>,
    descriptions: &Descriptions,
    dialect: Dialect,
) -> Value {
    let writer = Writer { descriptions, dialect };
    let is_open =
        |schema: &Map<String, Value>| dialect == Dialect::V2 && schema.get(PRESERVE) == Some(&json!(true));
    let mut definition = match schema.and_then(Value::as_object) {
        // kubectl would refuse every other field if some were named.
        Some(written) if !is_open(written) => {
            let mut object = converted(written, writer, 0);
            object.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
                insert_type_meta(properties, writer);
            }
            object
        }
        _ => Map::from_iter([("type".to_string(), json!("object"))]),
    };
    let gvks = json!([gvk(kind.group, kind.version, kind.kind)]);
    definition.insert("x-kubernetes-group-version-kind".into(), gvks);
    insert_selectable_fields(&mut definition, kind);
    Value::Object(definition)
}

/// The definition of the kind's list.
pub fn custom_list_definition(kind: &CustomKind<'_>, descriptions: &Descriptions, dialect: Dialect) -> Value {
    let item = dialect.reference(&custom_name(kind.group, kind.version, kind.kind));
    let said = |field: &str| descriptions.of_any_list(field).unwrap_or_default();
    let mut definition = json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string", "description": said("apiVersion") },
            "kind": { "type": "string", "description": said("kind") },
            "metadata": described_reference(LIST_META, said("metadata"), dialect),
            "items": { "type": "array", "items": { "$ref": item }, "description": said("items") },
        },
        "x-kubernetes-group-version-kind": [gvk(kind.group, kind.version, kind.list_kind)],
    });
    if let Some(definition) = definition.as_object_mut() {
        insert_selectable_fields(definition, kind);
    }
    definition
}

fn insert_selectable_fields(definition: &mut Map<String, Value>, kind: &CustomKind<'_>) {
    if !kind.selectable_fields.is_empty() {
        let fields: Value = kind.selectable_fields.iter().map(|path| json!({ "fieldPath": path })).collect();
        definition.insert("x-kubernetes-selectable-fields".into(), fields);
    }
}

fn insert_type_meta(properties: &mut Map<String, Value>, writer: Writer<'_>) {
    let said = |field: &str| writer.descriptions.of_any_kind(field).unwrap_or_default();
    for field in ["apiVersion", "kind"] {
        properties.insert(field.into(), json!({ "type": "string", "description": said(field) }));
    }
    let metadata = described_reference(OBJECT_META, said("metadata"), writer.dialect);
    properties.insert("metadata".into(), metadata);
}

/// A reference with a description beside it.
fn described_reference(name: &str, description: &str, dialect: Dialect) -> Value {
    let reference = dialect.reference(name);
    match dialect {
        Dialect::V2 => json!({ "$ref": reference, "description": description }),
        Dialect::V3 => json!({ "allOf": [{ "$ref": reference }], "description": description }),
    }
}

/// A schema and all below it.
fn converted(schema: &Map<String, Value>, writer: Writer<'_>, depth: usize) -> Map<String, Value> {
    let dialect = writer.dialect;
    let mut out = Map::new();
    if depth >= DEPTH_MAX {
        return out;
    }
    let below = |value: &Value| match value.as_object() {
        Some(schema) => Value::Object(converted(schema, writer, depth + 1)),
        None => value.clone(),
    };
    for (member, value) in schema {
        let value = match member.as_str() {
            _ if says_nothing(member, value) => continue,
            "items" | "additionalProperties" => below(value),
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                Value::Object(properties.map(|(name, schema)| (name.clone(), below(schema))).collect())
            }
            _ => value.clone(),
        };
        out.insert(member.clone(), value);
    }
    match dialect {
        Dialect::V2 => reduce_to_v2(schema, &mut out),
        Dialect::V3 => insert_int_or_string(&mut out),
    }
    let is_open_in_v2 = dialect == Dialect::V2 && out.get(PRESERVE) == Some(&json!(true));
    if out.get(EMBEDDED) == Some(&json!(true)) && !is_open_in_v2 {
        insert_embedded(&mut out, writer);
    }
    out
}

fn says_nothing(member: &str, value: &Value) -> bool {
    let is_empty = match value {
        Value::Bool(on) => !on,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    (is_empty && OMITTED_WHEN_EMPTY.contains(&member)) || (value.is_null() && member != "example")
}

/// Drops what kubectl's reading of v2 cannot cope with: an untyped value with fields, an open object with
/// some.
fn reduce_to_v2(written: &Map<String, Value>, out: &mut Map<String, Value>) {
    let is_on = |schema: &Map<String, Value>, member: &str| schema.get(member) == Some(&json!(true));
    for member in NOT_IN_V2 {
        out.remove(member);
    }
    let (nullable, open) = (is_on(written, "nullable"), is_on(written, PRESERVE));
    if nullable || open {
        out.remove("items");
        out.remove("properties");
    }
    let untyped = nullable
        || (out.get("type") == Some(&json!("array")) && !out.contains_key("items"))
        || (open && out.get("type") == Some(&json!("object")));
    if untyped {
        out.remove("type");
    }
    drop_required_nullables(written, out);
}

/// A field that may be null is not required in v2.
fn drop_required_nullables(written: &Map<String, Value>, out: &mut Map<String, Value>) {
    let may_be_null = |schema: &Value| schema["nullable"] == true;
    if written.get("additionalProperties").is_some_and(may_be_null) {
        out.remove("required");
    }
    let kept_properties = out.get("properties").is_some();
    let is_dropped = |name: &Value| {
        let property = written.get("properties").and_then(|properties| properties.get(name.as_str()?));
        kept_properties && property.is_some_and(may_be_null)
    };
    if let Some(required) = out.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !is_dropped(name));
        if required.is_empty() {
            out.remove("required");
        }
    }
}

/// Spells out that a value is an integer or a string, unless the schema does so itself.
fn insert_int_or_string(schema: &mut Map<String, Value>) {
    if schema.get(INT_OR_STRING) != Some(&json!(true)) {
        return;
    }
    let either = json!([{ "type": "integer" }, { "type": "string" }]);
    let in_all_of = schema.get("allOf").and_then(|all_of| all_of.get(0)).and_then(|first| first.get("anyOf"));
    if schema.get("anyOf") == Some(&either) || in_all_of == Some(&either) {
        return;
    }
    if !schema.contains_key("anyOf") {
        schema.insert("anyOf".into(), either);
        return;
    }
    let all_of = schema.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all_of) = all_of.as_array_mut() {
        all_of.insert(0, json!({ "anyOf": either }));
    }
}

/// An embedded object has a type and metadata.
fn insert_embedded(schema: &mut Map<String, Value>, writer: Writer<'_>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        insert_type_meta(properties, writer);
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::table;

    fn defined(kind: &CustomKind<'_>, schema: Option<&Value>, dialect: Dialect) -> Value {
        custom_definition(kind, schema, &Descriptions::of(table()), dialect)
    }

    fn check(schema: Value, v3: Value, v2: Value) {
        let kind = CustomKind {
            group: "g.example.com",
            version: "v1",
            kind: "K",
            list_kind: "KList",
            selectable_fields: &[],
        };
        let schema = json!({ "type": "object", "properties": { "x": schema } });
        for (dialect, want) in [(Dialect::V3, v3), (Dialect::V2, v2)] {
            let got = defined(&kind, Some(&schema), dialect);
            assert_eq!(got["properties"]["x"], want, "{dialect:?}");
        }
    }

    #[test]
    fn names_are_the_group_backwards() {
        assert_eq!(custom_name("stable.example.com", "v1", "CronTab"), "com.example.stable.v1.CronTab");
    }

    #[test]
    fn v2_has_neither_junctors_nor_defaults() {
        let schema = json!({ "type": "string", "default": "a", "anyOf": [{ "minLength": 1 }], "not": { "pattern": "b" } });
        check(schema.clone(), schema, json!({ "type": "string" }));
    }

    #[test]
    fn a_nullable_field_has_no_type_in_v2_and_is_not_required() {
        check(
            json!({ "type": "object", "nullable": true, "properties": { "a": { "type": "string" } } }),
            json!({ "type": "object", "nullable": true, "properties": { "a": { "type": "string" } } }),
            json!({}),
        );
        check(
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string", "nullable": true } } }),
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string", "nullable": true } } }),
            json!({ "type": "object", "properties": { "a": {} } }),
        );
    }

    #[test]
    fn an_open_object_has_no_type_in_v2() {
        check(
            json!({ "type": "object", PRESERVE: true, "properties": { "a": { "type": "string" } } }),
            json!({ "type": "object", PRESERVE: true, "properties": { "a": { "type": "string" } } }),
            json!({ PRESERVE: true }),
        );
    }

    #[test]
    fn integer_or_string_is_spelled_out_in_v3() {
        let either = json!([{ "type": "integer" }, { "type": "string" }]);
        check(
            json!({ INT_OR_STRING: true }),
            json!({ INT_OR_STRING: true, "anyOf": either }),
            json!({ INT_OR_STRING: true }),
        );
        check(
            json!({ INT_OR_STRING: true, "anyOf": either }),
            json!({ INT_OR_STRING: true, "anyOf": either }),
            json!({ INT_OR_STRING: true }),
        );
        check(
            json!({ INT_OR_STRING: true, "anyOf": [{ "minimum": 1 }] }),
            json!({ INT_OR_STRING: true, "anyOf": [{ "minimum": 1 }], "allOf": [{ "anyOf": either }] }),
            json!({ INT_OR_STRING: true }),
        );
    }

    #[test]
    fn an_embedded_object_has_a_type_and_metadata() {
        let descriptions = Descriptions::of(table());
        let said = |field| descriptions.of_any_kind(field).expect(field);
        let meta = |dialect| described_reference(OBJECT_META, said("metadata"), dialect);
        let text = |field| json!({ "type": "string", "description": said(field) });
        check(
            json!({ "type": "object", EMBEDDED: true }),
            json!({ "type": "object", EMBEDDED: true, "required": ["kind", "apiVersion"],
                "properties": { "apiVersion": text("apiVersion"), "kind": text("kind"), "metadata": meta(Dialect::V3) } }),
            json!({ "type": "object", EMBEDDED: true, "required": ["kind", "apiVersion"],
                "properties": { "apiVersion": text("apiVersion"), "kind": text("kind"), "metadata": meta(Dialect::V2) } }),
        );
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        check(
            json!({ "type": "string", "nullable": false, "description": "", "default": null, "enum": [], "minLength": 0 }),
            json!({ "type": "string", "enum": [], "minLength": 0 }),
            json!({ "type": "string", "enum": [], "minLength": 0 }),
        );
    }

    #[test]
    fn without_a_schema_any_object_will_do() {
        let kind = CustomKind {
            group: "g",
            version: "v1",
            kind: "K",
            list_kind: "KList",
            selectable_fields: &["spec.a".into()],
        };
        let want = json!({
            "type": "object",
            "x-kubernetes-group-version-kind": [{ "group": "g", "version": "v1", "kind": "K" }],
            "x-kubernetes-selectable-fields": [{ "fieldPath": "spec.a" }],
        });
        assert_eq!(defined(&kind, None, Dialect::V3), want);
        let open = json!({ "type": "object", PRESERVE: true, "properties": { "a": {} } });
        assert_eq!(defined(&kind, Some(&open), Dialect::V2), want);
        assert!(defined(&kind, Some(&open), Dialect::V3)["properties"]["metadata"].is_object());
    }

    #[test]
    fn a_schema_that_nests_without_end_is_cut_off() {
        let mut schema = json!({ "type": "string" });
        for _ in 0..1_000 {
            schema = json!({ "items": schema });
        }
        let kind =
            CustomKind { group: "g", version: "v1", kind: "K", list_kind: "KList", selectable_fields: &[] };
        let definition = defined(&kind, Some(&schema), Dialect::V3);
        assert!(definition.to_string().matches("items").count() < 200);
        std::mem::drop(definition);
    }
}
