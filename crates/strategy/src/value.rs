//! Reading and writing members of JSON objects that have been made canonical.
//!
//! In: objects as the codec leaves them: no nulls, no empty lists or maps where they mean nothing. Out:
//! members by type; one of another type counts as absent. Never: panics, names a kind.
//!
//! Whatever looks into an object does so here, and each look is a step: what goes through a list for each
//! item of a list shows in the tests that count them.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use forebay_apimachinery::steps;
use serde_json::{Map, Value, map::Entry};

use super::typed;

pub type Members = Map<String, Value>;

static NO_MEMBERS: LazyLock<Members> = LazyLock::new(Members::new);

fn look<'o>(object: &'o Members, name: &str) -> Option<&'o Value> {
    steps::add(1);
    object.get(name)
}

/// The text of a member, empty when absent.
pub fn text<'o>(object: &'o Members, name: &str) -> &'o str {
    look(object, name).and_then(Value::as_str).unwrap_or("")
}

/// The text of a member that is a pointer.
pub fn text_opt<'o>(object: &'o Members, name: &str) -> Option<&'o str> {
    look(object, name).and_then(Value::as_str)
}

/// The number of a member.
pub fn int(object: &Members, name: &str) -> Option<i64> {
    look(object, name).and_then(Value::as_i64)
}

/// Whether a member is true.
pub fn is_true(object: &Members, name: &str) -> bool {
    look(object, name) == Some(&Value::Bool(true))
}

/// An object member.
pub fn child<'o>(object: &'o Members, name: &str) -> Option<&'o Members> {
    look(object, name).and_then(Value::as_object)
}

/// An object member, or one without members.
pub fn child_or_empty<'o>(object: &'o Members, name: &str) -> &'o Members {
    child(object, name).unwrap_or_else(|| &NO_MEMBERS)
}

/// An object member to change.
pub fn child_mut<'o>(object: &'o mut Members, name: &str) -> Option<&'o mut Members> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

/// An object member to change, made when absent or of another type.
pub fn child_made<'o>(object: &'o mut Members, name: &str) -> &'o mut Members {
    let member = match object.entry(name) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(Value::Null),
    };
    if !member.is_object() {
        *member = Value::Object(Members::new());
    }
    match member {
        Value::Object(made) => made,
        _ => unreachable!("an object was put there"),
    }
}

/// A list member; empty when absent.
pub fn list<'o>(object: &'o Members, name: &str) -> &'o [Value] {
    look(object, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A list member to change.
pub fn list_mut<'o>(object: &'o mut Members, name: &str) -> &'o mut [Value] {
    match object.get_mut(name) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}

/// The objects of a list member.
pub fn objects<'o>(object: &'o Members, name: &str) -> impl DoubleEndedIterator<Item = &'o Members> {
    list(object, name).iter().inspect(|_| steps::add(1)).filter_map(Value::as_object)
}

/// The objects of a list member, to change.
pub fn objects_mut<'o>(object: &'o mut Members, name: &str) -> impl Iterator<Item = &'o mut Members> {
    list_mut(object, name).iter_mut().filter_map(Value::as_object_mut)
}

/// The texts of a list member.
pub fn texts<'o>(object: &'o Members, name: &str) -> impl Iterator<Item = &'o str> {
    list(object, name).iter().inspect(|_| steps::add(1)).filter_map(Value::as_str)
}

/// The entries of a map of texts.
pub fn entries<'o>(object: &'o Members, name: &str) -> impl Iterator<Item = (&'o str, &'o str)> {
    child_or_empty(object, name).iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Sets a member, or removes it.
pub fn set(object: &mut Members, name: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            object.insert(name.to_string(), value);
        }
        None => {
            object.remove(name);
        }
    }
}

/// Makes a member what it is in `from`, absence included.
pub fn take_over(object: &mut Members, from: &Members, name: &str) {
    match (object.get_mut(name), from.get(name)) {
        (Some(member), Some(value)) => member.clone_from(value),
        (None, Some(value)) => {
            object.insert(name.to_string(), value.clone());
        }
        (Some(_), None) => {
            object.remove(name);
        }
        (None, None) => {}
    }
}

/// Fills in a member that is absent.
pub fn default(object: &mut Members, name: &str, value: impl Into<Value>) {
    if !object.contains_key(name) {
        object.insert(name.to_string(), value.into());
    }
}

/// Fills in a text that is absent or empty.
pub fn default_text(object: &mut Members, name: &str, value: &str) {
    match object.get_mut(name) {
        Some(Value::String(text)) if text.is_empty() => value.clone_into(text),
        Some(_) => {}
        None => {
            object.insert(name.to_string(), Value::String(value.to_string()));
        }
    }
}

/// Fills in a number that is absent or zero.
pub fn default_int(object: &mut Members, name: &str, value: i64) {
    match object.get_mut(name) {
        Some(member) if member.as_i64() == Some(0) => *member = value.into(),
        Some(_) => {}
        None => {
            object.insert(name.to_string(), value.into());
        }
    }
}

/// Fills in an object without members.
pub fn default_object(object: &mut Members, name: &str) {
    if !object.contains_key(name) {
        object.insert(name.to_string(), Value::Object(Members::new()));
    }
}

/// Whether two members mean the same, as upstream's semantic equality has it: what is absent equals what is
/// empty, and equals zero unless absence means something else for a member of that `name`.
pub fn same(name: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    steps::add(1);
    match (a, b) {
        (None, None) => true,
        (Some(Value::Object(a)), Some(Value::Object(b))) if is_map(name, a) && is_map(name, b) => a == b,
        (Some(Value::Object(a)), Some(Value::Object(b))) => same_objects(a, b),
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same("", Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b,
        (Some(value), None) | (None, Some(value)) => is_zero(name, value),
    }
}

/// Whether two objects mean the same.
pub fn same_objects(a: &Members, b: &Members) -> bool {
    same_besides(a, b, &[])
}

/// Whether two objects mean the same, apart from some members.
pub fn same_besides(a: &Members, b: &Members, besides: &[&str]) -> bool {
    // Few: what is left out is named in the code.
    let counts = |name: &String| !besides.contains(&name.as_str());
    a.iter().all(|(name, value)| !counts(name) || same(name, Some(value), b.get(name)))
        && b.iter().all(|(name, value)| !counts(name) || a.contains_key(name) || is_zero(name, value))
}

/// Whether the member `name` of two objects means the same. It is judged by its type where `a` says of which
/// built-in kind it is, else by names, as [`same`] does.
pub fn same_member(a: &Members, b: &Members, name: &str) -> bool {
    let (in_a, in_b) = (a.get(name), b.get(name));
    match typed::field(a, name) {
        Some(field) => typed::same(field, in_a, in_b),
        None => same(name, in_a, in_b),
    }
}

fn is_zero(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        // The codec drops empty maps, so an empty object is a struct that somebody points to, or one that is
        // always there and always written.
        Value::Object(members) => {
            ALWAYS_THERE.contains(&name) && members.iter().all(|(name, value)| is_zero(name, value))
        }
        Value::Bool(false) => !is_pointer(name),
        Value::String(text) => text.is_empty() && !is_pointer(name),
        Value::Number(number) => number.as_i64() == Some(0) && !is_pointer(name),
        Value::Bool(true) => false,
    }
}

/// Whether it is a map of texts, in which an empty one is one nevertheless.
fn is_map(name: &str, members: &Members) -> bool {
    MAPS.binary_search(&name).is_ok() && members.values().all(Value::is_string)
}

/// Maps of texts, sorted. A selector may be one.
const MAPS: &[&str] = &[
    "annotations",
    "attachmentMetadata",
    "binaryData",
    "data",
    "deprecatedTopology",
    "labels",
    "matchLabels",
    "nodeSelector",
    "options",
    "parameters",
    "selector",
    "userAnnotations",
    "volumeAttributes",
];

/// Structs that Go writes though they are empty.
const ALWAYS_THERE: &[&str] = &[
    "conditions",
    "jobTemplate",
    "metadata",
    "resources",
    "spec",
    "status",
    "strategy",
    "template",
    "updateStrategy",
];

/// Whether the zero of a member of this name is not the same as its absence.
fn is_pointer(name: &str) -> bool {
    POINTERS.contains(&name) || typed::is_always_pointer(name)
}

/// Names that are pointers in one place and not in another: they count as pointers.
const POINTERS: &[&str] =
    &["apiGroup", "controller", "partition", "priority", "replicas", "storageClassName"];
