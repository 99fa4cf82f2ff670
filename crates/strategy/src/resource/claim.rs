//! ResourceClaims: what is asked for.
//!
//! In: a ResourceClaim, or the spec of one in a template. Out: defaults, causes. Never: its status.

use std::collections::HashMap;

use forebay_apimachinery::Seen;
use serde_json::Value;

use super::config::{CONFIG_MAX, Origin, opaque, selectors};
use super::expression::Allowance;
use super::lists::{SPEC, bounded, no_duplicates};
use super::{names, status};
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::meta::{IMMUTABLE, label_key, label_value, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::value::{
    Members, child, child_mut, child_or_empty, default_int, default_text, int, list, objects, objects_mut,
    same_member, text, text_opt, texts,
};

const REQUESTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const CONSTRAINTS_MAX: usize = 32;
const MODES: [&str; 2] = ["All", "ExactCount"];
const OPERATORS: [&str; 2] = ["Equal", "Exists"];
pub const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

pub fn defaults(claim: &mut Members) {
    if let Some(spec) = child_mut(claim, "spec") {
        default_spec(spec);
    }
}

pub fn default_spec(spec: &mut Members) {
    let Some(devices) = child_mut(spec, "devices") else { return };
    for request in objects_mut(devices, "requests") {
        if let Some(exactly) = child_mut(request, "exactly") {
            default_request(exactly);
        }
        objects_mut(request, "firstAvailable").for_each(default_request);
    }
}

fn default_request(request: &mut Members) {
    default_text(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        default_int(request, "count", 1);
    }
    objects_mut(request, "tolerations").for_each(|toleration| default_text(toleration, "operator", "Equal"));
}

pub fn validate(claim: &Members, causes: &mut Causes) {
    validate_spec(child_or_empty(claim, "spec"), &SPEC, causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    if update.is_status() {
        return status::validate_update(new, old, causes);
    }
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate_built_in_update(new, old, causes);
    if !same_member(new, old, "spec") {
        let spec = child_or_empty(new, "spec");
        causes.invalid(&SPEC, internal::shown("resource.ResourceClaimSpec", spec), IMMUTABLE);
    }
}

/// - `at`: where the spec stands.
pub fn validate_spec(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (claim, at) = (child_or_empty(spec, "devices"), at.child("devices"));
    let allowance = Allowance::new();
    let requests = bounded(claim, "requests", REQUESTS_MAX, &at, causes);
    for (index, of) in requests.iter().filter_map(Value::as_object).enumerate() {
        request(of, &allowance, &at.child("requests").index(index), causes);
    }
    let named = requests.iter().filter_map(Value::as_object).map(|request| text(request, "name"));
    no_duplicates(named, &at.child("requests"), causes);
    let requested = Requested::of(claim);
    let constraints = bounded(claim, "constraints", CONSTRAINTS_MAX, &at, causes);
    for (index, of) in constraints.iter().filter_map(Value::as_object).enumerate() {
        constraint(of, &requested, &at.child("constraints").index(index), causes);
    }
    let configs = bounded(claim, "config", CONFIG_MAX, &at, causes);
    for (index, of) in configs.iter().filter_map(Value::as_object).enumerate() {
        let at = at.child("config");
        let at = at.index(index);
        request_refs(of, &requested, &at, causes);
        opaque(of, Origin::New, &at, causes);
    }
}

fn request(request: &Members, allowance: &Allowance, at: &Path<'_>, causes: &mut Causes) {
    let name = text(request, "name");
    causes.faults(&at.child("name"), name, format::dns1123_label(name));
    let has_alternatives = !list(request, "firstAvailable").is_empty();
    match (has_alternatives, child(request, "exactly")) {
        (false, None) => {
            causes.required(at, "exactly one of `exactly` or `firstAvailable` is required");
        }
        (true, Some(_)) => {
            let detail =
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            causes.invalid(at, BadValue::Nil, detail);
        }
        (true, None) => alternatives(request, allowance, at, causes),
        (false, Some(exactly)) => wanted(exactly, allowance, &at.child("exactly"), causes),
    }
}

fn alternatives(request: &Members, allowance: &Allowance, at: &Path<'_>, causes: &mut Causes) {
    let items = bounded(request, "firstAvailable", ALTERNATIVES_MAX, at, causes);
    let at = at.child("firstAvailable");
    for (index, of) in items.iter().filter_map(Value::as_object).enumerate() {
        let (at, name) = (at.index(index), text(of, "name"));
        causes.faults(&at.child("name"), name, format::dns1123_label(name));
        wanted(of, allowance, &at, causes);
    }
    no_duplicates(items.iter().filter_map(Value::as_object).map(|of| text(of, "name")), &at, causes);
}

/// What both forms of a request have.
fn wanted(request: &Members, allowance: &Allowance, at: &Path<'_>, causes: &mut Causes) {
    match text(request, "deviceClassName") {
        "" => causes.required(&at.child("deviceClassName"), ""),
        class => causes.faults(&at.child("deviceClassName"), class, format::dns1123_subdomain(class)),
    }
    // A claim is validated once: its spec cannot be changed.
    selectors(request, Origin::New, allowance, at, causes);
    let count = int(request, "count").unwrap_or(0);
    match text(request, "allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            causes.invalid(&at.child("count"), count, detail);
        }
        "ExactCount" if count <= 0 => causes.invalid(&at.child("count"), count, "must be greater than zero"),
        "All" | "ExactCount" => {}
        mode => causes.not_supported(&at.child("allocationMode"), mode, &MODES),
    }
    for (index, of) in objects(request, "tolerations").enumerate() {
        toleration(of, &at.child("tolerations").index(index), causes);
    }
}

fn toleration(toleration: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (key, value) = (text(toleration, "key"), text(toleration, "value"));
    if !key.is_empty() {
        label_key(key, &at.child("key"), causes);
    }
    match text(toleration, "operator") {
        "Exists" if !value.is_empty() => {
            causes.invalid(&at.child("value"), value, "must be empty for operator `Exists`");
        }
        "Exists" => {}
        "Equal" if !value.is_empty() => label_value(value, &at.child("value"), causes),
        "Equal" => {}
        "" => causes.required(&at.child("operator"), ""),
        operator => causes.not_supported(&at.child("operator"), operator, &OPERATORS),
    }
    match text(toleration, "effect") {
        "" => {}
        effect if EFFECTS.contains(&effect) => {}
        effect => causes.not_supported(&at.child("effect"), effect, &EFFECTS),
    }
}

fn constraint(constraint: &Members, requested: &Requested<'_>, at: &Path<'_>, causes: &mut Causes) {
    request_refs(constraint, requested, at, causes);
    if let Some(name) = text_opt(constraint, "matchAttribute") {
        names::fully_qualified(name, &at.child("matchAttribute"), causes);
    } else if let Some(name) = text_opt(constraint, "distinctAttribute") {
        names::fully_qualified(name, &at.child("distinctAttribute"), causes);
    } else {
        let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple \
                      fields are set";
        causes.required(at, detail);
    }
}

/// The list `requests` of `of`: names of requests of the claim.
pub fn request_refs(of: &Members, requested: &Requested<'_>, at: &Path<'_>, causes: &mut Causes) {
    let items = bounded(of, "requests", REQUESTS_MAX, at, causes);
    let at = at.child("requests");
    for (index, name) in items.iter().filter_map(Value::as_str).enumerate() {
        request_ref(name, requested, &at.index(index), causes);
    }
    if !items.is_empty() {
        no_duplicates(texts(of, "requests"), &at, causes);
    }
}

/// `request`, `request/alternative`
pub fn request_ref(name: &str, requested: &Requested<'_>, at: &Path<'_>, causes: &mut Causes) {
    let detail = "must be the name of a request in the claim or the name of a request and a subrequest separated \
                  by '/'";
    if name.matches('/').count() > 1 {
        return causes.invalid(at, name, detail);
    }
    for part in name.split('/') {
        causes.faults(at, part, format::dns1123_label(part));
    }
    if !requested.has(name) {
        causes.invalid(at, name, detail);
    }
}

/// What a claim asks for, by name.
pub struct Requested<'o> {
    // name -> names of the alternatives; of requests with the same name the last one counts
    names: HashMap<&'o str, Seen<&'o str>>,
}

impl<'o> Requested<'o> {
    /// - `claim`: the `devices` of its spec.
    pub fn of(claim: &'o Members) -> Requested<'o> {
        let alternatives = |request| objects(request, "firstAvailable").map(|of| text(of, "name")).collect();
        let requests = objects(claim, "requests");
        Requested { names: requests.map(|of| (text(of, "name"), alternatives(of))).collect() }
    }

    fn has(&self, name: &str) -> bool {
        let (name, alternative) = name.split_once('/').map_or((name, None), |(name, of)| (name, Some(of)));
        self.names.get(name).is_some_and(|known| alternative.is_none_or(|wanted| known.has(wanted)))
    }
}
