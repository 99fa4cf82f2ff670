//! Merging maps: directives, `$retainKeys`, `$setElementOrder`, and the keys themselves.

use serde_json::{Map, Value};

use super::error::{GO_LIST, PatchError, go_format, go_type};
use super::limits::DEPTH_MAX;
use super::lists;
use super::lookup::{Schema, Strategy};
use super::walk::Walk;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// Merges `patch` into `original`.
pub(super) fn merge(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Schema,
    walk: Walk<'_>,
) -> Result<Map<String, Value>, PatchError> {
    if walk.depth > DEPTH_MAX {
        return Err(PatchError::TooDeep);
    }
    walk.pass(1 + patch.len())?;
    match patch.get(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
        Some(directive) => return Err(unknown_directive(directive, &patch)),
    }
    if patch.contains_key(RETAIN_KEYS) {
        walk.pass(original.len())?;
    }
    retain_keys(&mut original, &mut patch)?;
    order_lists(&mut original, &mut patch, schema, walk)?;
    for (key, value) in patch {
        merge_key(&mut original, &key, value, schema, walk)?;
    }
    Ok(original)
}

pub(super) fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> PatchError {
    // Go prints with %s, which complains of what is not a string.
    let directive = match directive {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".into(),
        Value::Array(_) | Value::Object(_) => go_format(directive),
        other => format!("%!s({}={})", go_type(other), go_format(other)),
    };
    PatchError::UnknownDirective { directive, map: go_format(&Value::Object(map.clone())) }
}

/// `$retainKeys` clears all keys that it does not list, and must list all that the patch sets.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), PatchError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = directive else { return Err(PatchError::RetainKeysFormat) };
    let keys: std::collections::HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let listed = |key: &str| keys.contains(key);
    let parallel = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ELEMENT_ORDER);
    // Once: each member of the patch.
    if patch.iter().any(|(key, value)| !value.is_null() && !parallel(key) && !listed(key)) {
        return Err(PatchError::RetainKeysFormat);
    }
    original.retain(|key, _| listed(key));
    Ok(())
}

/// Merges the lists that have a `$setElementOrder` and takes both out of the patch.
fn order_lists(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Schema,
    walk: Walk<'_>,
) -> Result<(), PatchError> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            Some(other) => return Err(PatchError::bad_type(GO_LIST, &other)),
            None => continue,
        };
        let key = parallel_key(&directive, SET_ELEMENT_ORDER).ok_or(PatchError::SetElementOrderFormat)?;
        let from_original = original.get(key).map(as_list).transpose()?;
        let from_patch = patch.get(key).map(as_list).transpose()?;
        let merging = schema.of_list(key)?;
        lists::check_order(from_patch.unwrap_or_default(), &order, merging.key)?;
        if from_original.is_none() && from_patch.is_none() {
            continue;
        }
        let ordered =
            lists::merge_ordered(take_list(original, key), take_list(patch, key), &order, merging, walk)?;
        original.insert(key.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn as_list(value: &Value) -> Result<&[Value], PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(PatchError::bad_type(GO_LIST, other)),
    }
}

fn take_list(map: &mut Map<String, Value>, key: &str) -> Option<Vec<Value>> {
    match map.remove(key) {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    }
}

/// The key behind the slash of a parallel list's key.
fn parallel_key<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    key.strip_prefix(prefix)?.strip_prefix('/')
}

fn merge_key(
    original: &mut Map<String, Value>,
    key: &str,
    mut value: Value,
    schema: Schema,
    walk: Walk<'_>,
) -> Result<(), PatchError> {
    let mut key = key;
    let deletes = key.starts_with(DELETE_FROM_LIST);
    if deletes {
        key = parallel_key(key, DELETE_FROM_LIST).ok_or(PatchError::PrimitiveListFormat)?;
    }
    if value.is_null() {
        original.remove(key);
        return Ok(());
    }
    let Some(slot) = original.get_mut(key) else {
        if !deletes {
            discard_nulls(&mut value, walk)?;
            set(original, key, value, walk)?;
        }
        return Ok(());
    };
    match (slot, value) {
        (Value::Object(old), Value::Object(new)) => {
            let merging = schema.of_map(key)?;
            *old = if merging.strategy == Strategy::Replace {
                new
            } else {
                merge(std::mem::take(old), new, merging.schema, walk.deeper())?
            };
        }
        (Value::Array(old), Value::Array(new)) => {
            let merging = schema.of_list(key)?;
            *old = if deletes || merging.strategy == Strategy::Merge {
                let mode = if deletes { lists::Mode::Delete } else { lists::Mode::Merge };
                lists::merge(std::mem::take(old), new, merging, mode, walk.deeper())?
            } else {
                new
            };
        }
        (_, mut value) if !deletes => {
            discard_nulls(&mut value, walk)?;
            set(original, key, value, walk)?;
        }
        _ => {}
    }
    Ok(())
}

fn set(
    original: &mut Map<String, Value>,
    key: &str,
    mut value: Value,
    walk: Walk<'_>,
) -> Result<(), PatchError> {
    if remove_directives(&mut value, walk)? {
        original.insert(key.to_owned(), value);
    } else {
        original.remove(key);
    }
    Ok(())
}

/// Takes out maps that carry a `$patch`: there is nothing to apply them to. Returns whether the value stays.
pub(super) fn remove_directives(value: &mut Value, walk: Walk<'_>) -> Result<bool, PatchError> {
    if walk.depth > DEPTH_MAX {
        return Err(PatchError::TooDeep);
    }
    let mut failed = None;
    let mut keep = |value: &mut Value| {
        remove_directives(value, walk.deeper()).unwrap_or_else(|error| {
            failed = Some(error);
            true
        })
    };
    match value {
        Value::Object(map) => {
            if map.contains_key(DIRECTIVE) {
                return Ok(false);
            }
            map.retain(|_, value| keep(value));
        }
        Value::Array(items) => items.retain_mut(keep),
        _ => {}
    }
    failed.map_or(Ok(true), Err)
}

/// A `null` that deletes nothing is not kept.
fn discard_nulls(value: &mut Value, walk: Walk<'_>) -> Result<(), PatchError> {
    if walk.depth > DEPTH_MAX {
        return Err(PatchError::TooDeep);
    }
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().try_for_each(|value| discard_nulls(value, walk.deeper()))
        }
        Value::Array(items) => items.iter_mut().try_for_each(|value| discard_nulls(value, walk.deeper())),
        _ => Ok(()),
    }
}
