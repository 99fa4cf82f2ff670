//! A read-only view of an object of a CRD, foremost of an OpenAPI v3 schema (JSONSchemaProps) as it stands
//! there.
//!
//! In: JSON values, borrowed. Out: typed accessors; a member that is absent, null or of the wrong type reads
//! as unset, because the decoder in front has already refused wrong types. Never copies, so a schema of any
//! size costs nothing.

use forebay_apimachinery::steps;
use serde_json::{Map, Value};

use forebay_apimachinery::go_format::Num;

/// One object or schema; copying it copies a pointer.
#[derive(Clone, Copy)]
pub(crate) struct Props<'a>(Option<&'a Map<String, Value>>);

/// `items`: one schema, or the list of schemas that structural schemas forbid.
pub(crate) enum Items<'a> {
    Schema(Props<'a>),
    Schemas(&'a [Value]),
}

/// `additionalProperties` and `additionalItems`.
#[derive(Clone, Copy)]
pub(crate) enum SchemaOrBool<'a> {
    Schema(Props<'a>),
    Bool(bool),
}

impl<'a> SchemaOrBool<'a> {
    pub(crate) fn schema(self) -> Option<Props<'a>> {
        match self {
            SchemaOrBool::Schema(schema) => Some(schema),
            SchemaOrBool::Bool(_) => None,
        }
    }

    /// A schema also allows.
    pub(crate) fn allows(self) -> bool {
        !matches!(self, SchemaOrBool::Bool(false))
    }
}

impl<'a> Props<'a> {
    pub(crate) const EMPTY: Props<'static> = Props(None);

    /// Views a value as a schema; anything but an object is the empty schema.
    pub(crate) fn of(value: &'a Value) -> Self {
        Props(value.as_object())
    }

    /// The member `key` as an object of its own.
    pub(crate) fn object(self, key: &str) -> Option<Props<'a>> {
        self.get(key).filter(|value| value.is_object()).map(Props::of)
    }

    /// The member `key`, when there is something in it: an empty list counts as absent.
    pub(crate) fn filled(self, key: &str) -> Option<&'a Value> {
        self.get(key).filter(|value| value.as_array().is_none_or(|list| !list.is_empty()))
    }

    /// The objects of a list.
    pub(crate) fn objects(self, key: &str) -> impl ExactSizeIterator<Item = Props<'a>> {
        self.schemas(key)
    }

    /// The member `key`, when it is there and not null.
    pub(crate) fn get(self, key: &str) -> Option<&'a Value> {
        steps::add(1);
        self.0?.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn entries(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value))
            .filter(|(_, value)| !value.is_null())
    }

    pub(crate) fn str(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or("")
    }

    pub(crate) fn opt_str(self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    pub(crate) fn flag(self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn float(self, key: &str) -> Option<f64> {
        Some(Num::of(self.get(key)?.as_number()?).as_f64())
    }

    pub(crate) fn int(self, key: &str) -> Option<i64> {
        match Num::of(self.get(key)?.as_number()?) {
            Num::Int(i) => Some(i),
            Num::Float(_) => None,
        }
    }

    pub(crate) fn list(self, key: &str) -> &'a [Value] {
        self.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn strings(self, key: &str) -> impl Iterator<Item = &'a str> {
        self.list(key).iter().inspect(|_| steps::add(1)).map(|value| value.as_str().unwrap_or(""))
    }

    pub(crate) fn schemas(self, key: &str) -> impl ExactSizeIterator<Item = Props<'a>> {
        self.list(key).iter().inspect(|_| steps::add(1)).map(Props::of)
    }

    /// The named schemas of a map member, in order of name.
    pub(crate) fn named(self, key: &str) -> Vec<(&'a str, Props<'a>)> {
        let Some(map) = self.get(key).and_then(Value::as_object) else { return Vec::new() };
        steps::add(map.len() as u64);
        let mut named: Vec<_> = map.iter().map(|(name, value)| (name.as_str(), Props::of(value))).collect();
        named.sort_by_key(|(name, _)| *name);
        named
    }

    /// Where it is in memory: as long as it is borrowed, no other one is there.
    pub(crate) fn address(self) -> usize {
        self.0.map_or(0, |map| std::ptr::from_ref(map).addr())
    }

    /// Whether a map member names anything.
    pub(crate) fn names_any(self, key: &str) -> bool {
        self.get(key).and_then(Value::as_object).is_some_and(|map| !map.is_empty())
    }

    pub(crate) fn property(self, name: &str) -> Option<Props<'a>> {
        self.get("properties")?.as_object()?.get(name).map(Props::of)
    }

    pub(crate) fn schema_or_bool(self, key: &str) -> Option<SchemaOrBool<'a>> {
        Some(match self.get(key)? {
            Value::Bool(allows) => SchemaOrBool::Bool(*allows),
            schema => SchemaOrBool::Schema(Props::of(schema)),
        })
    }

    pub(crate) fn items(self) -> Option<Items<'a>> {
        Some(match self.get("items")? {
            Value::Array(schemas) => Items::Schemas(schemas),
            schema @ Value::Object(_) => Items::Schema(Props::of(schema)),
            _ => Items::Schemas(&[]),
        })
    }

    /// `items` when it is one schema.
    pub(crate) fn item(self) -> Option<Props<'a>> {
        match self.items()? {
            Items::Schema(schema) => Some(schema),
            Items::Schemas(_) => None,
        }
    }

    pub(crate) fn not(self) -> Option<Props<'a>> {
        self.get("not").map(Props::of)
    }

    pub(crate) fn kind(self) -> &'a str {
        self.str("type")
    }

    pub(crate) fn default_value(self) -> Option<&'a Value> {
        self.get("default")
    }

    pub(crate) fn nullable(self) -> bool {
        self.flag("nullable")
    }

    pub(crate) fn preserve_unknown_fields(self) -> Option<bool> {
        self.get("x-kubernetes-preserve-unknown-fields")?.as_bool()
    }

    pub(crate) fn embedded_resource(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    pub(crate) fn int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    pub(crate) fn list_type(self) -> Option<&'a str> {
        self.opt_str("x-kubernetes-list-type")
    }

    pub(crate) fn map_type(self) -> Option<&'a str> {
        self.opt_str("x-kubernetes-map-type")
    }

    pub(crate) fn list_map_keys(self) -> impl Iterator<Item = &'a str> {
        self.strings("x-kubernetes-list-map-keys")
    }

    pub(crate) fn rules(self) -> &'a [Value] {
        self.list("x-kubernetes-validations")
    }

    /// Whether `wanted` holds for this schema or any below it.
    pub(crate) fn any(self, wanted: &mut dyn FnMut(Props<'a>) -> bool) -> bool {
        if wanted(self) {
            return true;
        }
        let items = match self.items() {
            Some(Items::Schema(schema)) => schema.any(wanted),
            // Once: each schema.
            Some(Items::Schemas(schemas)) => schemas.iter().any(|s| Props::of(s).any(wanted)),
            None => false,
        };
        items
            || ["allOf", "anyOf", "oneOf"].iter().any(|key| self.schemas(key).any(|s| s.any(wanted)))
            || self.not().is_some_and(|s| s.any(wanted))
            || ["properties", "patternProperties", "definitions", "dependencies"]
                .iter()
                .any(|key| self.named(key).into_iter().any(|(_, s)| s.any(wanted)))
            || ["additionalProperties", "additionalItems"].iter().any(|key| {
                self.schema_or_bool(key).and_then(SchemaOrBool::schema).is_some_and(|s| s.any(wanted))
            })
    }
}

/// Whether a value nests no deeper than `max`: asked before anything recurses into it.
pub fn depth_within(value: &Value, max: usize) -> bool {
    let Some(below) = max.checked_sub(1) else { return !(value.is_object() || value.is_array()) };
    match value {
        Value::Array(items) => items.iter().all(|item| depth_within(item, below)),
        Value::Object(map) => map.values().all(|item| depth_within(item, below)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_null_and_mistyped_members_read_as_unset() {
        let value =
            json!({"type": 5, "default": null, "maximum": 3, "maxLength": 1.5, "items": true, "enum": "x"});
        let props = Props::of(&value);
        assert_eq!(props.kind(), "");
        assert!(props.default_value().is_none());
        assert_eq!(props.float("maximum"), Some(3.0));
        assert_eq!(props.int("maxLength"), None);
        assert!(matches!(props.items(), Some(Items::Schemas([]))));
        assert!(props.list("enum").is_empty());
        assert_eq!(Props::of(&json!(7)).entries().count(), 0);
    }

    #[test]
    fn any_finds_a_schema_wherever_it_hangs() {
        let hit = json!({"format": "hit"});
        let places = [
            json!({"items": hit}),
            json!({"items": [hit]}),
            json!({"allOf": [hit]}),
            json!({"anyOf": [{}, hit]}),
            json!({"oneOf": [hit]}),
            json!({"not": hit}),
            json!({"properties": {"a": {"properties": {"b": hit}}}}),
            json!({"additionalProperties": hit}),
            json!({"additionalItems": hit}),
            json!({"patternProperties": {"a": hit}}),
            json!({"definitions": {"a": hit}}),
            json!({"dependencies": {"a": hit}}),
        ];
        for place in &places {
            assert!(Props::of(place).any(&mut |p| p.str("format") == "hit"), "{place}");
            assert!(!Props::of(place).any(&mut |p| p.str("format") == "miss"), "{place}");
        }
    }

    #[test]
    fn depth_is_counted_to_the_limit() {
        let mut value = json!(1);
        for depth in 0..5 {
            assert!(depth_within(&value, depth), "{value}");
            assert!(depth == 0 || !depth_within(&value, depth - 1), "{value}");
            value = if depth % 2 == 0 { json!([value]) } else { json!({"a": value}) };
        }
    }
}
