//! ValidatingAdmissionPolicyBindings and MutatingAdmissionPolicyBindings.
//!
//! In: a binding. Out: defaults, causes. Never: the policy that it names.

use forebay_apimachinery::Seen;

use super::matching::{default_resources, mutating_operations, resources};
use crate::field::{Causes, Path};
use crate::format;
use crate::selector;
use crate::value::{Members, child, child_mut, child_or_empty, list, text, texts};

const SPEC: Path<'static> = Path::root("spec");
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS: [&str; 2] = ["Deny", "Allow"];

pub fn defaults(binding: &mut Members) {
    let spec = child_mut(binding, "spec");
    if let Some(of) = spec.and_then(|spec| child_mut(spec, "matchResources")) {
        default_resources(of);
    }
}

pub fn validating(binding: &Members, causes: &mut Causes) {
    begin(binding, causes);
    actions(child_or_empty(binding, "spec"), causes);
}

pub fn mutating(binding: &Members, causes: &mut Causes) {
    begin(binding, causes);
    if let Some(of) = child(child_or_empty(binding, "spec"), "matchResources") {
        mutating_operations(of, &SPEC.child("matchResources"), causes);
    }
}

/// What both have.
fn begin(binding: &Members, causes: &mut Causes) {
    let spec = child_or_empty(binding, "spec");
    match text(spec, "policyName") {
        "" => causes.required(&SPEC.child("policyName"), ""),
        name => causes.faults(&SPEC.child("policyName"), name, format::dns1123_subdomain(name)),
    }
    if let Some(of) = child(spec, "paramRef") {
        param_ref(of, &SPEC.child("paramRef"), causes);
    }
    if let Some(of) = child(spec, "matchResources") {
        resources(of, &SPEC.child("matchResources"), causes);
    }
}

/// Parameters are named or selected.
fn param_ref(param: &Members, at: &Path<'_>, causes: &mut Causes) {
    const BOTH: &str = "name and selector are mutually exclusive";
    let (name, selected) = (text(param, "name"), child(param, "selector"));
    if !name.is_empty() {
        causes.faults(&at.child("name"), name, format::path_segment(name, false));
        if selected.is_some() {
            causes.forbidden(&at.child("name"), BOTH);
        }
    }
    if let Some(labels) = selected {
        selector::validate(labels, &at.child("selector"), causes);
        if !name.is_empty() {
            causes.forbidden(&at.child("selector"), BOTH);
        }
    }
    if name.is_empty() && selected.is_none() {
        causes.required(at, "one of name or selector must be specified");
    }
    let at = at.child("parameterNotFoundAction");
    match text(param, "parameterNotFoundAction") {
        "" => causes.required(&at, ""),
        action if !NOT_FOUND_ACTIONS.contains(&action) => {
            causes.not_supported(&at, action, &NOT_FOUND_ACTIONS)
        }
        _ => {}
    }
}

fn actions(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("validationActions");
    let mut known = Seen::default();
    for (index, action) in texts(spec, "validationActions").enumerate() {
        if !ACTIONS.contains(&action) {
            causes.not_supported(&at.index(index), action, &ACTIONS);
        }
        if known.again(action) {
            causes.duplicate(&at.index(index), action);
        }
    }
    if known.has("Deny") && known.has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        causes.invalid(&at, spec.get("validationActions"), detail);
    }
    if list(spec, "validationActions").is_empty() {
        causes.required(&at, "at least one validation action is required");
    }
}
