//! Where a pod may run: node affinity, pod affinity and topology spread.
//!
//! In: a pod's spec; a node selector, which volumes have, too. Out: causes. Never: chooses a node, merges
//! label keys.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use std::collections::HashMap;

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::to_go_text;

use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::meta::{label_key, label_value};
use crate::selector;
use crate::value::{Members, child, child_or_empty, int, list, objects, text, text_opt, texts};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Whether values of a node selector must be values that a label can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    OfLabels,
    Any,
}

/// A pod's affinity to nodes and to other pods.
pub fn affinity(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(affinity) = child(spec, "affinity") else { return };
    let at = at.child("affinity");
    if let Some(nodes) = child(affinity, "nodeAffinity") {
        node_affinity(nodes, &at.child("nodeAffinity"), causes);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = child(affinity, name) else { continue };
        let at = at.child(name);
        for (index, of) in objects(terms, REQUIRED).enumerate() {
            term(of, &at.child(REQUIRED).index(index), causes);
        }
        for (index, weighted) in objects(terms, PREFERRED).enumerate() {
            let at = at.child(PREFERRED);
            let at = at.index(index);
            weight(weighted, &at, causes);
            term(child_or_empty(weighted, "podAffinityTerm"), &at.child("podAffinityTerm"), causes);
        }
    }
}

fn node_affinity(affinity: &Members, at: &Path<'_>, causes: &mut Causes) {
    if let Some(selector) = child(affinity, REQUIRED) {
        node_selector(selector, &at.child(REQUIRED), causes);
    }
    for (index, preferred) in objects(affinity, PREFERRED).enumerate() {
        let at = at.child(PREFERRED);
        let at = at.index(index);
        weight(preferred, &at, causes);
        // Any value is let through: what is only preferred cannot keep a pod from running.
        node_term(child_or_empty(preferred, "preference"), Values::Any, &at.child("preference"), causes);
    }
}

/// A node selector, which must have a term.
pub fn node_selector(selector: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("nodeSelectorTerms");
    if list(selector, "nodeSelectorTerms").is_empty() {
        return causes.required(&at, "must have at least one node selector term");
    }
    for (index, term) in objects(selector, "nodeSelectorTerms").enumerate() {
        node_term(term, Values::OfLabels, &at.index(index), causes);
    }
}

fn node_term(term: &Members, values: Values, at: &Path<'_>, causes: &mut Causes) {
    for (index, requirement) in objects(term, "matchExpressions").enumerate() {
        label_requirement(requirement, values, &at.child("matchExpressions").index(index), causes);
    }
    for (index, requirement) in objects(term, "matchFields").enumerate() {
        field_requirement(requirement, &at.child("matchFields").index(index), causes);
    }
}

fn label_requirement(requirement: &Members, values: Values, at: &Path<'_>, causes: &mut Causes) {
    let count = list(requirement, "values").len();
    let values_at = at.child("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if count == 0 => {
            causes.required(&values_at, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.forbidden(&values_at, detail);
        }
        "Gt" | "Lt" if count != 1 => {
            causes.required(&values_at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => causes.invalid(&at.child("operator"), other, "not a valid selector operator"),
    }
    label_key(text(requirement, "key"), &at.child("key"), causes);
    if values == Values::OfLabels {
        for (index, value) in texts(requirement, "values").enumerate() {
            label_value(value, &values_at.index(index), causes);
        }
    }
}

/// A node's name is its only field.
fn field_requirement(requirement: &Members, at: &Path<'_>, causes: &mut Causes) {
    let values_at = at.child("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if list(requirement, "values").len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.required(&values_at, detail);
        }
        "In" | "NotIn" => {}
        other => causes.invalid(&at.child("operator"), other, "not a valid selector operator"),
    }
    match text(requirement, "key") {
        "metadata.name" => {
            for (index, name) in texts(requirement, "values").enumerate() {
                causes.faults(&values_at.index(index), name, format::dns1123_subdomain(name));
            }
        }
        other => causes.invalid(&at.child("key"), other, "not a valid field selector key"),
    }
}

fn weight(weighted: &Members, at: &Path<'_>, causes: &mut Causes) {
    let weight = int(weighted, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        causes.invalid(&at.child("weight"), weight, "must be in the range 1-100");
    }
}

fn term(term: &Members, at: &Path<'_>, causes: &mut Causes) {
    for name in ["labelSelector", "namespaceSelector"] {
        if let Some(of) = child(term, name) {
            selector::validate(of, &at.child(name), causes);
        }
    }
    for namespace in texts(term, "namespaces") {
        causes.faults(&at.child("namespace"), namespace, format::dns1123_label(namespace));
    }
    label_keys(term, at, causes);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        causes.required(&at.child("topologyKey"), "can not be empty");
    }
    label_key(key, &at.child("topologyKey"), causes);
}

/// Keys that stand for the pod's own labels, beside the selector that they are merged into.
fn label_keys(term: &Members, at: &Path<'_>, causes: &mut Causes) {
    let selector = child(term, "labelSelector");
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        let at = at.child(name);
        if selector.is_none() && !list(term, name).is_empty() {
            causes.forbidden(&at, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in texts(term, name).enumerate() {
            label_key(key, &at.index(index), causes);
        }
    }
    if let Some(selector) = selector {
        // Of a key that is there twice the last place counts.
        let places: HashMap<&str, usize> =
            texts(term, "matchLabelKeys").enumerate().map(|(index, key)| (key, index)).collect();
        let mut selected: Seen<&str> =
            child_or_empty(selector, "matchLabels").keys().map(String::as_str).collect();
        for key in objects(selector, "matchExpressions").map(|expression| text(expression, "key")) {
            if selected.again(key)
                && let Some(index) = places.get(key)
            {
                causes.invalid(&at.index(*index), key, "exists in both matchLabelKeys and labelSelector");
            }
        }
    }
    let mismatched: Seen<&str> = texts(term, "mismatchLabelKeys").collect();
    for (index, key) in texts(term, "matchLabelKeys").enumerate().filter(|(_, key)| mismatched.has(*key)) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        causes.invalid(&at.child("matchLabelKeys").index(index), key, detail);
    }
}

/// How pods are spread over topologies.
pub fn spread(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let constraints: Vec<&Members> = objects(spec, "topologySpreadConstraints").collect();
    // Said of every one but the last of its like.
    let mut after = Seen::default();
    let mut comes_again: Vec<bool> = constraints.iter().rev().map(|of| after.again(spread_key(of))).collect();
    comes_again.reverse();
    for (index, (constraint, comes_again)) in constraints.iter().zip(comes_again).enumerate() {
        let at = at.child("topologySpreadConstraints");
        spread_constraint(constraint, comes_again, &at.index(index), causes);
    }
}

/// What a constraint is about, and once each.
fn spread_key(constraint: &Members) -> (&str, &str) {
    (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))
}

/// - `comes_again`: a later one is about the same.
fn spread_constraint(constraint: &Members, comes_again: bool, at: &Path<'_>, causes: &mut Causes) {
    const WHEN: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
    let skew = int(constraint, "maxSkew").unwrap_or(0);
    if skew <= 0 {
        causes.invalid(&at.child("maxSkew"), skew, "must be greater than zero");
    }
    let (key, when) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
    if key.is_empty() {
        causes.required(&at.child("topologyKey"), "can not be empty");
    }
    if !WHEN.contains(&when) {
        causes.not_supported(&at.child("whenUnsatisfiable"), when, &WHEN);
    }
    if comes_again {
        let bad = format!("{{{key}, {when}}}");
        causes.duplicate(&at.child("{topologyKey, whenUnsatisfiable}"), bad.as_str());
    }
    if let Some(domains) = int(constraint, "minDomains") {
        if domains <= 0 {
            causes.invalid(&at.child("minDomains"), domains, "must be greater than zero");
        }
        if when != "DoNotSchedule" {
            let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
            causes.invalid(&at.child("minDomains"), domains, &detail);
        }
    }
    for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if let Some(policy) =
            text_opt(constraint, name).filter(|policy| !matches!(*policy, "Honor" | "Ignore"))
        {
            let bad = BadValue::shown(to_go_text(&policy.into()));
            causes.not_supported(&at.child(name), bad, &["Honor", "Ignore"]);
        }
    }
    label_keys(constraint, at, causes);
    if let Some(of) = child(constraint, "labelSelector") {
        selector::validate(of, &at.child("labelSelector"), causes);
    }
}
