//! A schema in protobuf: `openapi.v2.Schema`.
//!
//! In: a definition in the words of v2. Out: its message. What the message has no field for is left out, as
//! gnostic does; `x-` members become extensions.

use forebay_apimachinery::json::write_sorted;
use serde_json::{Map, Value};

use super::named;
use super::wire::MessageWriter;

/// Deeper schemas than this are cut off; definitions do not nest as deep.
const DEPTH_MAX: usize = 200;

pub fn schema(schema: &Value) -> MessageWriter {
    written(schema, 0)
}

fn written(schema: &Value, depth: usize) -> MessageWriter {
    let mut out = MessageWriter::default();
    let Some(members) = schema.as_object().filter(|_| depth < DEPTH_MAX) else { return out };
    for (member, value) in members {
        keyword(member, value, depth, &mut out);
    }
    extensions(schema, 31, &mut out);
    out
}

fn keyword(member: &str, value: &Value, depth: usize, out: &mut MessageWriter) {
    let as_text = value.as_str().unwrap_or_default();
    let as_double = value.as_f64().unwrap_or_default();
    let as_int = value.as_i64().unwrap_or(as_double as i64);
    let is_true = value == true;
    let list = || value.as_array().into_iter().flatten();
    match member {
        "$ref" => out.text(1, as_text),
        "format" => out.text(2, as_text),
        "title" => out.text(3, as_text),
        "description" => out.text(4, as_text),
        "default" => out.message(5, any(value)),
        "multipleOf" => out.double(6, as_double),
        "maximum" => out.double(7, as_double),
        "exclusiveMaximum" => out.flag(8, is_true),
        "minimum" => out.double(9, as_double),
        "exclusiveMinimum" => out.flag(10, is_true),
        "maxLength" => out.int(11, as_int),
        "minLength" => out.int(12, as_int),
        "pattern" => out.text(13, as_text),
        "maxItems" => out.int(14, as_int),
        "minItems" => out.int(15, as_int),
        "uniqueItems" => out.flag(16, is_true),
        "maxProperties" => out.int(17, as_int),
        "minProperties" => out.int(18, as_int),
        "required" => list().filter_map(Value::as_str).for_each(|name| out.always_text(19, name)),
        "enum" => list().for_each(|value| out.message(20, any(value))),
        "additionalProperties" => out.message(21, schema_or_bool(value, depth)),
        "type" => {
            let mut kinds = MessageWriter::default();
            kinds.always_text(1, as_text);
            out.message(22, kinds);
        }
        "items" => out.message(23, MessageWriter::of(1, written(value, depth + 1))),
        "allOf" => list().for_each(|schema| out.message(24, written(schema, depth + 1))),
        "properties" => out.message(25, properties(value.as_object(), depth)),
        "externalDocs" => {
            let mut docs = MessageWriter::default();
            docs.text(1, text(value, "description"));
            docs.text(2, text(value, "url"));
            out.message(29, docs);
        }
        "example" => out.message(30, any(value)),
        _ => {}
    }
}

fn properties(properties: Option<&Map<String, Value>>, depth: usize) -> MessageWriter {
    let mut out = MessageWriter::default();
    for (name, property) in properties.into_iter().flatten() {
        out.message(1, named(name, written(property, depth + 1)));
    }
    out
}

fn schema_or_bool(value: &Value, depth: usize) -> MessageWriter {
    match value {
        Value::Bool(on) => {
            let mut out = MessageWriter::default();
            out.always_flag(2, *on);
            out
        }
        schema => MessageWriter::of(1, written(schema, depth + 1)),
    }
}

/// The `x-` members.
pub fn extensions(of: &Value, field: u32, out: &mut MessageWriter) {
    let members = of.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| name.starts_with("x-")) {
        out.message(field, named(name, any(value)));
    }
}

/// A value of any kind, as text.
fn any(value: &Value) -> MessageWriter {
    let mut json = Vec::new();
    write_sorted(value, &mut json);
    json.push(b'\n');
    let mut out = MessageWriter::default();
    out.text(2, &String::from_utf8_lossy(&json));
    out
}

pub fn text<'v>(of: &'v Value, member: &str) -> &'v str {
    of[member].as_str().unwrap_or_default()
}
