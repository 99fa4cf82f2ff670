//! The kinds of `flowcontrol.apiserver.k8s.io`.
//!
//! In: FlowSchemas and PriorityLevelConfigurations. Out: rows for [`rules`](super::rules); the objects that
//! exist from the first start on. Never: which request waits for which; nothing here is enforced.
//!
//! Source: kubernetes v1.36.3 `registry/flowcontrol`, `apis/flowcontrol/{v1,validation}`; apiserver v0.36.3
//! `apis/flowcontrol/bootstrap`.

mod built_in;
mod flow_schema;
mod priority_level;
#[cfg(test)]
mod tests;

pub use built_in::{ALL, BuiltIn, renewed, settle};

use built_in::built_in;

use forebay_apimachinery::Seen;

use super::field::{Causes, Path};
use super::lifecycle::{begin, reset_meta, status_apart};
use super::names::NameRule;
use super::rule::{Context, NONE, Rules, Update};
use super::value::{Members, child_or_empty, objects, text};

const SPEC: Path<'static> = Path::root("spec");

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "FlowSchema",
        defaults: flow_schema::defaults,
        validate_create: flow_schema::validate,
        validate_update: |new, update, causes| validate_update(new, update, flow_schema::validate, causes),
        ..BASE
    },
    Rules {
        kind: "PriorityLevelConfiguration",
        defaults: priority_level::defaults,
        validate_create: priority_level::validate,
        validate_update: |new, update, causes| validate_update(new, update, priority_level::validate, causes),
        ..BASE
    },
];

const BASE: Rules = Rules {
    namespaced: false,
    name: Some(NameRule::Subdomain),
    prepare_create: begin,
    prepare_update,
    ..NONE
};

fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart(new, update, context);
    if update.is_status() {
        reset_meta(new, update.old);
    }
}

/// An update is judged as a new object is, and its metadata with it.
fn validate_update(
    new: &Members,
    update: &Update<'_>,
    validate: fn(&Members, &mut Causes),
    causes: &mut Causes,
) {
    if update.is_status() {
        return conditions(new, causes);
    }
    let meta = child_or_empty(new, "metadata");
    super::meta::validate_built_in_create(meta, false, NameRule::Subdomain, causes);
    validate(new, causes);
}

/// Each condition has a type, and is there once.
fn conditions(object: &Members, causes: &mut Causes) {
    let at = Path::root("status");
    let at = at.child("conditions");
    let mut known = Seen::default();
    for (index, condition) in objects(child_or_empty(object, "status"), "conditions").enumerate() {
        let at = at.index(index);
        let kind = text(condition, "type");
        if known.again(kind) {
            causes.duplicate(&at.child("type"), kind);
        }
        if kind.is_empty() {
            causes.required(&at.child("type"), "");
        }
    }
}
