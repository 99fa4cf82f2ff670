//! IPAddresses.
//!
//! In: an IPAddress. Out: causes. Never: allocates it.

use super::ingress::segment;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::value::{Members, child, child_or_empty, same_member, text};

const SPEC: Path<'static> = Path::root("spec");

pub fn validate(address: &Members, causes: &mut Causes) {
    let at = SPEC.child("parentRef");
    let Some(parent) = child(child_or_empty(address, "spec"), "parentRef") else {
        return causes.required(&at, "");
    };
    let group = text(parent, "group");
    if !group.is_empty() {
        causes.faults(&at.child("group"), group, format::dns1123_subdomain(group));
    }
    segment(parent, "resource", &at, causes);
    segment(parent, "name", &at, causes);
    let namespace = text(parent, "namespace");
    causes.faults(&at.child("namespace"), namespace, format::path_segment(namespace, false));
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Ip, causes);
    validate(new, causes);
    validate_built_in_update(new, update.old, causes);
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(update.old, "spec"));
    if !same_member(spec, old_spec, "parentRef") {
        let bad = child(spec, "parentRef")
            .map_or(BadValue::Nil, |parent| internal::shown("ParentReference", parent));
        causes.invalid(&SPEC.child("parentRef"), bad, IMMUTABLE);
    }
}
