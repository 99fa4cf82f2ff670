//! What a webhook, a policy or a binding is about: rules of resources, selectors, conditions.
//!
//! In: the members that say so. Out: defaults, causes. Never: matches a request.

use forebay_apimachinery::Seen;

use super::expressions::Expressions;
use crate::field::{Causes, Path};
use crate::format;
use crate::meta::{label_key, validate_meta_create};
use crate::names::NameRule;
use crate::selector;
use crate::value::{
    Members, child, child_or_empty, default, default_object, list, objects, objects_mut, text, text_opt,
    texts,
};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const CONDITIONS_MAX: usize = 64;
pub const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
pub const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
pub const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

/// The metadata of every kind here.
pub fn metadata(object: &Members, causes: &mut Causes) {
    validate_meta_create(child_or_empty(object, "metadata"), false, NameRule::Subdomain, causes);
}

/// What requests are matched by unless it is said.
pub fn default_matching(of: &mut Members) {
    default(of, "matchPolicy", "Equivalent");
    default_object(of, "namespaceSelector");
    default_object(of, "objectSelector");
}

/// The members of `MatchResources`.
pub fn default_resources(of: &mut Members) {
    default_matching(of);
    default_scopes(of, "resourceRules");
    default_scopes(of, "excludeResourceRules");
}

pub fn default_scopes(of: &mut Members, name: &str) {
    objects_mut(of, name).for_each(|rule| default(rule, "scope", "*"));
}

/// A member that is one of a few texts, if it is there.
pub fn one_of(of: &Members, name: &str, supported: &[&str], at: &Path<'_>, causes: &mut Causes) {
    if let Some(text) = text_opt(of, name).filter(|text| !supported.contains(text)) {
        causes.not_supported(&at.child(name), text, supported);
    }
}

/// As [`one_of`], and it must be there.
pub fn required_one_of(of: &Members, name: &str, supported: &[&str], at: &Path<'_>, causes: &mut Causes) {
    match text_opt(of, name) {
        None => causes.required(&at.child(name), ""),
        Some(_) => one_of(of, name, supported, at, causes),
    }
}

/// `MatchResources`.
pub fn resources(of: &Members, at: &Path<'_>, causes: &mut Causes) {
    required_one_of(of, "matchPolicy", &MATCH_POLICIES, at, causes);
    for name in ["namespaceSelector", "objectSelector"] {
        match child(of, name) {
            None => causes.required(&at.child(name), ""),
            Some(labels) => selector::validate(labels, &at.child(name), causes),
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        for (index, of) in objects(of, name).enumerate() {
            let at = at.child(name);
            let at = at.index(index);
            resource_names(of, &at.child("resourceNames"), causes);
            rule(of, &at, causes);
        }
    }
}

fn resource_names(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    let mut known = Seen::default();
    for (index, name) in texts(rule, "resourceNames").enumerate() {
        causes.faults(&at.index(index), name, format::path_segment(name, false));
        if known.again(name) {
            causes.duplicate(&at.index(index), name);
        }
    }
}

/// What only a mutating policy may not match: deletions. `at` is where the rules are.
pub fn mutating_operations(of: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("resourceRules");
    for operation in objects(of, "resourceRules").flat_map(|rule| texts(rule, "operations")) {
        if !MUTATING_OPERATIONS.contains(&operation) {
            causes.not_supported(&at.child("operations"), operation, &MUTATING_OPERATIONS);
        }
    }
}

/// `RuleWithOperations`.
pub fn rule(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    let lists = [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")];
    for (name, what) in lists {
        let (at, items) = (at.child(name), list(rule, name));
        if items.is_empty() {
            causes.required(&at, "");
        }
        if items.len() > 1 && texts(rule, name).any(|item| item == "*") {
            causes.invalid(&at, rule.get(name), &format!("if '*' is present, must not specify other {what}"));
        }
        for (index, item) in texts(rule, name).enumerate() {
            match name {
                "operations" if !OPERATIONS.contains(&item) => {
                    causes.not_supported(&at.index(index), item, &OPERATIONS);
                }
                "apiVersions" if item.is_empty() => causes.required(&at.index(index), ""),
                _ => {}
            }
        }
    }
    rule_resources(rule, &at.child("resources"), causes);
    one_of(rule, "scope", &SCOPES, at, causes);
}

/// `pods`, `pods/status`, `pods/*`, `*/scale`, `*`, `*/*`: one that stands for others stands without them.
fn rule_resources(rule: &Members, at: &Path<'_>, causes: &mut Causes) {
    let all = || rule.get("resources");
    if list(rule, "resources").is_empty() {
        causes.required(at, "");
    }
    let (mut all_subresources, mut of_all): (Seen<&str>, Seen<&str>) = (Seen::default(), Seen::default());
    let (mut everything, mut every_resource, mut plain_resource) = (false, false, false);
    for (index, named) in texts(rule, "resources").enumerate() {
        if named.is_empty() {
            causes.required(&at.index(index), "");
            continue;
        }
        everything |= named == "*/*";
        every_resource |= named == "*";
        let Some((resource, subresource)) = named.split_once('/') else {
            // Upstream remembers only the last.
            plain_resource = named != "*";
            continue;
        };
        if all_subresources.has(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {named}");
            causes.invalid(&at.index(index), named, &detail);
        }
        if of_all.has(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {named}");
            causes.invalid(&at.index(index), named, &detail);
        }
        if subresource == "*" {
            all_subresources.again(resource);
        }
        if resource == "*" {
            of_all.again(subresource);
        }
    }
    if list(rule, "resources").len() > 1 && everything {
        causes.invalid(at, all(), "if '*/*' is present, must not specify other resources");
    }
    if every_resource && plain_resource {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.invalid(at, all(), detail);
    }
}

/// `matchConditions`.
pub fn conditions(of: &Members, at: &Path<'_>, expressions: &mut Expressions<'_>, causes: &mut Causes) {
    let at = at.child("matchConditions");
    let count = list(of, "matchConditions").len();
    if count > CONDITIONS_MAX {
        causes.too_many(&at, count, CONDITIONS_MAX);
    }
    let mut known = Seen::default();
    for (index, condition) in objects(of, "matchConditions").enumerate() {
        let at = at.index(index);
        let name = text(condition, "name");
        if is_blank(condition, "expression") {
            causes.required(&at.child("expression"), "");
        } else {
            expressions.condition(text(condition, "expression"), &at.child("expression"), causes);
        }
        if name.is_empty() {
            causes.required(&at.child("name"), "");
            continue;
        }
        label_key(name, &at.child("name"), causes);
        if known.again(name) {
            causes.duplicate(&at.child("name"), name);
        }
    }
}

/// Whether a text is empty but for white space.
pub fn is_blank(of: &Members, name: &str) -> bool {
    text(of, name).trim().is_empty()
}
