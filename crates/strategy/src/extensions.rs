//! The kinds of `apiextensions.k8s.io`.
//!
//! In: a CustomResourceDefinition. Out: what it is stored as, and its end. Never: its schema; that is
//! validated where it is understood.
//!
//! Source: apiextensions-apiserver v0.36.3 `registry/customresourcedefinition`.

use serde_json::{Value, json};

use super::lifecycle::{begin, status_apart};
use super::rule::{Context, Flags, NONE, Rules, Update};
use super::value::{Members, child_made, child_or_empty, is_true, objects, set, text, texts};

pub const KINDS: &[Rules] = &[Rules {
    kind: "CustomResourceDefinition",
    namespaced: false,
    prepare_create: |definition, context| {
        begin(definition, context);
        remember_stored_version(definition);
    },
    prepare_update,
    flags: Flags { unconditional_update: false, ..Flags::PLAIN },
    ..NONE
}];

fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart(new, update, context);
    if !update.is_status() {
        remember_stored_version(new);
    }
}

/// Every version that objects were ever stored in is kept in mind.
fn remember_stored_version(definition: &mut Members) {
    let spec = child_or_empty(definition, "spec");
    let Some(version) = objects(spec, "versions").find(|version| is_true(version, "storage")) else { return };
    let name = text(version, "name").to_string();
    let status = child_made(definition, "status");
    if texts(status, "storedVersions").any(|stored| stored == name) {
        return;
    }
    match status.get_mut("storedVersions") {
        Some(Value::Array(stored)) => stored.push(name.into()),
        _ => set(status, "storedVersions", Some(json!([name]))),
    }
}
