//! ObjectMeta as Kubernetes decodes it: field types checked, unknown fields dropped and named, the rest
//! normalized.
//!
//! In: the `metadata` of an object. Out: the same metadata as a round trip through Kubernetes' type leaves it
//! (empty fields gone, times in UTC, nulls replaced), and the paths of unknown fields. Never validates
//! values: names and labels are [`super::meta_rules`].
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/objectmeta`.

use forebay_apimachinery::json::kind_of;
use serde_json::{Map, Value};

use super::field::{Path, Unknown};
use super::format::{parse_rfc3339, print_rfc3339};
use forebay_apimachinery::go_format::{self as go, Num};

/// What to do with a known field of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedFields {
    /// Fail, as a request does.
    Refuse,
    /// Drop the field, as reading an old stored object does.
    Drop,
}

/// Normalizes `object.metadata` in place; returns the paths of unknown fields, which are dropped.
///
/// - `parent`: where `object` stands; [`Path::NIL`] for the root.
///
/// # Errors
/// The decoder's text, when a field has a wrong type and `malformed` is [`MalformedFields::Refuse`], or when
/// the metadata is no object.
pub fn coerce(
    object: &mut Map<String, Value>,
    parent: &Path<'_>,
    malformed: MalformedFields,
) -> Result<Vec<String>, String> {
    coerce_beside(object, parent, malformed, &Unknown::default())
}

/// As [`coerce`]; of unknown fields only as many are returned as are told beside those of `told`.
pub(super) fn coerce_beside(
    object: &mut Map<String, Value>,
    parent: &Path<'_>,
    malformed: MalformedFields,
    told: &Unknown,
) -> Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let mut decoder = Decoder { unknown: told.beside(), error: None };
    let path = parent.child("metadata");
    let decoded = match (decoder.metadata(metadata, &path), decoder.error.take(), malformed) {
        (decoded, None, _) => decoded,
        (_, Some(error), MalformedFields::Refuse) => return Err(error),
        (_, Some(_), MalformedFields::Drop) => {
            decoder.unknown = told.beside();
            decoder.piecewise(metadata, &path)?
        }
    };
    *metadata = Value::Object(decoded);
    Ok(decoder.unknown.paths)
}

/// How a field is decoded, and what makes it empty.
#[derive(Clone, Copy)]
enum Form {
    /// A string of the named Go type.
    Text(&'static str),
    /// A string that is written even when it is empty.
    NeededText(&'static str),
    Number,
    /// A number that is written even when it is zero, unless it was not there.
    OptionalNumber,
    OptionalBool,
    Time,
    OptionalTime,
    TextMap,
    Texts,
    Structs(&'static Struct),
    /// Anything.
    Raw,
}

struct Struct {
    name: &'static str,
    /// In order of name, which is the order in which Kubernetes meets them.
    fields: &'static [(&'static str, Form)],
}

const STRING: Form = Form::Text("string");

static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        ("annotations", Form::TextMap),
        ("creationTimestamp", Form::Time),
        ("deletionGracePeriodSeconds", Form::OptionalNumber),
        ("deletionTimestamp", Form::OptionalTime),
        ("finalizers", Form::Texts),
        ("generateName", STRING),
        ("generation", Form::Number),
        ("labels", Form::TextMap),
        ("managedFields", Form::Structs(&MANAGED_FIELDS_ENTRY)),
        ("name", STRING),
        ("namespace", STRING),
        ("ownerReferences", Form::Structs(&OWNER_REFERENCE)),
        ("resourceVersion", STRING),
        ("selfLink", STRING),
        ("uid", Form::Text("types.UID")),
    ],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", Form::NeededText("string")),
        ("blockOwnerDeletion", Form::OptionalBool),
        ("controller", Form::OptionalBool),
        ("kind", Form::NeededText("string")),
        ("name", Form::NeededText("string")),
        ("uid", Form::NeededText("types.UID")),
    ],
};

static MANAGED_FIELDS_ENTRY: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("apiVersion", STRING),
        ("fieldsType", STRING),
        ("fieldsV1", Form::Raw),
        ("manager", STRING),
        ("operation", Form::Text("v1.ManagedFieldsOperationType")),
        ("subresource", STRING),
        ("time", Form::OptionalTime),
    ],
};

struct Decoder {
    unknown: Unknown,
    /// The first error; what comes after it is decoded too, and thrown away.
    error: Option<String>,
}

/// Where the decoder stands, in the words of its errors.
#[derive(Clone, Copy)]
struct Place<'a> {
    owner: &'a str,
    /// Field names from the outermost struct, joined by dots.
    field: &'a str,
}

impl Decoder {
    fn metadata(&mut self, metadata: &Value, path: &Path<'_>) -> Map<String, Value> {
        match metadata {
            Value::Null => Map::new(),
            Value::Object(map) => self.fields(&OBJECT_META, map, "", path),
            other => {
                let kind = kind_of(other);
                self.fail(format!("json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta"));
                Map::new()
            }
        }
    }

    /// Decodes every field on its own and keeps those that can be.
    fn piecewise(&mut self, metadata: &Value, path: &Path<'_>) -> Result<Map<String, Value>, String> {
        let Some(map) = metadata.as_object() else {
            return Err(format!("invalid metadata: expected object, got {}", go::type_name(metadata)));
        };
        let mut kept = Map::new();
        for (name, value) in map {
            let mut one = Decoder { unknown: self.unknown.beside(), error: None };
            let decoded =
                one.fields(&OBJECT_META, &Map::from_iter([(name.clone(), value.clone())]), "", path);
            if one.error.is_none() {
                kept.extend(decoded);
                self.unknown.extend(one.unknown.paths);
            }
        }
        Ok(kept)
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    fn mismatch(&mut self, kind: &str, place: Place<'_>, wanted: &str) {
        let Place { owner, field } = place;
        self.fail(format!(
            "json: cannot unmarshal {kind} into Go struct field {owner}.{field} of type {wanted}"
        ));
    }

    /// `prefix` is the place in the error texts, `path` the field path of the struct.
    fn fields(
        &mut self,
        shape: &Struct,
        map: &Map<String, Value>,
        prefix: &str,
        path: &Path<'_>,
    ) -> Map<String, Value> {
        let mut decoded = Map::new();
        let mut unknown: Vec<&String> =
            map.keys().filter(|name| shape.fields.iter().all(|(known, _)| known != name)).collect();
        unknown.sort();
        self.unknown.extend(unknown.into_iter().map(|name| path.child(name).to_string()));
        for (name, form) in shape.fields {
            let field = format!("{prefix}{name}");
            let place = Place { owner: shape.name, field: &field };
            let value = map.get(*name).unwrap_or(&Value::Null);
            if let Some(value) = self.field(*form, value, place, &path.child(name)) {
                decoded.insert((*name).to_owned(), value);
            }
        }
        decoded
    }

    /// Decodes one field; none when it is empty and would not be written.
    fn field(&mut self, form: Form, value: &Value, place: Place<'_>, path: &Path<'_>) -> Option<Value> {
        match (form, value) {
            (Form::NeededText(_), Value::Null) => Some("".into()),
            (_, Value::Null) => None,
            (Form::Raw, value) => Some(value.clone()),
            (Form::NeededText(_), Value::String(_)) | (Form::OptionalBool, Value::Bool(_)) => {
                Some(value.clone())
            }
            (Form::Text(_), Value::String(text)) => (!text.is_empty()).then(|| value.clone()),
            (Form::Text(wanted) | Form::NeededText(wanted), other) => {
                self.mismatch(kind_of(other), place, wanted);
                None
            }
            (Form::OptionalBool, other) => {
                self.mismatch(kind_of(other), place, "bool");
                None
            }
            (Form::Number, value) => self.number(value, place).filter(|n| *n != 0).map(Value::from),
            (Form::OptionalNumber, value) => self.number(value, place).map(Value::from),
            (Form::Time, value) => self.time(value, place).filter(|time| !time.is_null()),
            (Form::OptionalTime, value) => self.time(value, place),
            (Form::TextMap, Value::Object(map)) => self.text_map(map, place),
            (Form::TextMap, other) => {
                self.mismatch(kind_of(other), place, "map[string]string");
                None
            }
            (Form::Texts, Value::Array(items)) => {
                let texts: Vec<Value> = items.iter().map(|item| self.text(item, place)).collect();
                (!texts.is_empty()).then_some(Value::Array(texts))
            }
            (Form::Texts, other) => {
                self.mismatch(kind_of(other), place, "[]string");
                None
            }
            (Form::Structs(shape), Value::Array(items)) => self.structs(shape, items, place, path),
            (Form::Structs(shape), other) => {
                self.mismatch(kind_of(other), place, &format!("[]v1.{}", shape.name));
                None
            }
        }
    }

    fn text(&mut self, value: &Value, place: Place<'_>) -> Value {
        match value {
            Value::String(_) => return value.clone(),
            Value::Null => {}
            other => self.mismatch(kind_of(other), place, "string"),
        }
        "".into()
    }

    fn text_map(&mut self, map: &Map<String, Value>, place: Place<'_>) -> Option<Value> {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        let texts: Map<_, _> =
            entries.into_iter().map(|(key, value)| (key.clone(), self.text(value, place))).collect();
        (!texts.is_empty()).then_some(Value::Object(texts))
    }

    fn structs(
        &mut self,
        shape: &Struct,
        items: &[Value],
        place: Place<'_>,
        path: &Path<'_>,
    ) -> Option<Value> {
        let empty = Map::new();
        let mut decoded = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let map = match item {
                Value::Object(map) => map,
                Value::Null => &empty,
                other => {
                    self.mismatch(kind_of(other), place, &format!("v1.{}", shape.name));
                    continue;
                }
            };
            let prefix = format!("{}.", place.field);
            decoded.push(Value::Object(self.fields(shape, map, &prefix, &path.index(i))));
        }
        (!decoded.is_empty()).then_some(Value::Array(decoded))
    }

    fn number(&mut self, value: &Value, place: Place<'_>) -> Option<i64> {
        match value {
            Value::Number(n) => match Num::of(n) {
                Num::Int(i) => return Some(i),
                // A float that prints as an integer is one: that is how it travels.
                Num::Float(_) => match go::to_json(value).parse() {
                    Ok(i) => return Some(i),
                    Err(_) => self.mismatch(&format!("number {}", go::to_json(value)), place, "int64"),
                },
            },
            other => self.mismatch(kind_of(other), place, "int64"),
        }
        None
    }

    /// A time in UTC; the zero time is null.
    fn time(&mut self, value: &Value, place: Place<'_>) -> Option<Value> {
        const ZERO: i64 = -62_135_596_800;
        match value {
            Value::String(text) => match parse_rfc3339(text) {
                Ok(ZERO) => return Some(Value::Null),
                Ok(seconds) => return Some(print_rfc3339(seconds).into()),
                Err(error) => self.fail(error),
            },
            other => self.mismatch(kind_of(other), place, "string"),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(metadata: Value, malformed: MalformedFields) -> Result<(Value, Vec<String>), String> {
        let Value::Object(mut object) = json!({"metadata": metadata}) else {
            unreachable!("it is an object")
        };
        let unknown = coerce(&mut object, &Path::NIL, malformed)?;
        Ok((object.remove("metadata").unwrap_or_default(), unknown))
    }

    #[test]
    fn metadata_is_normalized() {
        let rows = [
            (json!(null), json!({}), vec![]),
            (
                json!({"name": "", "labels": {}, "finalizers": [], "generation": 0, "deletionTimestamp": null,
                    "creationTimestamp": "2024-01-01T02:00:00.5+01:00"}),
                json!({"creationTimestamp": "2024-01-01T01:00:00Z"}),
                vec![],
            ),
            (json!({"labels": {"a": null, "b": "x"}}), json!({"labels": {"a": "", "b": "x"}}), vec![]),
            (
                json!({"generation": 1.0, "finalizers": ["a", null]}),
                json!({"generation": 1, "finalizers": ["a", ""]}),
                vec![],
            ),
            (
                json!({"ownerReferences": [{"name": "x", "foo": 1, "controller": true}, null]}),
                json!({"ownerReferences": [
                    {"apiVersion": "", "controller": true, "kind": "", "name": "x", "uid": ""},
                    {"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
                vec!["metadata.ownerReferences[0].foo"],
            ),
            (
                json!({"managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}, "subresource": "", "x": 1}], "Name": "y"}),
                json!({"managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}]}),
                vec!["metadata.Name", "metadata.managedFields[0].x"],
            ),
        ];
        for (metadata, want, unknown) in rows {
            let unknown = unknown.into_iter().map(str::to_owned).collect();
            assert_eq!(coerced(metadata.clone(), MalformedFields::Refuse), Ok((want, unknown)), "{metadata}");
        }
    }

    #[test]
    fn wrong_types_are_refused_in_the_decoders_words() {
        let rows = [
            (json!({"name": 5}), "number into Go struct field ObjectMeta.name of type string"),
            (json!({"uid": {}}), "object into Go struct field ObjectMeta.uid of type types.UID"),
            (
                json!({"generation": 1.5}),
                "number 1.5 into Go struct field ObjectMeta.generation of type int64",
            ),
            (
                json!({"creationTimestamp": 5}),
                "number into Go struct field ObjectMeta.creationTimestamp of type string",
            ),
            (json!({"labels": {"a": 1}}), "number into Go struct field ObjectMeta.labels of type string"),
            (json!({"labels": []}), "array into Go struct field ObjectMeta.labels of type map[string]string"),
            (
                json!({"finalizers": "a"}),
                "string into Go struct field ObjectMeta.finalizers of type []string",
            ),
            (
                json!({"ownerReferences": [{"controller": "x"}]}),
                "string into Go struct field OwnerReference.ownerReferences.controller of type bool",
            ),
            (
                json!({"ownerReferences": ["x"]}),
                "string into Go struct field ObjectMeta.ownerReferences of type v1.OwnerReference",
            ),
            (json!("x"), "string into Go value of type v1.ObjectMeta"),
        ];
        for (metadata, want) in rows {
            let want = format!("json: cannot unmarshal {want}");
            assert_eq!(coerced(metadata.clone(), MalformedFields::Refuse), Err(want), "{metadata}");
        }
    }

    #[test]
    fn malformed_fields_of_stored_objects_are_dropped() {
        let metadata = json!({"foo": 1, "name": 5, "labels": {"a": "b", "c": 1}, "annotations": {"a": "b"}, "generation": 2});
        let want = (json!({"annotations": {"a": "b"}, "generation": 2}), vec!["metadata.foo".to_owned()]);
        assert_eq!(coerced(metadata, MalformedFields::Drop), Ok(want));
        assert_eq!(
            coerced(json!("x"), MalformedFields::Drop),
            Err("invalid metadata: expected object, got string".into())
        );
    }
}
