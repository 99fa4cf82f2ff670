//! ConfigMaps.
//!
//! In: a ConfigMap. Out: causes. Never: changes it.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use super::base64;
use crate::field::{Causes, Path};
use crate::format;
use crate::meta::{validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::value::{Members, child_or_empty, entries, is_true, same_member};

/// Bytes of all values together, as etcd can take them.
pub const DATA_BYTES_MAX: usize = 1 << 20;

pub fn validate_create(config_map: &Members, causes: &mut Causes) {
    let (data, binary) = (Path::root("data"), Path::root("binaryData"));
    let both = child_or_empty(config_map, "binaryData");
    let mut bytes = 0;
    for (key, value) in entries(config_map, "data") {
        causes.faults(&data.key(key), key, format::config_key(key));
        if both.contains_key(key) {
            causes.invalid(&data.key(key), key, "duplicate of key present in binaryData");
        }
        bytes += value.len();
    }
    for (key, value) in entries(config_map, "binaryData") {
        causes.faults(&binary.key(key), key, format::config_key(key));
        bytes += base64::decoded_len(value);
    }
    if bytes > DATA_BYTES_MAX {
        causes.too_long(&Path::root(""), DATA_BYTES_MAX);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    unchanged_once_immutable(new, update.old, &["data", "binaryData"], causes);
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate_create(new, causes);
}

/// Nothing but metadata changes once `immutable` was set.
pub fn unchanged_once_immutable(new: &Members, old: &Members, names: &[&str], causes: &mut Causes) {
    const DETAIL: &str = "field is immutable when `immutable` is set";
    if !is_true(old, "immutable") {
        return;
    }
    if !is_true(new, "immutable") {
        causes.forbidden(&Path::root("immutable"), DETAIL);
    }
    for name in names {
        if !same_member(new, old, name) {
            causes.forbidden(&Path::root(name), DETAIL);
        }
    }
}
