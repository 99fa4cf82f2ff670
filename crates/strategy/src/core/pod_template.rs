//! PodTemplates.
//!
//! In: a PodTemplate. Out: defaults, its generation, causes. Never: a pod.
//!
//! Source: kubernetes v1.36.3 `registry/core/podtemplate`.

use super::pod;
use crate::field::{Causes, Path};
use crate::lifecycle::bump_generation;
use crate::meta::validate_built_in_update;
use crate::rule::{Context, Update};
use crate::value::{Members, child_made, child_or_empty, same_member};
use crate::warnings::is_of_interest;

const TEMPLATE: Path<'static> = Path::root("template");

pub fn defaults(object: &mut Members) {
    pod::defaults::template(child_made(object, "template"));
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    if !same_member(new, update.old, "template") {
        bump_generation(new, update.old);
    }
}

pub fn warnings(object: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    if is_of_interest(object, update) {
        pod::warnings::of_template(child_or_empty(object, "template"), Some(&TEMPLATE), out);
    }
}

pub fn validate_create(object: &Members, causes: &mut Causes) {
    pod::validate_template(child_or_empty(object, "template"), &TEMPLATE, causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    validate_create(new, causes);
}
