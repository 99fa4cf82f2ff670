//! The kinds of `certificates.k8s.io`.
//!
//! In: a CertificateSigningRequest. Out: who asked for it, its conditions' times, causes. Never: approves or
//! signs one; whether the asker may is for authorization.
//!
//! Source: kubernetes v1.36.3 `registry/certificates/certificates`, `apis/certificates/validation`,
//! `plugin/pkg/admission/certificates/subjectrestriction`.

mod request;
#[cfg(test)]
mod tests;

use forebay_apimachinery::Seen;
use forebay_apimachinery::seen::Firsts;
use serde_json::Value;

use request::Asks;

use super::field::{Causes, Path};
use super::format;
use super::lifecycle::reset_status;
use super::meta::{validate_built_in_create, validate_built_in_update};
use super::names::NameRule;
use super::rule::{Context, NONE, Rules, Update};
use super::value::{
    Members, child_made, child_or_empty, default, int, list, list_mut, objects, set, take_over, text, texts,
};

const SPEC: Path<'static> = Path::root("spec");
const STATUS: Path<'static> = Path::root("status");
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";
const EXPIRATION_SECONDS_MIN: i64 = 600;
const DOMAIN_BYTES_MAX: usize = 253;
/// A domain, a slash, a label, a dot and a subdomain.
const SIGNER_BYTES_MAX: usize = DOMAIN_BYTES_MAX + 1 + 63 + 1 + 253;
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// The conditions that only an approval sets.
const APPROVAL: [&str; 2] = ["Approved", "Denied"];

pub const KINDS: &[Rules] = &[Rules {
    kind: "CertificateSigningRequest",
    namespaced: false,
    prepare_create,
    prepare_update,
    validate_create: |request, causes| validate(request, None, causes),
    validate_update,
    ..NONE
}];

/// Why a new request is refused though it is valid: nobody becomes a master through the signer of clients.
pub fn subject_restriction(request: &Value) -> Option<String> {
    let spec = &request["spec"];
    if spec["signerName"] != CLIENT_SIGNER {
        return None;
    }
    let with = match request::asks_for_group(spec["request"].as_str().unwrap_or(""), MASTERS) {
        Asks::No => return None,
        Asks::Yes => format!("{MASTERS} group"),
        Asks::Unreadable => "a subject that cannot be read".to_string(),
    };
    Some(format!("use of {CLIENT_SIGNER} signer with {with} is not allowed"))
}

/// The common name that a CertificateSigningRequest asks for; empty for none.
///
/// # Errors
/// Its request cannot be read.
pub fn requested_common_name(request: &Value) -> Result<String, String> {
    request::common_name(request["spec"]["request"].as_str().unwrap_or(""))
}

/// Who asks is who is asking, whatever the request says.
fn prepare_create(request: &mut Members, context: &Context<'_>) {
    let spec = child_made(request, "spec");
    for name in ["username", "uid", "groups", "extra"] {
        spec.remove(name);
    }
    if let Some(user) = context.user {
        let some = |text: &str| (!text.is_empty()).then(|| Value::from(text));
        set(spec, "username", some(&user.name));
        set(spec, "uid", some(&user.uid));
        set(spec, "groups", (!user.groups.is_empty()).then(|| user.groups.clone().into()));
        let extra = user.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.clone())));
        let extra: Members = extra.collect();
        set(spec, "extra", (!extra.is_empty()).then_some(Value::Object(extra)));
    }
    reset_status(request, context);
}

/// The spec stays. An approval changes only conditions, the status anything but those of an approval, and the
/// resource itself only metadata.
fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    let old = update.old;
    take_over(new, old, "spec");
    match update.subresource {
        Some("approval") => {
            date_conditions(new, old, context.now);
            let conditions = child_made(new, "status").remove("conditions");
            take_over(new, old, "status");
            set(child_made(new, "status"), "conditions", conditions);
        }
        Some("status") => {
            APPROVAL.iter().for_each(|kind| keep_conditions(new, old, kind));
            date_conditions(new, old, context.now);
        }
        _ => take_over(new, old, "status"),
    }
}

/// Conditions of `kind` are what they were, unless some came or went, which is refused later.
fn keep_conditions(new: &mut Members, old: &Members, kind: &str) {
    let kept: Vec<Value> = conditions(old, kind).cloned().map(Value::Object).collect();
    let is_kind = |condition: &&mut Value| condition["type"] == kind;
    let status = child_made(new, "status");
    if list_mut(status, "conditions").iter_mut().filter(is_kind).count() == kept.len() {
        let places = list_mut(status, "conditions").iter_mut().filter(is_kind);
        places.zip(kept).for_each(|(place, kept)| *place = kept);
    }
}

fn conditions<'o>(request: &'o Members, kind: &'o str) -> impl Iterator<Item = &'o Members> {
    objects(child_or_empty(request, "status"), "conditions")
        .filter(move |condition| text(condition, "type") == kind)
}

/// A condition without times was updated now, and came to be when its like did.
fn date_conditions(new: &mut Members, old: &Members, now: &str) {
    let like = |condition: &Members| (text(condition, "type").to_string(), condition.get("status").cloned());
    let before = objects(child_or_empty(old, "status"), "conditions");
    let before: Firsts<_, Option<&Value>> =
        before.map(|before| (like(before), before.get("lastTransitionTime"))).collect();
    for condition in
        list_mut(child_made(new, "status"), "conditions").iter_mut().filter_map(Value::as_object_mut)
    {
        default(condition, "lastUpdateTime", now);
        let since = before.get(&like(condition)).copied().flatten().cloned();
        default(condition, "lastTransitionTime", since.unwrap_or_else(|| now.into()));
    }
}

/// - `old`: the stored one; what is wrong with it already is let through.
fn validate(request: &Members, old: Option<&Members>, causes: &mut Causes) {
    let spec = child_or_empty(request, "spec");
    validate_built_in_create(child_or_empty(request, "metadata"), false, NameRule::Own, causes);
    if let Some(fault) = request::request_fault(text(spec, "request")) {
        causes.invalid(&SPEC.child("request"), spec.get("request"), &fault);
    }
    usages(spec, old.map(|old| child_or_empty(old, "spec")), causes);
    let (at, signer) = (SPEC.child("signerName"), text(spec, "signerName"));
    let was_legacy = old.is_some_and(|old| text(child_or_empty(old, "spec"), "signerName") == LEGACY_SIGNER);
    match signer {
        LEGACY_SIGNER if !was_legacy => {
            causes.invalid(&at, signer, "the legacy signerName is not allowed via this API version");
        }
        _ => signer_name(signer, &at, causes),
    }
    if let Some(seconds) = int(spec, "expirationSeconds").filter(|seconds| *seconds < EXPIRATION_SECONDS_MIN)
    {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.invalid(&SPEC.child("expirationSeconds"), seconds, detail);
    }
    let status = child_or_empty(request, "status");
    validate_conditions(status, old.map(|old| child_or_empty(old, "status")), causes);
    let (certificate, before) =
        (text(status, "certificate"), old.map(|old| text(child_or_empty(old, "status"), "certificate")));
    let tolerated =
        before.is_some_and(|before| before == certificate || request::certificate_fault(before).is_some());
    if !tolerated && let Some(fault) = request::certificate_fault(certificate) {
        causes.invalid(&STATUS.child("certificate"), "<certificate data>", &fault);
    }
}

fn usages(spec: &Members, old: Option<&Members>, causes: &mut Causes) {
    let at = SPEC.child("usages");
    if list(spec, "usages").is_empty() {
        causes.required(&at, "");
    }
    let is_known = |usage: &str| USAGES.contains(&usage);
    if old.is_none_or(|old| texts(old, "usages").all(is_known)) {
        for (index, usage) in texts(spec, "usages").enumerate().filter(|(_, usage)| !is_known(usage)) {
            causes.not_supported(&at.index(index), usage, &USAGES);
        }
    }
    if old.is_none_or(|old| repeated(texts(old, "usages")).next().is_none()) {
        for (index, usage) in repeated(texts(spec, "usages")) {
            causes.duplicate(&at.index(index), usage);
        }
    }
}

/// The texts that came before, with their places.
fn repeated<'t>(texts: impl Iterator<Item = &'t str>) -> impl Iterator<Item = (usize, &'t str)> {
    let mut seen = Seen::default();
    texts.enumerate().filter(move |(_, text)| seen.again(*text))
}

/// `example.com/signer`.
pub fn signer_name(signer: &str, at: &Path<'_>, causes: &mut Causes) {
    if signer.is_empty() {
        return causes.required(at, "");
    }
    let Some((domain, path)) = signer.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return causes.invalid(at, signer, detail);
    };
    if domain.len() > DOMAIN_BYTES_MAX {
        causes.too_long(at, DOMAIN_BYTES_MAX);
    }
    first_fault(domain, format::dns1123_label, at, causes);
    if !domain.contains('.') {
        causes.invalid(at, domain, "should be a domain with at least two segments separated by dots");
    }
    first_fault(path, format::dns1123_subdomain, at, causes);
    if signer.len() > SIGNER_BYTES_MAX {
        causes.too_long(at, SIGNER_BYTES_MAX);
    }
}

/// What is wrong with the first of a segment's labels that is no good.
fn first_fault(segment: &str, faults: fn(&str) -> Vec<String>, at: &Path<'_>, causes: &mut Causes) {
    let bad = segment.split('.').map(|label| (label, faults(label))).find(|(_, faults)| !faults.is_empty());
    let Some((label, faults)) = bad else { return };
    let label = forebay_apimachinery::json::go_quote(label);
    for fault in faults {
        causes.invalid(at, segment, &format!("validating label {label}: {fault}"));
    }
}

fn validate_conditions(status: &Members, old: Option<&Members>, causes: &mut Causes) {
    let at = STATUS.child("conditions");
    let types = |status| objects(status, "conditions").map(|condition| text(condition, "type"));
    let tolerates_empty = old.is_some_and(|old| types(old).any(str::is_empty));
    let tolerates_both = old.is_some_and(|old| APPROVAL.iter().all(|kind| types(old).any(|of| of == *kind)));
    let tolerates_twice = old.is_some_and(|old| repeated(types(old)).next().is_some());
    let mut seen = Seen::default();
    for (index, condition) in objects(status, "conditions").enumerate() {
        let item = at.index(index);
        let (kind, state) = (text(condition, "type"), text(condition, "status"));
        if kind.is_empty() && !tolerates_empty {
            causes.required(&item.child("type"), "");
        }
        let only_true = APPROVAL.contains(&kind) || kind == "Failed";
        let states: &[&str] = if only_true { &["True"] } else { &["False", "True", "Unknown"] };
        match state {
            "" => causes.required(&item.child("status"), ""),
            state if !states.contains(&state) => causes.not_supported(&item.child("status"), state, states),
            _ => {}
        }
        let other = APPROVAL.iter().find(|other| **other != kind && seen.has(**other));
        if APPROVAL.contains(&kind) && other.is_some() && !tolerates_both {
            causes.invalid(&at, kind, "Approved and Denied conditions are mutually exclusive");
        }
        if seen.again(kind) && !tolerates_twice {
            causes.duplicate(&item.child("type"), kind);
        }
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate(new, Some(old), causes);
    let count = |request, kind| conditions(request, kind).count();
    let at = STATUS.child("conditions");
    for kind in ["Approved", "Denied", "Failed"] {
        if count(new, kind) < count(old, kind) {
            causes.forbidden(&at, &format!("updates may not remove a condition of type \"{kind}\""));
        }
    }
    if update.subresource != Some("approval") {
        for kind in APPROVAL.into_iter().filter(|kind| count(new, kind) > count(old, kind)) {
            causes.forbidden(&at, &format!("updates may not add a condition of type \"{kind}\""));
        }
    }
    let certificate = |request| text(child_or_empty(request, "status"), "certificate");
    // What is not set through the status is the old one already.
    if certificate(new) != certificate(old) && !certificate(old).is_empty() {
        let detail = "updates may not modify existing certificate content";
        causes.forbidden(&STATUS.child("certificate"), detail);
    }
    validate_built_in_update(new, old, causes);
}
