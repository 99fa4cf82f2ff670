//! The kinds of `node.k8s.io`.
//!
//! In: a RuntimeClass. Out: causes, warnings. Never: a pod's overhead; that is admission.
//!
//! Source: kubernetes v1.36.3 `registry/node/runtimeclass`, `apis/node/validation`, `api/node`.

use forebay_apimachinery::Seen;
use serde_json::Value;

use super::core::pod::resources::{Claims, Of, requirements};
use super::core::pod::toleration_rules;
use super::field::{Causes, Path};
use super::format;
use super::internal;
use super::meta::{IMMUTABLE, labels, validate_meta_create, validate_meta_update};
use super::names::NameRule;
use super::rule::{Flags, NONE, Rules, Update};
use super::value::{Members, child, child_or_empty, objects, same_member, text};

pub const KINDS: &[Rules] = &[Rules {
    kind: "RuntimeClass",
    namespaced: false,
    name: Some(NameRule::Subdomain),
    knows_finalizers: false,
    validate_create: validate,
    validate_update,
    warnings: |class, _, warnings| {
        let selector = child_or_empty(child_or_empty(class, "scheduling"), "nodeSelector");
        let deprecated = selector.keys().filter_map(|key| deprecated_label(key));
        warnings.extend(deprecated.map(|why| format!("scheduling.nodeSelector: {why}")));
    },
    flags: Flags { unconditional_update: false, ..Flags::CREATED_ON_UPDATE },
    ..NONE
}];

/// What is said of a label of nodes that has another name now.
pub fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
        "beta.kubernetes.io/os" => r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
        "failure-domain.beta.kubernetes.io/region" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#
        }
        "beta.kubernetes.io/instance-type" => {
            r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => r#"use "node-role.kubernetes.io/control-plane" instead"#,
        _ => return None,
    })
}

fn validate(class: &Members, causes: &mut Causes) {
    match text(class, "handler") {
        "" => causes.required(&Path::root("handler"), ""),
        handler => causes.faults(&Path::root("handler"), handler, format::dns1123_label(handler)),
    }
    if let Some(fixed) = child(class, "overhead").and_then(|overhead| overhead.get("podFixed")) {
        let limits = Members::from_iter([("limits".to_string(), fixed.clone())]);
        requirements(Of::Container, &limits, &Claims::default(), &Path::root("overhead"), causes);
    }
    let Some(scheduling) = child(class, "scheduling") else { return };
    let at = Path::root("scheduling");
    labels(child_or_empty(scheduling, "nodeSelector"), &at.child("nodeSelector"), causes);
    let at = at.child("tolerations");
    for (index, toleration) in objects(scheduling, "tolerations").enumerate() {
        toleration_rules(toleration, &at.index(index), causes);
    }
    let mut known = Seen::default();
    for (index, toleration) in objects(scheduling, "tolerations").enumerate() {
        if known.again(["key", "operator", "value", "effect"].map(|name| text(toleration, name))) {
            causes.duplicate(&at.index(index), internal::shown("Toleration", toleration));
        }
    }
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let (meta, old_meta) = (child_or_empty(new, "metadata"), child_or_empty(update.old, "metadata"));
    validate_meta_create(meta, false, NameRule::Subdomain, causes);
    validate(new, causes);
    validate_meta_update(meta, old_meta, causes);
    if !same_member(new, update.old, "handler") {
        causes.invalid(
            &Path::root("handler"),
            new.get("handler").and_then(Value::as_str).unwrap_or(""),
            IMMUTABLE,
        );
    }
}
