//! IngressClasses.
//!
//! In: an IngressClass. Out: defaults, its generation, causes. Never: which one is the default.

use super::ingress::reference;
use crate::field::{Causes, Path};
use crate::format;
use crate::lifecycle::bump_generation;
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{Members, child, child_mut, child_or_empty, default, same_member, text, text_opt};

const CONTROLLER_BYTES_MAX: usize = 250;
const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(class: &mut Members) {
    if let Some(parameters) = child_mut(class, "spec").and_then(|spec| child_mut(spec, "parameters")) {
        default(parameters, "scope", "Cluster");
    }
}

/// The generation goes up when the spec changes; there is no status.
pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    if !same_member(new, update.old, "spec") {
        bump_generation(new, update.old);
    }
}

pub fn validate(class: &Members, causes: &mut Causes) {
    let spec = child_or_empty(class, "spec");
    controller(text(spec, "controller"), &SPEC.child("controller"), causes);
    if let Some(of) = child(spec, "parameters") {
        parameters(of, &SPEC.child("parameters"), causes);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    let name = |class| text(child_or_empty(class, "spec"), "controller");
    if name(new) != name(update.old) {
        causes.invalid(&SPEC.child("controller"), name(new), IMMUTABLE);
    }
    validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Subdomain, causes);
    validate(new, causes);
}

/// A path that begins with a domain.
fn controller(name: &str, at: &Path<'_>, causes: &mut Causes) {
    if name.len() > CONTROLLER_BYTES_MAX {
        causes.too_long(at, CONTROLLER_BYTES_MAX);
    }
    if name.is_empty() {
        return causes.required(at, "");
    }
    let Some((host, path)) = name.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        return causes.invalid(at, name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    causes.faults(at, host, format::dns1123_subdomain(host));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !path.bytes().all(allowed) {
        let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        causes.invalid(at, path, detail);
    }
}

fn parameters(parameters: &Members, at: &Path<'_>, causes: &mut Causes) {
    reference(parameters, at, causes);
    let namespace_at = at.child("namespace");
    match (text_opt(parameters, "scope"), text_opt(parameters, "namespace")) {
        (None, _) => causes.required(&at.child("scope"), ""),
        (Some("Namespace"), None) => {
            causes.required(&namespace_at, "`parameters.scope` is set to 'Namespace'");
        }
        (Some("Namespace"), Some(name)) => causes.faults(&namespace_at, name, format::dns1123_label(name)),
        (Some("Cluster"), Some(_)) => {
            causes.forbidden(&namespace_at, "`parameters.scope` is set to 'Cluster'")
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => causes.not_supported(&at.child("scope"), other, &["Cluster", "Namespace"]),
    }
}
