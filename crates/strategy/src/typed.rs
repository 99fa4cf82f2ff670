//! Whether two values of a built-in kind mean the same, by the types of the API.
//!
//! In: canonical values, and the field that they are of. Out: yes or no. Never: values of custom resources.
//!
//! A name says too little: `readOnly` may be left out of the `csi` of a volume or may be false, and the two
//! are one in a PersistentVolume, where the field is no pointer, and two in a pod, where it is one.
//!
//! Source: apimachinery v0.36.3 `api/equality`, `third_party/forked/golang/reflect`.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::LazyLock;

use forebay_apimachinery::steps;
use forebay_schema::builtin::{Field, TypeId, TypeKind, table};
use serde_json::{Map, Value};

type Members = Map<String, Value>;

/// The field `name` of what `object` says that it is; none when it says nothing, or is of no built-in kind.
pub fn field(object: &Members, name: &str) -> Option<&'static Field> {
    let said = |name| object.get(name).and_then(Value::as_str);
    let (api_version, kind) = (said("apiVersion")?, said("kind")?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    table().member(table().kind(group, version, kind)?.ty, name)
}

/// Whether two structs of this package and name, `core/v1` and `PodSpec`, mean the same.
///
/// Cost: one walk through both.
pub fn same_of((package, name): (&str, &str), a: &Members, b: &Members) -> bool {
    let ty = table().type_named(package, name);
    debug_assert!(ty.is_some(), "no type {package}.{name}");
    ty.is_some_and(|ty| same_structs(ty, a, b))
}

/// Whether two values of the field `name` of a struct of this package and name mean the same.
///
/// Cost: one walk through both.
pub fn same_field_of((package, ty): (&str, &str), name: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    let field = table().type_named(package, ty).and_then(|ty| table().member(ty, name));
    debug_assert!(field.is_some(), "no field {name} of {package}.{ty}");
    field.is_some_and(|field| same(field, a, b))
}

/// Whether two values of `field` mean the same: what is absent equals what is empty or zero, unless the field
/// is a pointer.
///
/// Cost: one walk through both.
pub fn same(field: &Field, a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same_values(field.ty, a, b),
        (Some(value), None) | (None, Some(value)) => is_absence(field, value),
        (None, None) => true,
    }
}

fn same_values(ty: TypeId, a: &Value, b: &Value) -> bool {
    steps::add(1);
    let elem = table().elem(ty);
    match (table().ty(ty).kind, a, b) {
        (TypeKind::Struct, Value::Object(a), Value::Object(b)) => same_structs(ty, a, b),
        (TypeKind::Map, Value::Object(a), Value::Object(b)) => {
            let is_in = |(name, a): (&String, _)| b.get(name).is_some_and(|b| same_values(elem, a, b));
            a.len() == b.len() && a.iter().all(is_in)
        }
        (TypeKind::List, Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_values(elem, a, b))
        }
        _ => a == b,
    }
}

fn same_structs(ty: TypeId, a: &Members, b: &Members) -> bool {
    let member = |name: &String| table().member(ty, name);
    let same_there = |(name, value): (&String, &Value)| match member(name) {
        Some(field) => same(field, Some(value), b.get(name)),
        None => b.get(name) == Some(value),
    };
    let nothing_else = |(name, value): (&String, &Value)| {
        a.contains_key(name) || member(name).is_some_and(|field| is_absence(field, value))
    };
    a.iter().all(same_there) && b.iter().all(nothing_else)
}

/// Whether `value` means no more than that the field is absent.
fn is_absence(field: &Field, value: &Value) -> bool {
    value.is_null() || !field.flags.pointer() && is_zero(field.ty, value)
}

fn is_zero(ty: TypeId, value: &Value) -> bool {
    steps::add(1);
    match (table().ty(ty).kind, value) {
        (_, Value::Null) => true,
        (TypeKind::Struct, Value::Object(members)) => members
            .iter()
            .all(|(name, value)| table().member(ty, name).is_some_and(|field| is_absence(field, value))),
        (TypeKind::Map, Value::Object(members)) => members.is_empty(),
        (TypeKind::List, Value::Array(items)) => items.is_empty(),
        (TypeKind::Quantity, Value::String(text)) => text.is_empty() || text == "0",
        (TypeKind::String | TypeKind::Bytes, Value::String(text)) => text.is_empty(),
        (TypeKind::Bool, Value::Bool(is_true)) => !is_true,
        (TypeKind::Int32 | TypeKind::Int64 | TypeKind::IntOrString, Value::Number(number)) => {
            number.as_i64() == Some(0)
        }
        (TypeKind::Double, Value::Number(number)) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// Names of texts, numbers and truths that are pointers wherever they occur, so that the name alone says that
/// their zero is not their absence.
static ALWAYS_POINTERS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let table = table();
    let scalars = table.types().flat_map(|(ty, _)| table.fields(ty)).filter(|field| {
        let kind = table.ty(field.ty).kind;
        use TypeKind::{Bool, Double, Int32, Int64, String};
        matches!(kind, String | Bool | Int32 | Int64 | Double)
    });
    let (pointers, values): (Vec<&Field>, Vec<&Field>) = scalars.partition(|field| field.flags.pointer());
    let values: HashSet<&str> = values.iter().map(|field| field.name).collect();
    pointers.iter().map(|field| field.name).filter(|name| !values.contains(name)).collect()
});

/// Whether a text, a number or a truth of this name is a pointer wherever it occurs.
pub fn is_always_pointer(name: &str) -> bool {
    ALWAYS_POINTERS.contains(name)
}
