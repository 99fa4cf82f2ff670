//! Type and metadata of embedded resources.
//!
//! In: a custom resource and its schema. Out: the object with embedded metadata normalized (`coerce`), and
//! all violations of embedded types and metadata (`validate`). The root takes part only when asked: its
//! metadata has rules of its own.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/objectmeta`.

use serde_json::{Map, Value};

use super::field::{BadValue, Faults, FieldError, Path, Unknown};
use super::meta_rules::{self, Namespaced};
use super::names;
use super::object_meta::{self, MalformedFields};
use super::prune::Meta;
use super::schema::{Flags, Node, Schema};

impl Schema {
    /// Normalizes the metadata of embedded resources; returns the paths of unknown metadata fields, in order.
    ///
    /// # Errors
    /// The first field that cannot be decoded.
    pub fn coerce_embedded(
        &self,
        object: &mut Value,
        malformed: MalformedFields,
    ) -> Result<Vec<String>, FieldError> {
        coerce(object, self.root(), Meta::AsSchema, malformed, &Path::NIL)
    }

    /// Returns all violations of the types and metadata of embedded resources.
    pub fn validate_embedded(&self, object: &Value) -> Vec<FieldError> {
        validate(object, self.root(), Meta::AsSchema, &Path::NIL)
    }
}

pub(super) fn coerce(
    value: &mut Value,
    node: &Node,
    meta: Meta,
    malformed: MalformedFields,
    path: &Path<'_>,
) -> Result<Vec<String>, FieldError> {
    let mut unknown = Unknown::default();
    coerce_at(value, node, meta == Meta::Root, path, malformed, &mut unknown)?;
    unknown.paths.sort();
    Ok(unknown.paths)
}

fn coerce_at(
    value: &mut Value,
    node: &Node,
    is_root: bool,
    path: &Path<'_>,
    malformed: MalformedFields,
    unknown: &mut Unknown,
) -> Result<(), FieldError> {
    if !is_root && !node.has(Flags::EMBEDDED_BELOW) {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            if is_root || node.has(Flags::EMBEDDED) {
                coerce_resource(map, path, malformed, unknown)?;
            }
            for (name, value) in map {
                if let Some(schema) = node.property(name) {
                    coerce_at(value, schema, false, &path.child(name), malformed, unknown)?;
                } else if let Some(schema) = node.additional_schema() {
                    coerce_at(value, schema, false, &path.key(name), malformed, unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.item() else { return Ok(()) };
            for (i, item) in items.iter_mut().enumerate() {
                coerce_at(item, schema, false, &path.index(i), malformed, unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    map: &mut Map<String, Value>,
    path: &Path<'_>,
    malformed: MalformedFields,
    unknown: &mut Unknown,
) -> Result<(), FieldError> {
    for name in ["apiVersion", "kind"] {
        match (map.get(name), malformed) {
            (None | Some(Value::String(_)), _) => {}
            (Some(_), MalformedFields::Drop) => {
                map.remove(name);
            }
            (Some(value), MalformedFields::Refuse) => {
                return Err(FieldError::invalid(
                    &path.child(name),
                    BadValue::Json(value),
                    "must be a string",
                ));
            }
        }
    }
    match (object_meta::coerce_beside(map, path, malformed, unknown), malformed) {
        (Ok(found), _) => unknown.extend(found),
        (Err(_), MalformedFields::Drop) => {}
        (Err(error), MalformedFields::Refuse) => {
            let value = map.get("metadata").unwrap_or(&Value::Null);
            return Err(FieldError::invalid(&path.child("metadata"), BadValue::Json(value), error));
        }
    }
    Ok(())
}

pub(super) fn validate(value: &Value, node: &Node, meta: Meta, path: &Path<'_>) -> Vec<FieldError> {
    let mut faults = Faults::default();
    validate_at(value, node, meta == Meta::Root, path, &mut faults);
    faults.into_vec()
}

fn validate_at(value: &Value, node: &Node, is_root: bool, path: &Path<'_>, errors: &mut Faults) {
    if !is_root && !node.has(Flags::EMBEDDED_BELOW) {
        return;
    }
    match value {
        Value::Object(map) => {
            if is_root || node.has(Flags::EMBEDDED) {
                validate_resource(map, path, errors);
            }
            for (name, value) in map {
                if let Some(schema) = node.property(name) {
                    validate_at(value, schema, false, &path.child(name), errors);
                } else if let Some(schema) = node.additional_schema() {
                    validate_at(value, schema, false, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.item() else { return };
            for (i, item) in items.iter().enumerate() {
                validate_at(item, schema, false, &path.index(i), errors);
            }
        }
        _ => {}
    }
}

fn validate_resource(map: &Map<String, Value>, path: &Path<'_>, errors: &mut Faults) {
    if errors.is_full() {
        return;
    }
    for name in ["apiVersion", "kind"] {
        if !map.contains_key(name) {
            errors.extend([FieldError::required(&path.child(name), "")]);
        }
    }
    if let Some(value) = map.get("apiVersion") {
        errors.extend(api_version(value, &path.child("apiVersion")));
    }
    if let Some(value) = map.get("kind") {
        errors.extend(kind(value, &path.child("kind")));
    }
    if let Some(value) = map.get("metadata") {
        errors.extend(metadata(value, &path.child("metadata")));
    }
}

fn api_version(value: &Value, path: &Path<'_>) -> Option<FieldError> {
    let invalid = |detail: &str| Some(FieldError::invalid(path, BadValue::Json(value), detail));
    match value.as_str() {
        None => invalid("must be a string"),
        Some("") => invalid("must not be empty"),
        Some(text) if text.matches('/').count() > 1 => {
            invalid(&format!("unexpected GroupVersion string: {text}"))
        }
        Some(_) => None,
    }
}

fn kind(value: &Value, path: &Path<'_>) -> Option<FieldError> {
    let invalid = |detail: &str| Some(FieldError::invalid(path, BadValue::Json(value), detail));
    match value.as_str() {
        None => invalid("must be a string"),
        Some("") => invalid("must not be empty"),
        Some(text) => match names::dns1035_label(&text.to_lowercase()) {
            wrong if wrong.is_empty() => None,
            wrong => {
                invalid(&format!("may have mixed case, but should otherwise match: {}", wrong.join(",")))
            }
        },
    }
}

fn metadata(value: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut holder = Map::from_iter([("metadata".to_owned(), value.clone())]);
    if let Err(error) = object_meta::coerce(&mut holder, &Path::NIL, MalformedFields::Refuse) {
        return vec![FieldError::invalid(path, BadValue::Json(value), error)];
    }
    let mut metadata = holder.remove("metadata").unwrap_or_default();
    if let Some(map) = metadata.as_object_mut() {
        // An embedded resource needs no name; one that would pass stands in for it.
        map.entry("name").or_insert_with(|| "fakename".into());
    }
    let namespaced = match metadata.get("namespace") {
        Some(_) => Namespaced::Required,
        None => Namespaced::Forbidden,
    };
    meta_rules::validate_create(&metadata, namespaced, &names::path_segment, path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        Schema::compile(&json!({"type": "object", "properties": {
            "e": embedded, "l": {"type": "array", "items": embedded}, "m": {"type": "object", "additionalProperties": embedded}}}))
    }

    #[test]
    fn embedded_metadata_is_normalized_and_its_unknown_fields_named() {
        let mut object = json!({"metadata": {"keep": 1}, "e": {"metadata": {"name": "", "x": 1}},
            "l": [{"metadata": {"labels": {"a": null}}}, {"metadata": {"y": 1}}]});
        let unknown = schema().coerce_embedded(&mut object, MalformedFields::Refuse);
        assert_eq!(unknown, Ok(vec!["e.metadata.x".to_owned(), "l[1].metadata.y".to_owned()]));
        assert_eq!(
            object,
            json!({"metadata": {"keep": 1}, "e": {"metadata": {}}, "l": [{"metadata": {"labels": {"a": ""}}}, {"metadata": {}}]})
        );
    }

    #[test]
    fn embedded_fields_of_wrong_types_are_refused_or_dropped() {
        let object = json!({"m": {"k": {"kind": 5, "metadata": {"name": 5, "uid": "u"}}}});
        let refused =
            schema().coerce_embedded(&mut object.clone(), MalformedFields::Refuse).map_err(|e| e.to_string());
        assert_eq!(refused, Err("m[k].kind: Invalid value: 5: must be a string".to_owned()));
        let mut dropped = object;
        assert_eq!(schema().coerce_embedded(&mut dropped, MalformedFields::Drop), Ok(vec![]));
        assert_eq!(dropped, json!({"m": {"k": {"metadata": {"uid": "u"}}}}));
    }

    #[test]
    fn embedded_types_and_metadata_are_judged() {
        let object = json!({"e": {"metadata": {"namespace": "a.b"}}, "l": [{"apiVersion": "a/b/c", "kind": "-"}],
            "m": {"k": {"apiVersion": "", "kind": 5, "metadata": {"name": 5}}}});
        let found: Vec<String> =
            schema().validate_embedded(&object).iter().map(FieldError::to_string).collect();
        let want = [
            "e.apiVersion: Required value",
            "e.kind: Required value",
            "e.metadata.namespace: Invalid value: \"a.b\": must not contain dots",
            "l[0].apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
            "l[0].kind: Invalid value: \"-\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            "m[k].apiVersion: Invalid value: \"\": must not be empty",
            "m[k].kind: Invalid value: 5: must be a string",
            "m[k].metadata: Invalid value: {\"name\":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
        ];
        assert_eq!(found, want);
    }
}
