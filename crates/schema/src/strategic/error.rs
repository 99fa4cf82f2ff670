//! What can be wrong with a patch, in upstream's words.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A strategic merge patch that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("json: cannot unmarshal {value} into Go value of type map[string]interface {{}}")]
    NotAnObject { value: &'static str },
    #[error("invalid patch format of primitive list")]
    PrimitiveListFormat,
    #[error("invalid patch format of retainKeys")]
    RetainKeysFormat,
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrderFormat,
    #[error("lists of lists are not supported")]
    ListOfLists,
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey { map: String, key: &'static str },
    #[error("expected a {expected}, but received a {actual}")]
    BadType { expected: &'static str, actual: &'static str },
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective { directive: String, map: String },
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirectiveInList,
    #[error("cannot merge lists without merge key for {kind}")]
    ListWithoutMergeKey { kind: &'static str },
    #[error("list element types are not identical: {lists}")]
    MixedElements { lists: String },
    #[error("no elements in any of the given slices")]
    NoElements,
    #[error("value for key {index} is not a map")]
    NotAMap { index: usize },
    #[error("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch { patch: String, order: String },
    #[error("merging an object in json but data type is not struct, instead is: {kind}")]
    NotAStruct { kind: &'static str },
    #[error("unable to find api field in struct {strukt} for the json field {field}")]
    NoSuchField { strukt: &'static str, field: String },
    #[error("unexpected slice of slice")]
    SliceOfSlice,
    #[error("expected slice or array type, but got: {kind}")]
    NotASlice { kind: &'static str },
    #[error("exceeded max depth")]
    TooDeep,
    #[error(
        "the patch names the same elements so often that merging takes more than {} walks over it and the object",
        super::limits::WALKS_MAX
    )]
    TooManyWalks,
}

/// How kube-apiserver answers a [`PatchError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchFault {
    /// A bad request.
    BadRequest,
    /// An entity that cannot be processed.
    Unprocessable,
    /// Upstream has no better word than an internal error, though the patch is to blame.
    Internal,
}

impl PatchError {
    /// How kube-apiserver answers this error.
    pub fn fault(&self) -> PatchFault {
        match self {
            Self::NotAnObject { .. }
            | Self::PrimitiveListFormat
            | Self::RetainKeysFormat
            | Self::SetElementOrderFormat
            | Self::TooDeep => PatchFault::BadRequest,
            Self::ListOfLists | Self::TooManyWalks => PatchFault::Unprocessable,
            _ => PatchFault::Internal,
        }
    }

    pub(super) fn no_merge_key(map: &Map<String, Value>, key: &'static str) -> Self {
        let mut text = String::new();
        write_map(map, &mut text, 0);
        Self::NoMergeKey { map: text, key }
    }

    pub(super) fn bad_type(expected: &'static str, actual: &Value) -> Self {
        Self::BadType { expected, actual: go_type(actual) }
    }
}

pub(super) const GO_MAP: &str = "map[string]interface {}";
pub(super) const GO_LIST: &str = "[]interface {}";

/// The dynamic type of a decoded value, as `%s` prints it.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => GO_LIST,
        Value::Object(_) => GO_MAP,
    }
}

/// The value as `%v` prints it, which is how upstream names a patch that it refuses.
pub fn go_format(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text, 0);
    text
}

/// Lists as `%v` prints them side by side.
pub(super) fn go_format_lists(lists: &[&[Value]]) -> String {
    let lists: Vec<_> = lists.iter().map(|list| go_format_list(list)).collect();
    format!("[{}]", lists.join(" "))
}

pub(super) fn go_format_list(list: &[Value]) -> String {
    let mut text = String::new();
    write_list(list, &mut text, 0);
    text
}

/// Messages are cut where nesting becomes absurd.
const PRINTED_DEPTH: usize = super::limits::DEPTH_MAX;

fn write_value(value: &Value, text: &mut String, depth: usize) {
    if depth > PRINTED_DEPTH {
        text.push_str("...");
        return;
    }
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => write_number(number, text),
        Value::String(value) => text.push_str(value),
        Value::Array(items) => write_list(items, text, depth),
        Value::Object(map) => write_map(map, text, depth),
    }
}

fn write_list(items: &[Value], text: &mut String, depth: usize) {
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        write_value(item, text, depth + 1);
    }
    text.push(']');
}

fn write_map(map: &Map<String, Value>, text: &mut String, depth: usize) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    text.push_str("map[");
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(key);
        text.push(':');
        write_value(value, text, depth + 1);
    }
    text.push(']');
}

/// `%v` of a float: the shortest digits, with an exponent of two digits below 1e-4 and from 1e21 on.
fn write_number(number: &serde_json::Number, text: &mut String) {
    let float = match (number.as_i64(), number.as_f64()) {
        (None, Some(float)) => float,
        _ => {
            text.push_str(&number.to_string());
            return;
        }
    };
    let size = float.abs();
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        let _ = write!(text, "{float}");
        return;
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    let _ = write!(text, "{digits}e{sign}{exponent:0>2}");
}
