//! Ingresses.
//!
//! In: an Ingress. Out: causes, warnings. Never: which class it gets; that is admission.

use forebay_apimachinery::Seen;
use serde_json::Value;

use crate::address::{ip_warning, legacy_ip};
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::meta::{validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::value::{Members, child, child_or_empty, int, list, objects, text, text_opt, texts};

/// What named the class before there was a field for it.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const SPEC: Path<'static> = Path::root("spec");

pub fn validate_create(ingress: &Members, causes: &mut Causes) {
    let spec = child_or_empty(ingress, "spec");
    validate(spec, Lenience::default(), causes);
    if let (Some(annotated), Some(class)) = (annotated_class(ingress), text_opt(spec, "ingressClassName"))
        && annotated != class
    {
        let detail = "must match `ingressClassName` when both are specified";
        causes.invalid(&Path::root("annotations").child(CLASS_ANNOTATION), annotated, detail);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if update.is_status() {
        return addresses(new, old, causes);
    }
    let meta = child_or_empty(new, "metadata");
    validate_built_in_create(meta, true, NameRule::Subdomain, causes);
    validate(child_or_empty(new, "spec"), Lenience::towards(child_or_empty(old, "spec")), causes);
}

pub fn warnings(ingress: &Members, update: Option<&Update<'_>>, warnings: &mut Vec<String>) {
    match update {
        None => {
            let named = child_or_empty(ingress, "spec").contains_key("ingressClassName");
            if annotated_class(ingress).is_some() && !named {
                warnings.push(format!(
                    "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
                ));
            }
        }
        Some(update) if update.is_status() => {
            let status = Path::root("status");
            let balancer = status.child("loadBalancer");
            let at = balancer.child("ingress");
            for (index, point) in objects(balancer_of(ingress), "ingress").enumerate() {
                warnings.extend(ip_warning(text(point, "ip"), &at.index(index)));
            }
        }
        Some(_) => {}
    }
}

fn annotated_class(ingress: &Members) -> Option<&str> {
    text_opt(child_or_empty(child_or_empty(ingress, "metadata"), "annotations"), CLASS_ANNOTATION)
}

fn balancer_of(ingress: &Members) -> &Members {
    child_or_empty(child_or_empty(ingress, "status"), "loadBalancer")
}

/// What a stored Ingress may keep though a new one could not have it.
#[derive(Clone, Copy, Default)]
struct Lenience {
    secret_names: bool,
    wildcard_rules: bool,
}

impl Lenience {
    fn towards(old: &Members) -> Lenience {
        let bad_secret = |tls: &Members| {
            let name = text(tls, "secretName");
            !name.is_empty() && !format::dns1123_subdomain(name).is_empty()
        };
        let bad_rule = |rule: &Members| {
            let mut found = Causes::default();
            rule_value(rule, &SPEC, &mut found);
            text(rule, "host").contains('*') && !found.is_empty()
        };
        Lenience {
            secret_names: objects(old, "tls").any(bad_secret),
            wildcard_rules: objects(old, "rules").any(bad_rule),
        }
    }
}

fn validate(spec: &Members, lenience: Lenience, causes: &mut Causes) {
    if list(spec, "rules").is_empty() && !spec.contains_key("defaultBackend") {
        let bad = spec.get("rules").map_or(BadValue::Nil, BadValue::Json);
        causes.invalid(&SPEC, bad, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(of) = child(spec, "defaultBackend") {
        backend(of, &SPEC.child("defaultBackend"), causes);
    }
    for (index, of) in objects(spec, "rules").enumerate() {
        rule(of, lenience, &SPEC.child("rules").index(index), causes);
    }
    for (index, of) in objects(spec, "tls").enumerate() {
        tls(of, lenience, &SPEC.child("tls").index(index), causes);
    }
    if let Some(class) = text_opt(spec, "ingressClassName") {
        causes.faults(&SPEC.child("ingressClassName"), class, format::dns1123_subdomain(class));
    }
}

fn tls(tls: &Members, lenience: Lenience, at: &Path<'_>, causes: &mut Causes) {
    for (index, host) in texts(tls, "hosts").enumerate() {
        host_name(host, &at.child("hosts").index(index), causes);
    }
    let secret = text(tls, "secretName");
    if !lenience.secret_names && !secret.is_empty() {
        causes.faults(&at.child("secretName"), secret, format::dns1123_subdomain(secret));
    }
}

/// A host, or all hosts of a domain.
fn host_name(host: &str, at: &Path<'_>, causes: &mut Causes) {
    let faults =
        if host.contains('*') { format::wildcard_subdomain(host) } else { format::dns1123_subdomain(host) };
    causes.faults(at, host, faults);
}

fn rule(rule: &Members, lenience: Lenience, at: &Path<'_>, causes: &mut Causes) {
    let host = text(rule, "host");
    if !host.is_empty() {
        let at = at.child("host");
        if format::sloppy_ip(host).is_some() {
            causes.invalid(&at, host, "must be a DNS name, not an IP address");
        }
        host_name(host, &at, causes);
    }
    if !(host.contains('*') && lenience.wildcard_rules) {
        rule_value(rule, at, causes);
    }
}

fn rule_value(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(http) = child(rule, "http") else { return };
    let at = at.child("http");
    let at = at.child("paths");
    if list(http, "paths").is_empty() {
        causes.required(&at, "");
    }
    for (index, of) in objects(http, "paths").enumerate() {
        path(of, &at.index(index), causes);
    }
}

fn path(path: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(kind) = text_opt(path, "pathType") else {
        return causes.required(&at.child("pathType"), "pathType must be specified");
    };
    let (given, path_at) = (text(path, "path"), at.child("path"));
    match kind {
        "Exact" | "Prefix" => {
            absolute(given, &path_at, causes);
            for inside in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|inside| given.contains(**inside))
            {
                causes.invalid(&path_at, given, &format!("must not contain '{inside}'"));
            }
            for end in ["/..", "/."].iter().filter(|end| given.ends_with(**end)) {
                causes.invalid(&path_at, given, &format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" if given.is_empty() => {}
        "ImplementationSpecific" => absolute(given, &path_at, causes),
        other => causes.not_supported(&at.child("pathType"), other, &PATH_TYPES),
    }
    backend(child_or_empty(path, "backend"), &at.child("backend"), causes);
}

fn absolute(path: &str, at: &Path<'_>, causes: &mut Causes) {
    if !path.starts_with('/') {
        causes.invalid(at, path, "must be an absolute path");
    }
}

fn backend(backend: &Members, at: &Path<'_>, causes: &mut Causes) {
    match (child(backend, "resource"), child(backend, "service")) {
        (Some(_), Some(_)) => causes.invalid(at, "", "cannot set both resource and service backends"),
        (Some(resource), None) => reference(resource, &at.child("resource"), causes),
        (None, Some(service)) => service_backend(service, at, causes),
        (None, None) => causes.invalid(at, "", "resource or service backend is required"),
    }
}

fn service_backend(service: &Members, at: &Path<'_>, causes: &mut Causes) {
    let service_at = at.child("service");
    match text(service, "name") {
        "" => causes.required(&service_at.child("name"), ""),
        name => causes.faults(&service_at.child("name"), name, format::dns1123_label(name)),
    }
    let port = child_or_empty(service, "port");
    let port_at = service_at.child("port");
    match (text(port, "name"), int(port, "number").unwrap_or(0)) {
        ("", 0) => causes.required(at, "port name or number is required"),
        ("", number) => {
            if let Some(fault) = format::port_number(number) {
                causes.invalid(&port_at.child("number"), number, fault);
            }
        }
        (name, 0) => causes.faults(&port_at.child("name"), name, format::port_name(name)),
        _ => causes.invalid(at, "", "cannot set both port name & port number"),
    }
}

/// A reference to an object by group, kind and name.
pub fn reference(reference: &Members, at: &Path<'_>, causes: &mut Causes) {
    if let Some(group) = reference.get("apiGroup").and_then(Value::as_str) {
        causes.faults(&at.child("apiGroup"), group, format::dns1123_subdomain(group));
    }
    for name in ["kind", "name"] {
        segment(reference, name, at, causes);
    }
}

/// A text that must be there and may stand in a path.
pub fn segment(object: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    match text(object, name) {
        "" => causes.required(&at.child(name), ""),
        value => causes.faults(&at.child(name), value, format::path_segment(value, false)),
    }
}

fn addresses(new: &Members, old: &Members, causes: &mut Causes) {
    let known: Seen<&str> = objects(balancer_of(old), "ingress").map(|point| text(point, "ip")).collect();
    let status = Path::root("status");
    let balancer = status.child("loadBalancer");
    let at = balancer.child("ingress");
    for (index, point) in objects(balancer_of(new), "ingress").enumerate() {
        let at = at.index(index);
        let (ip, host) = (text(point, "ip"), text(point, "hostname"));
        if !ip.is_empty() && !known.has(ip) {
            legacy_ip(ip, &at.child("ip"), causes);
        }
        if !host.is_empty() {
            let at = at.child("hostname");
            causes.faults(&at, host, format::dns1123_subdomain(host));
            if format::sloppy_ip(host).is_some() {
                causes.invalid(&at, host, "must be a DNS name, not an IP address");
            }
        }
    }
}
