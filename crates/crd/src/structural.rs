//! Is a schema structural? Every violation, in the words of apiextensions-apiserver.
//!
//! In: a schema as written. Out: violations in order of their text. The rules: a type for every field and
//! item, structure only outside of `allOf`, `anyOf`, `oneOf` and `not`, everything named inside of these also
//! named outside, metadata restricted to its names, and the exceptions for int-or-string. Never looks at an
//! instance.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema`.

use serde_json::Value;

use super::field::{BadValue, Faults, FieldError, Path};
use super::props::{Items, Props, SchemaOrBool};

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Returns the violations of the schema at `path`, as many as are told.
pub(crate) fn violations(path: &Path<'_>, schema: Props<'_>) -> Vec<FieldError> {
    let mut errors = Faults::default();
    invariants(schema, Level::Root, path, &mut errors);
    junctors_complete(schema, Some(schema), path, path, &mut errors);
    let mut errors = errors.into_vec();
    errors.sort_by_cached_key(FieldError::to_string);
    errors
}

/// Returns why the schema cannot be read as structural at all, if so: a keyword that has no structural form.
pub(crate) fn unreadable(schema: Props<'_>) -> Option<String> {
    unreadable_by(schema, &mut unreadable)
}

/// As [`unreadable`], asking `below` of the schemas right below.
pub(crate) fn unreadable_by<'a>(
    schema: Props<'a>,
    below: &mut dyn FnMut(Props<'a>) -> Option<String>,
) -> Option<String> {
    let unsupported = |name: &str| Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    let filled = |key: &str| schema.get(key).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if !schema.str("id").is_empty() {
        return unsupported("id");
    }
    if !schema.str("$schema").is_empty() {
        return unsupported("schema");
    }
    if !schema.str("$ref").is_empty() {
        return unsupported("$ref");
    }
    for key in ["patternProperties", "dependencies"] {
        if filled(key) {
            return unsupported(key);
        }
    }
    if schema.schema_or_bool("additionalItems").is_some() {
        return unsupported("additionalItems");
    }
    if filled("definitions") {
        return unsupported("definitions");
    }
    let junctors = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| schema.schemas(key));
    if let Some(found) = schema.not().into_iter().chain(junctors).find_map(&mut *below) {
        return Some(found);
    }
    if schema.preserve_unknown_fields() == Some(false) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
        );
    }
    let items = match schema.items() {
        Some(Items::Schemas([_, ..])) => {
            return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
        Some(Items::Schema(item)) => Some(item),
        _ => None,
    };
    let properties = schema.named("properties").into_iter().map(|(_, property)| property);
    let additional = schema.schema_or_bool("additionalProperties").and_then(SchemaOrBool::schema);
    items.into_iter().chain(properties).chain(additional).find_map(below)
}

/// Whether the schema says int-or-string by `anyOf` alone.
pub(crate) fn is_int_or_string_any_of(schema: Props<'_>) -> bool {
    let mut types = schema.schemas("anyOf");
    types.len() == 2
        && types.next().is_some_and(|s| only_type(s, "integer"))
        && types.next().is_some_and(|s| only_type(s, "string"))
}

/// Whether the first `allOf` says int-or-string.
pub(crate) fn is_int_or_string_all_of(schema: Props<'_>) -> bool {
    schema.schemas("allOf").next().is_some_and(is_int_or_string_any_of)
}

fn only_type(schema: Props<'_>, kind: &str) -> bool {
    schema.kind() == kind && schema.entries().all(|(key, value)| key == "type" || is_zero(value))
}

fn is_zero(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || value.as_str() == Some("")
}

/// Rules that hold at every schema of the structure.
fn invariants(schema: Props<'_>, level: Level, path: &Path<'_>, errors: &mut Faults) {
    if errors.is_full() {
        return;
    }
    if schema.kind() == "array" && schema.item().is_none() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if let Some(item) = schema.item() {
        invariants(item, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in schema.named("properties") {
        invariants(property, Level::Field, &path.child("properties").key(name), errors);
    }
    if let Some(additional) = schema.schema_or_bool("additionalProperties") {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if let Some(additional) = additional.schema() {
            invariants(additional, Level::Field, &path, errors);
        }
    }
    extensions(schema, path, errors);
    let skip = Skip { any_of: is_int_or_string_any_of(schema), all_of: is_int_or_string_all_of(schema) };
    junctors(schema, skip, path, errors);
    types(schema, level, path, errors);
    metadata(schema, level, path, errors);
    if schema.embedded_resource()
        && schema.preserve_unknown_fields() != Some(true)
        && schema.named("properties").is_empty()
    {
        errors.push(FieldError::required(
            &path.child("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn extensions(schema: Props<'_>, path: &Path<'_>, errors: &mut Faults) {
    if !schema.int_or_string() {
        return;
    }
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if schema.preserve_unknown_fields() == Some(true) {
        let path = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&path, BadValue::Bool(true), detail));
    }
    if schema.embedded_resource() {
        let path = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::invalid(&path, BadValue::Bool(true), detail));
    }
}

fn types(schema: Props<'_>, level: Level, path: &Path<'_>, errors: &mut Faults) {
    let at = path.child("type");
    let kind = schema.kind();
    if schema.embedded_resource() && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&at, detail),
            _ => FieldError::invalid(&at, BadValue::Text(kind), detail),
        });
    } else if kind.is_empty() && !schema.int_or_string() && schema.preserve_unknown_fields() != Some(true) {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&at, detail));
    }
    if schema.embedded_resource() && schema.schema_or_bool("additionalProperties").is_some() {
        let path = path.child("additionalProperties");
        errors
            .push(FieldError::forbidden(&path, "must not be used if x-kubernetes-embedded-resource is set"));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&at, BadValue::Text(kind), "must be object at the root"));
    }
}

/// `kind`, `apiVersion` and `metadata` of the root and of embedded resources.
fn metadata(schema: Props<'_>, level: Level, path: &Path<'_>, errors: &mut Faults) {
    let checked = level == Level::Root || schema.embedded_resource();
    let properties = path.child("properties");
    let mut has_type = |name: &str, kind: &str| {
        let Some(property) = schema.property(name) else { return };
        if checked && property.kind() != kind {
            let at = properties.key(name);
            let detail = format!("must be {kind}");
            errors.push(FieldError::invalid(&at.child("type"), BadValue::Text(property.kind()), detail));
        }
    };
    has_type("kind", "string");
    has_type("apiVersion", "string");
    has_type("metadata", "object");
    if level == Level::Root && schema.property("metadata").is_some_and(|metadata| !only_names(metadata)) {
        errors.push(FieldError::forbidden(
            &properties.key("metadata"),
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ));
    }
}

fn only_names(metadata: Props<'_>) -> bool {
    metadata.entries().all(|(key, value)| match key {
        "type" | "default" => true,
        "properties" => {
            value.as_object().is_some_and(|p| p.keys().all(|k| k == "name" || k == "generateName"))
        }
        "enum" | "allOf" | "anyOf" | "oneOf" => value.as_array().is_some_and(Vec::is_empty),
        _ => is_zero(value),
    })
}

/// Which of the two int-or-string forms stands here and is excused.
#[derive(Clone, Copy, Default)]
struct Skip {
    any_of: bool,
    all_of: bool,
}

/// Rules for everything below `allOf`, `anyOf`, `oneOf` and `not`.
fn junctors(schema: Props<'_>, skip: Skip, path: &Path<'_>, errors: &mut Faults) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && skip.any_of {
            continue;
        }
        let path = path.child(key);
        for (i, nested) in schema.schemas(key).enumerate() {
            let skip = Skip { any_of: key == "allOf" && skip.all_of && i == 0, all_of: false };
            value_validation(nested, skip, &path.index(i), errors);
        }
    }
    if let Some(not) = schema.not() {
        value_validation(not, Skip::default(), &path.child("not"), errors);
    }
    let pattern = schema.str("pattern");
    if let Some(message) = forebay_re2::check(pattern).err().filter(|_| !pattern.is_empty()) {
        let detail = format!("must be a valid regular expression, but isn't: {message}");
        errors.push(FieldError::invalid(&path.child("pattern"), BadValue::Text(pattern), detail));
    }
}

fn value_validation(nested: Props<'_>, skip: Skip, path: &Path<'_>, errors: &mut Faults) {
    if errors.is_full() {
        return;
    }
    junctors(nested, skip, path, errors);
    if let Some(item) = nested.item() {
        value_validation(item, Skip::default(), &path.child("items"), errors);
    }
    for (name, property) in nested.named("properties") {
        value_validation(property, Skip::default(), &path.child("properties").key(name), errors);
    }
    let mut forbid = |set: bool, key: &str, must: &str| {
        if set {
            errors.push(FieldError::forbidden(&path.child(key), format!("must be {must} to be structural")));
        }
    };
    forbid(!nested.kind().is_empty(), "type", "empty");
    let additional = nested.schema_or_bool("additionalProperties");
    forbid(additional.is_some_and(SchemaOrBool::allows), "additionalProperties", "undefined");
    forbid(nested.default_value().is_some(), "default", "undefined");
    forbid(!nested.str("title").is_empty(), "title", "empty");
    forbid(!nested.str("description").is_empty(), "description", "empty");
    forbid(nested.nullable(), "nullable", "false");
    let preserve = nested.preserve_unknown_fields() == Some(true);
    forbid(preserve, "x-kubernetes-preserve-unknown-fields", "false");
    forbid(nested.embedded_resource(), "x-kubernetes-embedded-resource", "false");
    forbid(nested.int_or_string(), "x-kubernetes-int-or-string", "false");
    forbid(nested.list_map_keys().next().is_some(), "x-kubernetes-list-map-keys", "empty");
    forbid(nested.list_type().is_some(), "x-kubernetes-list-type", "undefined");
    forbid(nested.map_type().is_some(), "x-kubernetes-map-type", "undefined");
    forbid(!nested.rules().is_empty(), "x-kubernetes-validations", "empty");
    if nested.property("metadata").is_some() {
        let path = path.child("properties");
        errors
            .push(FieldError::forbidden(&path.key("metadata"), "must not be specified in a nested context"));
    }
}

/// Everything that a junctor names must be named by the structure `base` too.
fn junctors_complete(
    nested: Props<'_>,
    base: Option<Props<'_>>,
    base_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Faults,
) {
    if let Some(not) = nested.not() {
        complete(not, base, base_path, &path.child("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let path = path.child(key);
        for (i, nested) in nested.schemas(key).enumerate() {
            complete(nested, base, base_path, &path.index(i), errors);
        }
    }
}

fn complete(
    nested: Props<'_>,
    base: Option<Props<'_>>,
    base_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Faults,
) {
    if errors.is_full() {
        return;
    }
    let Some(base) = base else {
        errors.push(FieldError::required(base_path, format!("because it is defined in {path}")));
        return;
    };
    junctors_complete(nested, Some(base), base_path, path, errors);
    if let Some(item) = nested.item() {
        complete(item, base.item(), &base_path.child("items"), &path.child("items"), errors);
    }
    let (base_properties, properties) = (base_path.child("properties"), path.child("properties"));
    for (name, property) in nested.named("properties") {
        complete(property, base.property(name), &base_properties.key(name), &properties.key(name), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, want: &[&str]) {
        let found: Vec<String> =
            violations(&Path::root("s"), Props::of(&schema)).iter().map(FieldError::to_string).collect();
        assert_eq!(found, want, "{schema}");
    }

    #[test]
    fn structure_needs_types() {
        check(json!({"type": "object"}), &[]);
        check(json!({}), &["s.type: Required value: must not be empty at the root"]);
        check(json!({"type": "string"}), &["s.type: Invalid value: \"string\": must be object at the root"]);
        check(
            json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array", "items": {}}, "c": {}}}),
            &[
                "s.properties[a].items: Required value: must be specified",
                "s.properties[b].items.type: Required value: must not be empty for specified array items",
                "s.properties[c].type: Required value: must not be empty for specified object fields",
            ],
        );
        check(
            json!({"type": "object", "properties": {
                "a": {"x-kubernetes-int-or-string": true}, "b": {"x-kubernetes-preserve-unknown-fields": true}}}),
            &[],
        );
    }

    #[test]
    fn junctors_hold_no_structure() {
        check(
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}},
                "allOf": [{"type": "object", "default": 1, "title": "t", "description": "d", "nullable": true,
                    "additionalProperties": true, "x-kubernetes-preserve-unknown-fields": true,
                    "x-kubernetes-embedded-resource": true, "x-kubernetes-int-or-string": true,
                    "x-kubernetes-list-map-keys": ["a"], "x-kubernetes-list-type": "map",
                    "x-kubernetes-map-type": "atomic", "x-kubernetes-validations": [{"rule": "true"}]}]}}}),
            &[
                "s.properties[a].allOf[0].additionalProperties: Forbidden: must be undefined to be structural",
                "s.properties[a].allOf[0].default: Forbidden: must be undefined to be structural",
                "s.properties[a].allOf[0].description: Forbidden: must be empty to be structural",
                "s.properties[a].allOf[0].nullable: Forbidden: must be false to be structural",
                "s.properties[a].allOf[0].title: Forbidden: must be empty to be structural",
                "s.properties[a].allOf[0].type: Forbidden: must be empty to be structural",
                "s.properties[a].allOf[0].x-kubernetes-embedded-resource: Forbidden: must be false to be structural",
                "s.properties[a].allOf[0].x-kubernetes-int-or-string: Forbidden: must be false to be structural",
                "s.properties[a].allOf[0].x-kubernetes-list-map-keys: Forbidden: must be empty to be structural",
                "s.properties[a].allOf[0].x-kubernetes-list-type: Forbidden: must be undefined to be structural",
                "s.properties[a].allOf[0].x-kubernetes-map-type: Forbidden: must be undefined to be structural",
                "s.properties[a].allOf[0].x-kubernetes-preserve-unknown-fields: Forbidden: must be false to be structural",
                "s.properties[a].allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural",
            ],
        );
    }

    #[test]
    fn junctors_name_nothing_that_the_structure_does_not() {
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}},
                "anyOf": [{"properties": {"a": {"minLength": 1}, "b": {"minLength": 1}}}],
                "not": {"properties": {"l": {"items": {"properties": {"c": {}}}}, "a": {"items": {}}}}}),
            &[
                "s.properties[a].items: Required value: because it is defined in s.not.properties[a].items",
                "s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]",
                "s.properties[l].items.properties[c]: Required value: because it is defined in s.not.properties[l].items.properties[c]",
            ],
        );
    }

    #[test]
    fn int_or_string_may_say_its_types() {
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        let field = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        check(field(json!({"x-kubernetes-int-or-string": true, "anyOf": types})), &[]);
        check(
            field(json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": types}, {"pattern": "a"}]})),
            &[],
        );
        check(
            field(
                json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
            ),
            &[
                "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
                "s.properties[a].anyOf[1].type: Forbidden: must be empty to be structural",
            ],
        );
        check(
            field(json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true,
                "type": "object", "x-kubernetes-embedded-resource": true})),
            &[
                "s.properties[a].x-kubernetes-embedded-resource: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
                "s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
            ],
        );
    }

    #[test]
    fn metadata_is_restricted_to_its_names() {
        let root = |metadata: Value| json!({"type": "object", "properties": {"metadata": metadata}});
        check(
            root(json!({"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}})),
            &[],
        );
        check(
            root(json!({"type": "string", "properties": {"labels": {"type": "object"}}})),
            &[
                "s.properties[metadata].type: Invalid value: \"string\": must be object",
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        );
        check(
            json!({"type": "object", "additionalProperties": true, "properties": {"kind": {"type": "integer"},
                "e": {"type": "array", "items": {"type": "string"}, "x-kubernetes-embedded-resource": true,
                    "additionalProperties": {"type": "string"}}}}),
            &[
                "s.additionalProperties: Forbidden: must not be used at the root",
                "s.properties[e].additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set",
                "s.properties[e].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
                "s.properties[e].type: Invalid value: \"array\": must be object if x-kubernetes-embedded-resource is true",
                "s.properties[kind].type: Invalid value: \"integer\": must be string",
            ],
        );
    }

    #[test]
    fn patterns_must_compile_wherever_they_stand() {
        check(
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(", "oneOf": [{"pattern": "["}]}}}),
            &[
                "s.properties[a].oneOf[0].pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`",
                "s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
            ],
        );
    }

    #[test]
    fn unreadable_keywords_are_named() {
        let rows = [
            (json!({"properties": {"a": {"$ref": "#/x"}}}), Some("OpenAPIV3Schema '$ref' is not supported")),
            (json!({"items": [{}]}), Some("OpenAPIV3Schema 'items' must be a schema, but is an array")),
            (
                json!({"not": {"definitions": {"a": {}}}}),
                Some("OpenAPIV3Schema 'definitions' is not supported"),
            ),
            (
                json!({"x-kubernetes-preserve-unknown-fields": false}),
                Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"),
            ),
            (json!({"type": "object", "properties": {"a": {}}, "definitions": {}}), None),
        ];
        for (schema, want) in rows {
            assert_eq!(unreadable(Props::of(&schema)).as_deref(), want, "{schema}");
        }
    }
}
