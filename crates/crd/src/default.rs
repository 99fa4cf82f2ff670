//! Fills in defaults.
//!
//! In: a pruned custom resource. Out: the same with the schema's defaults where a field is absent, or null
//! where null is not allowed; defaults of fields inside of a default apply too. Never judges values.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/defaulting/algorithm.go`.

use forebay_apimachinery::json::weight::{self, MEMBER_BYTES, OBJECT_BYTES};
use forebay_apimachinery::lease::{Exhausted, Meter};
use serde_json::Value;

use super::schema::{Flags, Node, Schema};

impl Schema {
    /// Fills in the defaults of a whole object.
    ///
    /// - `meter`: what the defaults take is charged to it before they are there. A long one stands wherever
    ///   its object does.
    ///
    /// # Errors
    /// [`Exhausted`]; the object has some of its defaults then.
    pub fn default(&self, object: &mut Value, meter: &mut Meter) -> Result<(), Exhausted> {
        default(object, self.root(), meter)
    }
}

fn default(value: &mut Value, node: &Node, meter: &mut Meter) -> Result<(), Exhausted> {
    if !node.has(Flags::DEFAULT_BELOW) {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            // Each of them is in the object, or takes memory that is charged.
            for (name, property) in node.defaulted() {
                let Some(default) = property.default_value() else { continue };
                if map.get(name).is_none_or(|value| is_unwanted_null(value, property)) {
                    let place = if map.is_empty() { OBJECT_BYTES } else { MEMBER_BYTES };
                    meter.charge(place + weight::text(name.len()) + weight::of(default))?;
                    map.insert(name.to_owned(), default.clone());
                }
            }
            for (name, value) in map {
                if let Some(schema) = node.property(name) {
                    default(value, schema, meter)?;
                } else if let Some(schema) = node.additional_schema() {
                    replace_null(value, schema, meter)?;
                    default(value, schema, meter)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.item() else { return Ok(()) };
            for item in items {
                replace_null(item, schema, meter)?;
                default(item, schema, meter)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_unwanted_null(value: &Value, node: &Node) -> bool {
    value.is_null() && !node.nullable()
}

fn replace_null(value: &mut Value, node: &Node, meter: &mut Meter) -> Result<(), Exhausted> {
    if is_unwanted_null(value, node) {
        let default = node.default_value();
        meter.charge(default.map_or(0, weight::of))?;
        *value = default.cloned().unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Lease;
    use serde_json::json;

    use super::*;

    fn check(schema: Value, object: Value, want: Value) {
        let mut defaulted = object.clone();
        let mut meter = Lease::of_server().meter();
        Schema::compile(&schema).default(&mut defaulted, &mut meter).expect("bounded");
        assert_eq!(defaulted, want, "{schema} {object}");
    }

    fn a(more: Value) -> Value {
        let mut schema = json!({"type": "string", "default": "A"});
        schema.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"type": "object", "properties": {"a": schema}})
    }

    #[test]
    fn absent_fields_get_their_default() {
        check(a(json!({})), json!({}), json!({"a": "A"}));
        check(a(json!({})), json!({"a": ""}), json!({"a": ""}));
        check(a(json!({})), json!("x"), json!("x"));
    }

    #[test]
    fn null_counts_as_absent_unless_it_is_allowed() {
        check(a(json!({})), json!({"a": null}), json!({"a": "A"}));
        check(a(json!({"nullable": true})), json!({"a": null}), json!({"a": null}));
    }

    #[test]
    fn defaults_reach_into_lists_maps_and_defaults() {
        let item = a(json!({}));
        check(
            json!({"type": "array", "items": item}),
            json!([{}, {"a": "x"}, 5]),
            json!([{"a": "A"}, {"a": "x"}, 5]),
        );
        check(
            json!({"type": "object", "additionalProperties": item}),
            json!({"k": {}}),
            json!({"k": {"a": "A"}}),
        );
        let mut nested = item.clone();
        nested["default"] = json!({});
        check(json!({"type": "object", "properties": {"n": nested}}), json!({}), json!({"n": {"a": "A"}}));
        check(json!({"type": "object", "properties": {"n": item}}), json!({}), json!({}));
    }

    #[test]
    fn a_long_default_in_many_places_is_charged_before_it_is_there() {
        let mut item = a(json!({}));
        item["properties"]["a"]["default"] = "A".repeat(100_000).into();
        let schema = Schema::compile(&json!({"type": "array", "items": item}));
        let lease = Lease::of_one_tree();
        let mut few = json!([{}, {}]);
        assert_eq!(schema.default(&mut few, &mut lease.meter()), Ok(()));
        assert!(lease.used() > 200_000);
        let mut many = Value::from(vec![json!({}); 2_000]);
        assert_eq!(schema.default(&mut many, &mut Lease::of_one_tree().meter()), Err(Exhausted::TooLarge));
    }

    #[test]
    fn nulls_in_lists_and_maps_are_replaced() {
        let item = json!({"type": "string", "default": "A"});
        check(json!({"type": "array", "items": item}), json!([null, "x"]), json!(["A", "x"]));
        check(json!({"type": "object", "additionalProperties": item}), json!({"k": null}), json!({"k": "A"}));
        let nullable = json!({"type": "string", "default": "A", "nullable": true});
        check(json!({"type": "array", "items": nullable}), json!([null]), json!([null]));
    }
}
