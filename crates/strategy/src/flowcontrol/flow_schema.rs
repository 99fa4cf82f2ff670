//! FlowSchemas.
//!
//! In: a FlowSchema. Out: defaults, causes. Never: which requests it matches.

use super::{SPEC, built_in, conditions};
use crate::field::{Causes, Path};
use crate::format;
use crate::internal;
use crate::value::{
    Members, child, child_made, child_or_empty, default_int, int, is_true, list, objects, same_member, text,
    texts,
};

const PRECEDENCE_DEFAULT: i64 = 1_000;
const PRECEDENCE_MAX: i64 = 10_000;
const METHODS: [&str; 2] = ["ByNamespace", "ByUser"];
const SUBJECT_KINDS: [&str; 3] = ["Group", "ServiceAccount", "User"];
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub fn defaults(schema: &mut Members) {
    default_int(child_made(schema, "spec"), "matchingPrecedence", PRECEDENCE_DEFAULT);
}

pub fn validate(schema: &Members, causes: &mut Causes) {
    let spec = child_or_empty(schema, "spec");
    let name = text(child_or_empty(schema, "metadata"), "name");
    precedence(spec, name, causes);
    if let Some(method) = child(spec, "distinguisherMethod")
        && !METHODS.contains(&text(method, "type"))
    {
        let shown = internal::shown("flowcontrol.FlowDistinguisherMethod", method);
        causes.not_supported(&SPEC.child("distinguisherMethod.type"), shown, &METHODS);
    }
    let at = SPEC.child("priorityLevelConfiguration.name");
    match text(child_or_empty(spec, "priorityLevelConfiguration"), "name") {
        "" => causes.required(&at, "must reference a priority level"),
        level => causes.faults(&at, level, format::dns1123_subdomain(level)),
    }
    let at = SPEC.child("rules");
    for (index, of) in objects(spec, "rules").enumerate() {
        rule(of, &at.index(index), causes);
    }
    if let Some(fixed) = built_in("FlowSchema", name).filter(|built_in| built_in.mandatory)
        && !fixed.object.as_object().is_some_and(|fixed| same_member(fixed, schema, "spec"))
    {
        let detail = format!("spec of '{name}' must equal the fixed value");
        causes.invalid(&SPEC, internal::shown("flowcontrol.FlowSchemaSpec", spec), &detail);
    }
    conditions(schema, causes);
}

fn precedence(spec: &Members, name: &str, causes: &mut Causes) {
    let (at, precedence) = (SPEC.child("matchingPrecedence"), int(spec, "matchingPrecedence").unwrap_or(0));
    if precedence <= 0 {
        causes.invalid(&at, precedence, "must be a positive value");
    }
    if precedence > PRECEDENCE_MAX {
        causes.invalid(&at, precedence, &format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if precedence == 1 && name != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        causes.invalid(&at, precedence, detail);
    }
}

fn rule(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    if list(rule, "subjects").is_empty() {
        causes.required(&at.child("subjects"), "subjects must contain at least one value");
    }
    for (index, of) in objects(rule, "subjects").enumerate() {
        subject(of, &at.child("subjects").index(index), causes);
    }
    if list(rule, "resourceRules").is_empty() && list(rule, "nonResourceRules").is_empty() {
        causes.required(at, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for (index, of) in objects(rule, "resourceRules").enumerate() {
        resource_rule(of, &at.child("resourceRules").index(index), causes);
    }
    for (index, of) in objects(rule, "nonResourceRules").enumerate() {
        non_resource_rule(of, &at.child("nonResourceRules").index(index), causes);
    }
}

/// A subject says in the member of its kind who it is, and nothing in the other two.
fn subject(subject: &Members, at: &Path<'_>, causes: &mut Causes) {
    const MEMBERS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    let Some((_, own)) = MEMBERS.iter().find(|(known, _)| *known == kind) else {
        return causes.not_supported(&at.child("kind"), kind, &SUBJECT_KINDS);
    };
    match child(subject, own) {
        None => causes.required(&at.child(own), &format!("{own} is required when subject kind is '{kind}'")),
        Some(named) => subject_name(kind, named, &at.child(own), causes),
    }
    for (kind, other) in MEMBERS.iter().filter(|(_, member)| member != own) {
        if subject.contains_key(*other) {
            let detail = format!("{other} is forbidden when subject kind is not '{kind}'");
            causes.forbidden(&at.child(other), &detail);
        }
    }
}

fn subject_name(kind: &str, named: &Members, at: &Path<'_>, causes: &mut Causes) {
    let is_account = kind == "ServiceAccount";
    match text(named, "name") {
        "" => causes.required(&at.child("name"), ""),
        "*" => {}
        name if is_account => causes.faults(&at.child("name"), name, format::dns1123_subdomain(name)),
        _ => {}
    }
    match text(named, "namespace") {
        "" if is_account => {
            causes.required(&at.child("namespace"), "must specify namespace for service account");
        }
        namespace if is_account => {
            causes.faults(&at.child("namespace"), namespace, format::dns1123_label(namespace));
        }
        _ => {}
    }
}

fn resource_rule(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    verbs(rule, at, causes);
    at_least_one(rule, "apiGroups", "resource rules must supply at least one api group", at, causes);
    alone(rule, "apiGroups", "api groups", at, causes);
    at_least_one(rule, "resources", "resource rules must supply at least one resource", at, causes);
    alone(rule, "resources", "resources", at, causes);
    let namespaces = list(rule, "namespaces");
    if namespaces.is_empty() && !is_true(rule, "clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        causes.required(&at.child("namespaces"), detail);
    } else if has_wildcard(rule, "namespaces") {
        alone(rule, "namespaces", "namespaces", at, causes);
    } else {
        for (index, namespace) in texts(rule, "namespaces").enumerate() {
            for fault in format::dns1123_label(namespace) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
                causes.invalid(&at.child("namespaces").index(index), namespace, &detail);
            }
        }
    }
}

fn non_resource_rule(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    const NAME: &str = "nonResourceURLs";
    verbs(rule, at, causes);
    at_least_one(rule, NAME, "nonResourceURLs must contain at least one value", at, causes);
    if has_wildcard(rule, NAME) {
        return alone(rule, NAME, "non-resource URLs", at, causes);
    }
    for (index, path) in texts(rule, NAME).enumerate() {
        if let Some(fault) = path_fault(path) {
            causes.invalid(&at.child(NAME).index(index), path, fault);
        }
    }
}

fn verbs(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    at_least_one(rule, "verbs", "verbs must contain at least one value", at, causes);
    if has_wildcard(rule, "verbs") {
        alone(rule, "verbs", "verbs", at, causes);
    } else if !texts(rule, "verbs").all(|verb| VERBS.contains(&verb)) {
        causes.not_supported(&at.child("verbs"), rule.get("verbs"), &VERBS);
    }
}

fn at_least_one(rule: &Members, name: &str, detail: &str, at: &Path<'_>, causes: &mut Causes) {
    if list(rule, name).is_empty() {
        causes.required(&at.child(name), detail);
    }
}

/// What stands for everything stands alone.
fn alone(rule: &Members, name: &str, what: &str, at: &Path<'_>, causes: &mut Causes) {
    if has_wildcard(rule, name) && list(rule, name).len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        causes.invalid(&at.child(name), rule.get(name), &detail);
    }
}

fn has_wildcard(rule: &Members, name: &str) -> bool {
    texts(rule, name).any(|item| item == "*")
}

fn path_fault(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !path.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}
