//! ResourceClaimTemplates.
//!
//! In: a template. Out: defaults, causes. Never: the claims that are made of it.

use super::claim;
use super::lists::SPEC;
use crate::field::Causes;
use crate::internal;
use crate::meta::{IMMUTABLE, of_template, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::value::{Members, child_mut, child_or_empty, same_member};

pub fn defaults(template: &mut Members) {
    if let Some(spec) = child_mut(template, "spec").and_then(|spec| child_mut(spec, "spec")) {
        claim::default_spec(spec);
    }
}

pub fn validate(template: &Members, causes: &mut Causes) {
    let spec = child_or_empty(template, "spec");
    of_template(child_or_empty(spec, "metadata"), &SPEC.child("metadata"), causes);
    claim::validate_spec(child_or_empty(spec, "spec"), &SPEC.child("spec"), causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate(new, causes);
    validate_built_in_update(new, update.old, causes);
    if !same_member(new, update.old, "spec") {
        let spec = child_or_empty(new, "spec");
        causes.invalid(&SPEC, internal::shown("resource.ResourceClaimTemplateSpec", spec), IMMUTABLE);
    }
}
