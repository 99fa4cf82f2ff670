//! Namespaces.
//!
//! In: a Namespace. Out: its label, its phase, its finalizer; causes. Never: empties it.
//!
//! Source: kubernetes v1.36.3 `registry/core/namespace`, `apis/core/{v1,validation}`.

use serde_json::{Value, json};

use crate::field::{Causes, Path};
use crate::meta::{known_finalizer, label_key, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{Members, child_made, child_or_empty, default_text, set, take_over, text, texts};

const SPEC: Path<'static> = Path::root("spec");
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const FINALIZER: &str = "kubernetes";

pub fn defaults(namespace: &mut Members) {
    label_with_name(namespace);
    default_text(child_made(namespace, "status"), "phase", "Active");
}

/// Labels it with its name, if it has one by now.
fn label_with_name(namespace: &mut Members) {
    let name = text(child_or_empty(namespace, "metadata"), "name").to_string();
    if !name.is_empty() {
        child_made(child_made(namespace, "metadata"), "labels").insert(NAME_LABEL.into(), name.into());
    }
}

pub fn prepare_create(namespace: &mut Members, _: &Context<'_>) {
    // A name that was made for it was not there for the defaults.
    label_with_name(namespace);
    set(namespace, "status", Some(json!({"phase": "Active"})));
    let spec = child_made(namespace, "spec");
    if !texts(spec, "finalizers").any(|finalizer| finalizer == FINALIZER) {
        match spec.get_mut("finalizers") {
            Some(Value::Array(finalizers)) => finalizers.push(FINALIZER.into()),
            _ => set(spec, "finalizers", Some(json!([FINALIZER]))),
        }
    }
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    match update.subresource {
        Some("status") => take_over(new, old, "spec"),
        Some("finalize") => take_over(new, old, "status"),
        _ => {
            take_over(child_made(new, "spec"), child_or_empty(old, "spec"), "finalizers");
            take_over(new, old, "status");
        }
    }
}

pub fn validate_create(namespace: &Members, causes: &mut Causes) {
    let at = SPEC.child("finalizers");
    for finalizer in texts(child_or_empty(namespace, "spec"), "finalizers") {
        label_key(finalizer, &at, causes);
        known_finalizer(finalizer, &at, causes);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    match update.subresource {
        Some("status") => {
            validate_built_in_update(new, old, causes);
            phase(new, causes);
        }
        Some("finalize") => {
            validate_built_in_update(new, old, causes);
            let at = SPEC.child("finalizers");
            for (index, finalizer) in texts(child_or_empty(new, "spec"), "finalizers").enumerate() {
                label_key(finalizer, &at.index(index), causes);
                known_finalizer(finalizer, &at.index(index), causes);
            }
        }
        _ => {
            validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Label, causes);
            validate_create(new, causes);
            validate_built_in_update(new, old, causes);
        }
    }
}

fn phase(namespace: &Members, causes: &mut Causes) {
    let phase = text(child_or_empty(namespace, "status"), "phase");
    let deleting = child_or_empty(namespace, "metadata").contains_key("deletionTimestamp");
    let (only, when) = if deleting { ("Terminating", "not empty") } else { ("Active", "empty") };
    if phase != only {
        let detail = format!("may only be '{only}' if `deletionTimestamp` is {when}");
        causes.invalid(&Path::root("status").child("Phase"), phase, &detail);
    }
}
