//! What Go says of a merged object that its struct cannot hold: the words of apimachinery's unstructured
//! converter.
//!
//! In: a built-in type and a value. Out: the first mismatch, if it is one that the converter words by itself;
//! types that decode themselves (times, quantities) speak for themselves elsewhere. Never: changes the value,
//! checks what Go would convert without a word.
//!
//! Source: apimachinery v0.36.3 `pkg/runtime/converter.go`.

use forebay_schema::builtin::{Table, TypeId, TypeKind, table};
use forebay_schema::strategic::DEPTH_MAX;
use serde_json::Value;

/// The first place where `value` does not fit `ty`.
pub fn mismatch(ty: TypeId, value: &Value) -> Option<String> {
    first(table(), ty, value, 0)
}

/// As [`mismatch`], of a string.
pub fn not_a_string(value: &Value) -> Option<String> {
    plain(TypeKind::String, value, || "string".into())
}

/// What the decoder of one value said, as the converter passes it on: it gave it that value alone, and bytes
/// as JSON.
pub fn decoder(why: String) -> String {
    if why.starts_with("illegal base64") {
        return format!("error decoding from json: {why}");
    }
    match (why.split_once("Go struct field "), why.rsplit_once(" of type ")) {
        (Some((before, _)), Some((_, ty))) => format!("{before}Go value of type {ty}"),
        _ => why,
    }
}

fn first(table: &Table, ty: TypeId, value: &Value, depth: usize) -> Option<String> {
    if depth > DEPTH_MAX || value.is_null() {
        return None;
    }
    match (table.ty(ty).kind, value) {
        (TypeKind::Struct, Value::Object(members)) => members.iter().find_map(|(name, value)| {
            let field = table.member(ty, name)?;
            first(table, field.ty, value, depth + 1)
        }),
        (TypeKind::Struct, other) => Some(format!("cannot restore struct from: {}", go_type(other))),
        (TypeKind::Map, Value::Object(members)) => {
            members.values().find_map(|value| first(table, table.elem(ty), value, depth + 1))
        }
        (TypeKind::Map, other) => Some(format!("cannot restore map from {}", go_kind(other))),
        (TypeKind::List, Value::Array(items)) => {
            items.iter().find_map(|item| first(table, table.elem(ty), item, depth + 1))
        }
        (TypeKind::List, other) => Some(format!("cannot restore slice from {}", go_kind(other))),
        (TypeKind::Bytes, Value::String(_) | Value::Array(_)) => None,
        (TypeKind::Bytes, other) => Some(format!("cannot restore slice from {}", go_kind(other))),
        (kind, value) => plain(kind, value, || table.go_type(ty)),
    }
}

/// A scalar: what Go could convert but JSON may not is told by its type, anything else by the kind of the
/// target.
fn plain(kind: TypeKind, value: &Value, go_name: impl Fn() -> String) -> Option<String> {
    let whole = |value: &Value| value.as_f64().is_some_and(|number| number.trunc() == number);
    let (fits, target) = match kind {
        TypeKind::String => (value.is_string(), "string"),
        TypeKind::Bool => (value.is_boolean(), "bool"),
        TypeKind::Int32 => (whole(value), "int32"),
        TypeKind::Int64 => (whole(value), "int64"),
        TypeKind::Double => (value.is_number(), "float64"),
        _ => return None,
    };
    let convertible = match kind {
        TypeKind::String => value.is_i64(),
        TypeKind::Bool => false,
        _ => value.is_number(),
    };
    match (fits, convertible) {
        (true, _) => None,
        (false, true) => Some(format!("cannot convert {} to {}", go_type(value), go_name())),
        (false, false) => Some(format!("unrecognized type: {target}")),
    }
}

/// `reflect.Type` of a decoded value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        other => go_kind(other),
    }
}

/// `reflect.Kind` of a decoded value.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
