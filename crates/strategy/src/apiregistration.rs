//! The kinds of `apiregistration.k8s.io`.
//!
//! In: an APIService. Out: defaults, its first condition, causes. Never: asks the server that it names.
//!
//! Source: kube-aggregator v0.36.3 `registry/apiservice`, `apis/apiregistration/{v1,validation}`.

use forebay_apimachinery::json::go_quote;
use serde_json::json;

use super::core::base64;
use super::field::{Causes, Path};
use super::format;
use super::lifecycle::{keep_meta, reset_status, status_apart_without_generation};
use super::meta::{validate_meta_create, validate_meta_update};
use super::names::NameRule;
use super::rule::{Context, Flags, NONE, Rules, Update};
use super::value::{
    Members, child, child_made, child_mut, child_or_empty, default, int, is_true, objects, text,
};

const GROUP_PRIORITY_MAX: i64 = 20_000;
const VERSION_PRIORITY_MAX: i64 = 1_000;
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];
const SPEC: Path<'static> = Path::root("spec");

pub const KINDS: &[Rules] = &[Rules {
    kind: "APIService",
    namespaced: false,
    defaults,
    prepare_create,
    prepare_update,
    validate_create: validate,
    validate_update,
    flags: Flags { unconditional_update: false, ..Flags::PLAIN },
    ..NONE
}];

fn defaults(service: &mut Members) {
    if let Some(reference) = child_mut(service, "spec").and_then(|spec| child_mut(spec, "service")) {
        default(reference, "port", 443);
    }
}

/// What this server answers itself is there from the beginning.
fn prepare_create(service: &mut Members, context: &Context<'_>) {
    reset_status(service, context);
    if child(child_or_empty(service, "spec"), "service").is_none() {
        let available = json!({
            "type": "Available", "status": "True", "reason": "Local", "lastTransitionTime": context.now,
            "message": "Local APIServices are always available",
        });
        child_made(service, "status").insert("conditions".into(), json!([available]));
    }
}

fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart_without_generation(new, update, context);
    if update.is_status() {
        keep_meta(new, update.old, &["labels", "annotations", "finalizers", "ownerReferences"]);
    }
}

fn validate(service: &Members, causes: &mut Causes) {
    let (meta, spec) = (child_or_empty(service, "metadata"), child_or_empty(service, "spec"));
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    names(meta, &format!("{version}.{group}"), causes);
    validate_meta_create(meta, false, NameRule::Own, causes);
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        causes.required(&SPEC.child("group"), detail);
    }
    if !group.is_empty() {
        causes.faults(&SPEC.child("group"), group, format::dns1123_subdomain(group));
    }
    causes.faults(&SPEC.child("version"), version, format::dns1035_label(version));
    priorities(spec, causes);
    match child(spec, "service") {
        Some(reference) => remote(spec, reference, causes),
        None => local(spec, causes),
    }
}

/// The name says which group and version it is about.
fn names(meta: &Members, wanted: &str, causes: &mut Causes) {
    let at = Path::root("metadata");
    for member in ["generateName", "name"] {
        let name = text(meta, member);
        if name.is_empty() {
            continue;
        }
        let mut faults = format::path_segment(name, false);
        if faults.is_empty() && name != wanted {
            faults.push(format!("must be `spec.version+\".\"+spec.group`: {}", go_quote(wanted)));
        }
        causes.faults(&at.child(member), name, faults);
    }
}

fn priorities(spec: &Members, causes: &mut Causes) {
    for (name, max) in
        [("groupPriorityMinimum", GROUP_PRIORITY_MAX), ("versionPriority", VERSION_PRIORITY_MAX)]
    {
        let priority = int(spec, name).unwrap_or(0);
        if !(1..=max).contains(&priority) {
            causes.invalid(&SPEC.child(name), priority, &format!("must be positive and less than {max}"));
        }
    }
}

fn local(spec: &Members, causes: &mut Causes) {
    let bundle = base64::decoded_len(text(spec, "caBundle"));
    if bundle > 0 {
        let shown = format!("{bundle} bytes");
        causes.invalid(&SPEC.child("caBundle"), shown.as_str(), "local APIServices may not have a caBundle");
    }
    if is_true(spec, "insecureSkipTLSVerify") {
        let detail = "local APIServices may not have insecureSkipTLSVerify";
        causes.invalid(&SPEC.child("insecureSkipTLSVerify"), true, detail);
    }
}

fn remote(spec: &Members, reference: &Members, causes: &mut Causes) {
    let at = SPEC.child("service");
    for name in ["namespace", "name"] {
        if text(reference, name).is_empty() {
            causes.required(&at.child(name), "");
        }
    }
    let port = int(reference, "port").unwrap_or(0);
    if let Some(fault) = format::port_number(port) {
        causes.invalid(&at.child("port"), port, &format!("port is not valid: {fault}"));
    }
    if is_true(spec, "insecureSkipTLSVerify") && !text(spec, "caBundle").is_empty() {
        causes.invalid(&SPEC.child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present");
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_meta_update(child_or_empty(new, "metadata"), child_or_empty(update.old, "metadata"), causes);
    if !update.is_status() {
        return validate(new, causes);
    }
    let at = Path::root("status");
    let at = at.child("conditions");
    for (index, condition) in objects(child_or_empty(new, "status"), "conditions").enumerate() {
        let status = text(condition, "status");
        if !STATUSES.contains(&status) {
            causes.not_supported(&at.index(index).child("status"), status, &STATUSES);
        }
    }
}
