//! ResourceSlices.
//!
//! In: a ResourceSlice. Out: its generation and times of taints, causes, a warning. Never: whether its pool
//! is complete.

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::seen::Firsts;
use serde_json::Value;

use super::device;
use super::lists::{SPEC, bounded, no_duplicates};
use super::names;
use crate::core::pod::csi_driver_name;
use crate::core::pod::node_selector;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::lifecycle::{bump_generation, first_generation};
use crate::meta::{IMMUTABLE, validate_built_in_update};
use crate::rule::{Context, Update};
use crate::value::{
    Members, child, child_mut, child_or_empty, default, int, list, objects, objects_mut, same_member, text,
    text_opt,
};

const DEVICES_MAX: usize = 128;
const ADVANCED_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
/// Members of devices and their attributes that stand behind gates which are off.
const GATED: [&str; 1] = ["nodeAllocatableResourceMappings"];
const GATED_ATTRIBUTES: [&str; 4] = ["ints", "bools", "strings", "versions"];
const ONE_NODE_CHOICE: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

pub fn prepare_create(slice: &mut Members, context: &Context<'_>) {
    first_generation(slice, context);
    date_taints(slice, context.now);
    drop_gated(slice, None);
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    date_taints(new, context.now);
    if !same_member(new, update.old, "spec") {
        bump_generation(new, update.old);
    }
    drop_gated(new, Some(update.old));
}

fn devices(slice: &mut Members) -> impl Iterator<Item = &mut Members> {
    child_mut(slice, "spec").into_iter().flat_map(|spec| objects_mut(spec, "devices"))
}

fn date_taints(slice: &mut Members, now: &str) {
    for device in devices(slice) {
        objects_mut(device, "taints").for_each(|taint| default(taint, "timeAdded", now));
    }
}

/// Drops what the stored slice does not have already.
fn drop_gated(slice: &mut Members, old: Option<&Members>) {
    let used = |used: &dyn Fn(&Members) -> bool| {
        old.is_some_and(|old| objects(child_or_empty(old, "spec"), "devices").any(used))
    };
    let has_lists = |device: &Members| {
        let mut attributes = child_or_empty(device, "attributes").values().filter_map(Value::as_object);
        attributes.any(|attribute| GATED_ATTRIBUTES.iter().any(|name| attribute.contains_key(*name)))
    };
    let keeps_lists = used(&has_lists);
    let keeps_members = used(&|device| GATED.iter().any(|name| device.contains_key(*name)));
    for device in devices(slice) {
        if !keeps_members {
            GATED.iter().for_each(|name| {
                device.remove(*name);
            });
        }
        let attributes = child_mut(device, "attributes").into_iter().flat_map(|all| all.values_mut());
        for attribute in attributes.filter_map(Value::as_object_mut).filter(|_| !keeps_lists) {
            attribute.retain(|name, _| !GATED_ATTRIBUTES.contains(&name.as_str()));
        }
    }
}

pub fn warnings(slice: &Members, _: Option<&Update<'_>>, warnings: &mut Vec<String>) {
    let driver = text(child_or_empty(slice, "spec"), "driver");
    if driver != driver.to_lowercase() {
        warnings.push(format!(
            "spec.driver: driver names should be lowercase; {} contains uppercase characters",
            go_quote(driver)
        ));
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    validate(new, Some(child_or_empty(update.old, "spec")), causes);
}

/// - `old`: the stored spec.
pub fn validate(slice: &Members, old: Option<&Members>, causes: &mut Causes) {
    let spec = child_or_empty(slice, "spec");
    csi_driver_name(text(spec, "driver"), &SPEC.child("driver"), causes);
    pool(child_or_empty(spec, "pool"), causes);
    if let Some(old) = old {
        unchanged(spec, old, causes);
    }
    nodes(spec, causes);
    if spec.contains_key("sharedCounters") && spec.contains_key("devices") {
        causes.invalid(&SPEC, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    all_devices(spec, old, causes);
    counter_sets(spec, causes);
}

fn pool(pool: &Members, causes: &mut Causes) {
    let at = SPEC.child("pool");
    names::pool(text(pool, "name"), &at.child("name"), causes);
    let count = int(pool, "resourceSliceCount").unwrap_or(0);
    if count <= 0 {
        causes.invalid(&at.child("resourceSliceCount"), count, "must be greater than zero");
    }
    if let Some(generation) = int(pool, "generation").filter(|generation| *generation < 0) {
        causes.invalid(&at.child("generation"), generation, "must be greater than or equal to zero");
    }
}

fn unchanged(spec: &Members, old: &Members, causes: &mut Causes) {
    let name = |spec| text(child_or_empty(spec, "pool"), "name");
    if name(spec) != name(old) {
        causes.invalid(&SPEC.child("pool").child("name"), name(spec), IMMUTABLE);
    }
    if text(spec, "driver") != text(old, "driver") {
        causes.invalid(&SPEC.child("driver"), text(spec, "driver"), IMMUTABLE);
    }
    if spec.get("nodeName") != old.get("nodeName") {
        causes.invalid(&SPEC.child("nodeName"), spec.get("nodeName"), IMMUTABLE);
    }
}

/// Where the devices are: on one node, on some, on all, or on each its own.
fn nodes(spec: &Members, causes: &mut Causes) {
    let mut chosen = Vec::new();
    if let Some(name) = text_opt(spec, "nodeName") {
        if name.is_empty() {
            let detail = "must be either unset or set to a non-empty string";
            causes.invalid(&SPEC.child("nodeName"), name, detail);
        } else {
            chosen.push("`nodeName`");
            causes.faults(&SPEC.child("nodeName"), name, format::dns1123_subdomain(name));
        }
    }
    if let Some(selector) = child(spec, "nodeSelector") {
        chosen.push("`nodeSelector`");
        one_term(selector, &SPEC.child("nodeSelector"), causes);
    }
    for (name, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        match spec.get(name) {
            Some(Value::Bool(true)) => chosen.push(shown),
            Some(Value::Bool(false)) => {
                causes.invalid(&SPEC.child(name), false, "must be either unset or set to true");
            }
            _ => {}
        }
    }
    match chosen.len() {
        0 => causes.required(&SPEC, ONE_NODE_CHOICE),
        1 => {}
        _ => {
            let detail = format!("{ONE_NODE_CHOICE}, but multiple fields are set");
            causes.invalid(&SPEC, format!("{{{}}}", chosen.join(", ")).as_str(), &detail);
        }
    }
}

/// Selectors of slices are merged, which is simple for those with one term.
fn one_term(selector: &Members, at: &Path<'_>, causes: &mut Causes) {
    const NAME: &str = "nodeSelectorTerms";
    node_selector(selector, at, causes);
    if list(selector, NAME).len() != 1 {
        let shown = match list(selector, NAME).is_empty() {
            true => BadValue::shown("[]"),
            false => internal::list_shown("NodeSelectorTerm", selector, NAME),
        };
        causes.invalid(&at.child(NAME), shown, "must have exactly one node selector term");
    }
}

fn all_devices(spec: &Members, old: Option<&Members>, causes: &mut Causes) {
    let is_advanced = objects(spec, "devices").any(device::is_advanced);
    let max = if is_advanced { ADVANCED_DEVICES_MAX } else { DEVICES_MAX };
    let items = bounded(spec, "devices", max, &SPEC, causes);
    let at = SPEC.child("devices");
    let each_its_own = spec.get("perDeviceNodeSelection") == Some(&Value::Bool(true));
    let before = old.into_iter().flat_map(|old| objects(old, "devices"));
    let before: Firsts<&str, &Members> = before.map(|of| (text(of, "name"), of)).collect();
    for (index, of) in items.iter().filter_map(Value::as_object).enumerate() {
        let before = before.get(text(of, "name")).copied();
        device::validate(of, before, each_its_own, &at.index(index), causes);
    }
    no_duplicates(items.iter().filter_map(Value::as_object).map(|of| text(of, "name")), &at, causes);
}

fn counter_sets(spec: &Members, causes: &mut Causes) {
    let items = bounded(spec, "sharedCounters", COUNTER_SETS_MAX, &SPEC, causes);
    let at = SPEC.child("sharedCounters");
    for (index, set) in items.iter().filter_map(Value::as_object).enumerate() {
        device::counters(set, "name", COUNTERS_MAX, &at.index(index), causes);
    }
    no_duplicates(items.iter().filter_map(Value::as_object).map(|set| text(set, "name")), &at, causes);
}
