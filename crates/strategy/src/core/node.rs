//! Nodes.
//!
//! In: a Node. Out: defaults, what it is stored as, causes. Never: a kubelet.
//!
//! Source: kubernetes v1.36.3 `registry/core/node`, `apis/core/{v1,validation}`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::{go_quote, to_go_text};
use serde_json::Value;

use super::pod::defaults::round_up;
use super::pod::resources::quantity_value;
use crate::address::legacy_cidr;
use crate::field::{BadValue, Causes, Path};
use crate::meta::{label_key, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{
    Members, child_made, child_mut, child_or_empty, int, list, objects, set, take_over, text, texts,
};
use forebay_apimachinery::selector::label_value_faults;

const SPEC: Path<'static> = Path::root("spec");
const METADATA: Path<'static> = Path::root("metadata");
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub fn defaults(node: &mut Members) {
    if let Some(spec) = child_mut(node, "spec") {
        one_range_or_more(spec);
    }
    let Some(status) = child_mut(node, "status") else { return };
    if !status.contains_key("allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".into(), capacity);
    }
    for name in ["capacity", "allocatable"] {
        if let Some(list) = child_mut(status, name) {
            round_up(list);
        }
    }
}

/// The first of the ranges is the one range; where they differ, the one range is right.
fn one_range_or_more(spec: &mut Members) {
    let (range, first) =
        (text(spec, "podCIDR").to_string(), texts(spec, "podCIDRs").next().map(str::to_string));
    match first {
        Some(first) if range.is_empty() => set(spec, "podCIDR", Some(first.into())),
        first if !range.is_empty() && first.as_ref() != Some(&range) => {
            set(spec, "podCIDRs", Some(Value::Array(vec![range.into()])));
        }
        _ => {}
    }
}

pub fn prepare_create(node: &mut Members, _: &Context<'_>) {
    for part in ["spec", "status"] {
        if let Some(part) = child_mut(node, part) {
            part.remove("configSource");
            part.remove("config");
        }
    }
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    if update.is_status() {
        take_over(new, old, "spec");
        if !child_or_empty(old, "status").contains_key("config") {
            child_made(new, "status").remove("config");
        }
        return;
    }
    take_over(new, old, "status");
    if !child_or_empty(old, "spec").contains_key("configSource")
        && let Some(spec) = child_mut(new, "spec")
    {
        spec.remove("configSource");
    }
}

pub fn validate_create(node: &Members, causes: &mut Causes) {
    let spec = child_or_empty(node, "spec");
    taints(spec, causes);
    resources(node, causes);
    swap(node, causes);
    features(node, causes);
    let at = SPEC.child("podCIDRs");
    let ranges: Vec<&str> = texts(spec, "podCIDRs").collect();
    for (index, range) in ranges.iter().enumerate() {
        legacy_cidr(range, &at.index(index), causes);
    }
    let families = ranges.iter().filter(|range| range.contains(':')).count();
    if ranges.len() > 2 || (ranges.len() == 2 && families != 1) {
        let detail = "may specify no more than one CIDR for each IP family";
        causes.invalid(&at, spec.get("podCIDRs"), detail);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    if !update.is_status() {
        validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Subdomain, causes);
        validate_create(new, causes);
    }
    let old = update.old;
    validate_built_in_update(new, old, causes);
    resources(new, causes);
    features(new, causes);
    addresses(new, causes);
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    only_from_empty(spec, old_spec, causes);
    taints(spec, causes);
    if text(spec, "externalID") != text(old_spec, "externalID") {
        causes.forbidden(&Path::root("spec").child("externalID"), "may not be updated");
    }
}

fn only_from_empty(spec: &Members, old: &Members, causes: &mut Causes) {
    let at = Path::root("spec");
    let (ranges, old_ranges) = (list(spec, "podCIDRs"), list(old, "podCIDRs"));
    let changed = match old_ranges.len() {
        0 => 0,
        count if count != ranges.len() => 1,
        _ => ranges.iter().zip(old_ranges).filter(|(range, old)| range != old).count(),
    };
    for _ in 0..changed {
        causes.forbidden(
            &at.child("podCIDRs"),
            "node updates may not change podCIDR except from \"\" to valid",
        );
    }
    let provider = text(old, "providerID");
    if !provider.is_empty() && provider != text(spec, "providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        causes.forbidden(&at.child("providerID"), detail);
    }
}

fn resources(node: &Members, causes: &mut Causes) {
    let status = child_or_empty(node, "status");
    for name in ["capacity", "allocatable"] {
        for (resource, quantity) in child_or_empty(status, name) {
            // Upstream names the resource as a field here, not as a key.
            quantity_value(resource, quantity, &Path::root("status").child(name).child(resource), causes);
        }
    }
}

fn swap(node: &Members, causes: &mut Causes) {
    let swap = child_or_empty(child_or_empty(child_or_empty(node, "status"), "nodeInfo"), "swap");
    if let Some(bytes) = int(swap, "capacity").filter(|bytes| *bytes <= 0) {
        let at = METADATA.child("nodeSwapStatus"); // where upstream has it
        causes.invalid(&at.child("capacity"), bytes, "must be greater than zero");
    }
}

/// What a kubelet says that it can: `MyFeature/mySubFeature`, each once, in order.
fn features(node: &Members, causes: &mut Causes) {
    const NAME_BYTES_MAX: usize = 253;
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let is_name =
        |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(is_segment);
    let at = Path::root("status");
    let at = at.child("declaredFeatures");
    let mut before = None;
    for (index, name) in texts(child_or_empty(node, "status"), "declaredFeatures").enumerate() {
        let at = at.index(index);
        match before.replace(name) {
            Some(before) if before == name => causes.duplicate(&at, name),
            Some(before) if before > name => {
                causes.invalid(&at, name, "list must be sorted alphabetically");
            }
            _ => {}
        }
        let fault = if name.len() > NAME_BYTES_MAX {
            "must be no more than 253 characters"
        } else if !is_name(name) {
            "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., \
             MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
        } else {
            continue;
        };
        causes.invalid(&at, name, &format!("invalid feature name {}: {fault}", go_quote(name)));
    }
}

fn addresses(node: &Members, causes: &mut Causes) {
    let mut known = Seen::default();
    for (index, address) in objects(child_or_empty(node, "status"), "addresses").enumerate() {
        if !known.again((text(address, "type"), text(address, "address"))) {
            continue;
        }
        let shown = |name| to_go_text(&Value::from(text(address, name)));
        let bad = format!("{{\"Type\":{},\"Address\":{}}}", shown("type"), shown("address"));
        causes.duplicate(&Path::root("status").child("addresses").index(index), BadValue::shown(bad));
    }
}

fn taints(spec: &Members, causes: &mut Causes) {
    let at = METADATA.child("taints"); // where upstream has them
    let mut known: Seen<(&str, &str)> = Seen::default(); // key, effect
    for (index, taint) in objects(spec, "taints").enumerate() {
        let at = at.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        label_key(key, &at.child("key"), causes);
        let faults = label_value_faults(value);
        if !faults.is_empty() {
            causes.invalid(&at.child("value"), value, &faults.join(";"));
        }
        match effect {
            "" => causes.required(&at.child("effect"), ""),
            known if EFFECTS.contains(&known) => {}
            other => causes.not_supported(&at.child("effect"), other, &EFFECTS),
        }
        if known.again((key, effect)) {
            causes.duplicate_because(&at, taint_shown(taint), "taints must be unique by key and effect pair");
        }
    }
}

fn taint_shown(taint: &Members) -> BadValue<'static> {
    let shown = |name| to_go_text(&Value::from(text(taint, name)));
    let added = match taint.get("timeAdded") {
        Some(time) => to_go_text(time),
        None => "null".into(),
    };
    BadValue::shown(format!(
        "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{added}}}",
        shown("key"),
        shown("value"),
        shown("effect")
    ))
}
