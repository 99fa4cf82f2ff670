//! The kinds of `rbac.authorization.k8s.io`.
//!
//! In: roles and bindings. Out: defaults, causes. Never: what anybody may do; escalation is checked before
//! the store.
//!
//! Source: kubernetes v1.36.3 `registry/rbac`, `apis/rbac/{v1,validation}`.

use forebay_apimachinery::json::to_go_text;
use forebay_apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::field::{BadValue, Causes, Path};
use super::format;
use super::meta::{validate_built_in_create, validate_built_in_update};
use super::names::NameRule;
use super::rule::{Flags, NONE, Rules, Update};
use super::selector;
use super::value::{
    Members, child, child_made, child_or_empty, default_text, list, objects, objects_mut, same_member, text,
    text_opt,
};

const GROUP: &str = "rbac.authorization.k8s.io";

const BASE: Rules = Rules { name: Some(NameRule::Rbac), flags: Flags::CREATED_ON_UPDATE, ..NONE };
const BINDING: Rules = Rules { defaults: binding_defaults, ..BASE };

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "Role",
        validate_create: |role, causes| rules(role, true, causes),
        validate_update: |new, update, causes| role_update(new, update, true, causes),
        ..BASE
    },
    Rules {
        kind: "RoleBinding",
        validate_create: |binding, causes| validate_binding(binding, true, causes),
        validate_update: |new, update, causes| binding_update(new, update, true, causes),
        ..BINDING
    },
    Rules {
        kind: "ClusterRole",
        namespaced: false,
        validate_create: cluster_role,
        validate_update: |new, update, causes| role_update(new, update, false, causes),
        ..BASE
    },
    Rules {
        kind: "ClusterRoleBinding",
        namespaced: false,
        validate_create: |binding, causes| validate_binding(binding, false, causes),
        validate_update: |new, update, causes| binding_update(new, update, false, causes),
        ..BINDING
    },
];

fn binding_defaults(binding: &mut Members) {
    default_text(child_made(binding, "roleRef"), "apiGroup", GROUP);
    for subject in objects_mut(binding, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default_text(subject, "apiGroup", GROUP);
        }
    }
}

fn cluster_role(role: &Members, causes: &mut Causes) {
    rules(role, false, causes);
    let Some(aggregation) = child(role, "aggregationRule") else { return };
    let at = Path::root("aggregationRule");
    let at = at.child("clusterRoleSelectors");
    if list(aggregation, "clusterRoleSelectors").is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.required(&at, detail);
    }
    for (index, of) in objects(aggregation, "clusterRoleSelectors").enumerate() {
        selector::validate(of, &at.index(index), causes);
        if LabelSelector::from_value(&Value::Object(of.clone())).is_err() {
            causes.invalid(&at.index(index), BadValue::Nil, "invalid label selector.");
        }
    }
}

fn role_update(new: &Members, update: &Update<'_>, namespaced: bool, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), namespaced, NameRule::Rbac, causes);
    if namespaced {
        rules(new, true, causes);
    } else {
        cluster_role(new, causes);
    }
    validate_built_in_update(new, update.old, causes);
}

fn rules(role: &Members, namespaced: bool, causes: &mut Causes) {
    let at = Path::root("rules");
    for (index, of) in objects(role, "rules").enumerate() {
        rule(of, namespaced, &at.index(index), causes);
    }
}

fn rule(rule: &Members, namespaced: bool, at: &Path<'_>, causes: &mut Causes) {
    let has = |name| !list(rule, name).is_empty();
    if !has("verbs") {
        causes.required(&at.child("verbs"), "verbs must contain at least one value");
    }
    if has("nonResourceURLs") {
        let at = at.child("nonResourceURLs");
        let bad = || rule.get("nonResourceURLs");
        if namespaced {
            causes.invalid(&at, bad(), "namespaced rules cannot apply to non-resource URLs");
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            causes.invalid(&at, bad(), "rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if !has("apiGroups") {
        causes.required(&at.child("apiGroups"), "resource rules must supply at least one api group");
    }
    if !has("resources") {
        causes.required(&at.child("resources"), "resource rules must supply at least one resource");
    }
}

fn validate_binding(binding: &Members, namespaced: bool, causes: &mut Causes) {
    let (role, at) = (child_or_empty(binding, "roleRef"), Path::root("roleRef"));
    if text(role, "apiGroup") != GROUP {
        causes.not_supported(&at.child("apiGroup"), text(role, "apiGroup"), &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    // Few: two kinds.
    if !kinds.contains(&text(role, "kind")) {
        causes.not_supported(&at.child("kind"), text(role, "kind"), kinds);
    }
    match text(role, "name") {
        "" => causes.required(&at.child("name"), ""),
        name => causes.faults(&at.child("name"), name, format::path_segment(name, false)),
    }
    let at = Path::root("subjects");
    for (index, of) in objects(binding, "subjects").enumerate() {
        subject(of, namespaced, &at.index(index), causes);
    }
}

fn subject(subject: &Members, namespaced: bool, at: &Path<'_>, causes: &mut Causes) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        causes.required(&at.child("name"), "");
    }
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                causes.faults(&at.child("name"), name, format::dns1123_subdomain(name));
            }
            if !group.is_empty() {
                causes.not_supported(&at.child("apiGroup"), group, &[""]);
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                causes.required(&at.child("namespace"), "");
            }
        }
        "User" | "Group" if group != GROUP => causes.not_supported(&at.child("apiGroup"), group, &[GROUP]),
        "User" | "Group" => {}
        other => causes.not_supported(&at.child("kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}

fn binding_update(new: &Members, update: &Update<'_>, namespaced: bool, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), namespaced, NameRule::Rbac, causes);
    validate_binding(new, namespaced, causes);
    validate_built_in_update(new, update.old, causes);
    if !same_member(new, update.old, "roleRef") {
        let role = child_or_empty(new, "roleRef");
        let shown = |name| to_go_text(&Value::from(text_opt(role, name).unwrap_or("")));
        let bad = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            shown("apiGroup"),
            shown("kind"),
            shown("name")
        );
        causes.invalid(&Path::root("roleRef"), BadValue::shown(bad), "cannot change roleRef");
    }
}
