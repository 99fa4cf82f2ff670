//! The devices of a ResourceSlice.
//!
//! In: a device. Out: causes. Never: whom it is given to.

use forebay_apimachinery::Seen;
use serde_json::Value;

use super::capacity;
use super::claim::EFFECTS;
use super::lists::{bounded, no_duplicates};
use super::names::{self, QUALIFIED_BYTES_MAX};
use crate::core::pod::node_selector;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::meta::{label_key, label_value};
use crate::value::{
    Members, child, child_or_empty, is_true, list, objects, same_member, text, text_opt, texts,
};

const ATTRIBUTES_AND_CAPACITIES_MAX: usize = 32;
const ATTRIBUTE_VALUES_MAX: usize = 48;
const VALUE_BYTES_MAX: usize = 64;
const TAINTS_MAX: usize = 16;
const CONSUMED_SETS_MAX: usize = 2;
const CONSUMED_COUNTERS_MAX: usize = 32;
const BINDING_CONDITIONS_MAX: usize = 4;
const SCALARS: [&str; 4] = ["int", "bool", "string", "version"];
const LISTS: [&str; 4] = ["ints", "bools", "strings", "versions"];

/// Whether a slice may have fewer of its like.
pub fn is_advanced(device: &Members) -> bool {
    let has_lists = |attribute: &Members| LISTS.iter().any(|name| attribute.contains_key(*name));
    !list(device, "taints").is_empty()
        || !list(device, "consumesCounters").is_empty()
        || child_or_empty(device, "attributes").values().filter_map(Value::as_object).any(has_lists)
}

/// - `old`: the stored device of the same name.
/// - `chooses_nodes`: whether the slice leaves that to its devices.
pub fn validate(
    device: &Members,
    old: Option<&Members>,
    chooses_nodes: bool,
    at: &Path<'_>,
    causes: &mut Causes,
) {
    let name = text(device, "name");
    causes.faults(&at.child("name"), name, format::dns1123_label(name));
    sizes(device, at, causes);
    for (key, value) in child_or_empty(device, "attributes") {
        let (at, shown) = (at.child("attributes"), names::shown_key(key, QUALIFIED_BYTES_MAX));
        names::qualified(key, &at, causes);
        attribute(value.as_object().unwrap_or(&Members::new()), &at.key(&shown), causes);
    }
    let is_shared = is_true(device, "allowMultipleAllocations");
    for (key, value) in child_or_empty(device, "capacity") {
        let (at, shown) = (at.child("capacity"), names::shown_key(key, QUALIFIED_BYTES_MAX));
        names::qualified(key, &at, causes);
        if let Some(of) = value.as_object() {
            capacity::validate(of, is_shared, &at.key(&shown), causes);
        }
    }
    if old.is_none_or(|old| !same_member(old, device, "taints")) {
        let items = bounded(device, "taints", TAINTS_MAX, at, causes);
        for (index, of) in items.iter().filter_map(Value::as_object).enumerate() {
            taint(of, &at.child("taints").index(index), causes);
        }
    }
    consumed_counters(device, at, causes);
    nodes(device, chooses_nodes, at, causes);
    binding_conditions(device, at, causes);
}

fn sizes(device: &Members, at: &Path<'_>, causes: &mut Causes) {
    let attributes = child_or_empty(device, "attributes");
    let total = attributes.len() + child_or_empty(device, "capacity").len();
    if total > ATTRIBUTES_AND_CAPACITIES_MAX {
        let detail = format!(
            "the total number of attributes and capacities must not exceed {ATTRIBUTES_AND_CAPACITIES_MAX}"
        );
        causes.invalid(at, total as i64, &detail);
    }
    let values =
        |attribute: &Members| LISTS.iter().map(|name| list(attribute, name).len()).sum::<usize>().max(1);
    let total: usize = attributes.values().map(|value| value.as_object().map_or(1, values)).sum();
    if total > ATTRIBUTE_VALUES_MAX {
        let detail = format!("the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}");
        causes.invalid(at, total as i64, &detail);
    }
}

/// An attribute has one value, of one of a few types.
fn attribute(attribute: &Members, at: &Path<'_>, causes: &mut Causes) {
    if let Some(value) = text_opt(attribute, "string") {
        string_value(value, &at.child("string"), causes);
    }
    if let Some(value) = text_opt(attribute, "version") {
        version_value(value, &at.child("version"), causes);
    }
    for (index, value) in texts(attribute, "strings").enumerate() {
        string_value(value, &at.child("strings").index(index), causes);
    }
    for (index, value) in texts(attribute, "versions").enumerate() {
        version_value(value, &at.child("versions").index(index), causes);
    }
    let detail = "exactly one value must be specified";
    match SCALARS.iter().chain(&LISTS).filter(|name| attribute.contains_key(**name)).count() {
        0 => causes.invalid(at, "", detail),
        1 => {}
        _ => causes.invalid(at, internal::shown("resource.DeviceAttribute", attribute), detail),
    }
}

fn string_value(value: &str, at: &Path<'_>, causes: &mut Causes) {
    if value.len() > VALUE_BYTES_MAX {
        causes.too_long(at, VALUE_BYTES_MAX);
    }
}

fn version_value(value: &str, at: &Path<'_>, causes: &mut Causes) {
    if !names::is_semver(value) {
        causes.invalid(at, value, "must be a string compatible with semver.org spec 2.0.0");
    }
    string_value(value, at, causes);
}

fn taint(taint: &Members, at: &Path<'_>, causes: &mut Causes) {
    label_key(text(taint, "key"), &at.child("key"), causes);
    let value = text(taint, "value");
    if !value.is_empty() {
        label_value(value, &at.child("value"), causes);
    }
    match text(taint, "effect") {
        "" => causes.required(&at.child("effect"), ""),
        effect if EFFECTS.contains(&effect) => {}
        effect => causes.not_supported(&at.child("effect"), effect, &EFFECTS),
    }
}

fn consumed_counters(device: &Members, at: &Path<'_>, causes: &mut Causes) {
    let items = bounded(device, "consumesCounters", CONSUMED_SETS_MAX, at, causes);
    let at = at.child("consumesCounters");
    for (index, of) in items.iter().filter_map(Value::as_object).enumerate() {
        counters(of, "counterSet", CONSUMED_COUNTERS_MAX, &at.index(index), causes);
    }
    no_duplicates(items.iter().filter_map(Value::as_object).map(|of| text(of, "counterSet")), &at, causes);
}

/// A set of counters, named by the member `named`.
pub fn counters(set: &Members, named: &str, max: usize, at: &Path<'_>, causes: &mut Causes) {
    match text(set, named) {
        "" => causes.required(&at.child(named), ""),
        name => causes.faults(&at.child(named), name, format::dns1123_label(name)),
    }
    let (counters, at) = (child_or_empty(set, "counters"), at.child("counters"));
    match counters.len() {
        0 => causes.required(&at, ""),
        count if count > max => causes.too_many(&at, count, max),
        _ => counters.keys().for_each(|name| causes.faults(&at, name, format::dns1123_label(name))),
    }
}

fn nodes(device: &Members, chooses: bool, at: &Path<'_>, causes: &mut Causes) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if !chooses {
        if ["nodeName", "nodeSelector", "allNodes"].iter().any(|name| device.contains_key(*name)) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` \
                          is set to true in the ResourceSlice spec";
            causes.invalid(at, BadValue::Nil, detail);
        }
        return;
    }
    let mut chosen = Vec::new();
    match text_opt(device, "nodeName") {
        None => {}
        Some("") => causes.invalid(&at.child("nodeName"), "", "must not be empty"),
        Some(name) => {
            chosen.push("`nodeName`");
            causes.faults(&at.child("nodeName"), name, format::dns1123_subdomain(name));
        }
    }
    if let Some(selector) = child(device, "nodeSelector") {
        chosen.push("`nodeSelector`");
        node_selector(selector, &at.child("nodeSelector"), causes);
    }
    match device.get("allNodes") {
        Some(Value::Bool(true)) => chosen.push("`allNodes`"),
        Some(Value::Bool(false)) => {
            causes.invalid(&at.child("allNodes"), false, "must be either unset or set to true");
        }
        _ => {}
    }
    match chosen.len() {
        0 => causes.required(at, ONE),
        1 => {}
        _ => causes.invalid(at, format!("{{{}}}", chosen.join(", ")).as_str(), ONE),
    }
}

/// Conditions that a device waits for before a pod is bound, and those that end the wait: both or neither.
pub fn binding_conditions(of: &Members, at: &Path<'_>, causes: &mut Causes) {
    const NAMES: [&str; 2] = ["bindingConditions", "bindingFailureConditions"];
    for name in NAMES {
        let items = bounded(of, name, BINDING_CONDITIONS_MAX, at, causes);
        for (index, condition) in items.iter().filter_map(Value::as_str).enumerate() {
            label_key(condition, &at.child(name).index(index), causes);
        }
    }
    no_duplicates(texts(of, NAMES[0]), &at.child(NAMES[0]), causes);
    let failures_at = at.child(NAMES[1]);
    let conditions: Seen<&str> = texts(of, NAMES[0]).collect();
    let mut known = Seen::default();
    for (index, failure) in texts(of, NAMES[1]).enumerate() {
        if known.again(failure) {
            causes.duplicate(&failures_at.index(index), failure);
        }
        if conditions.has(failure) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            causes.invalid(&failures_at.index(index), failure, detail);
        }
    }
    let none = |name| objects(of, name).next().is_none() && list(of, name).is_empty();
    for (missing, there) in [(NAMES[0], NAMES[1]), (NAMES[1], NAMES[0])] {
        if none(missing) && !none(there) {
            let detail = format!("{missing} are required to use {there}");
            causes.invalid(&at.child(missing), of.get(missing), &detail);
        }
    }
}
