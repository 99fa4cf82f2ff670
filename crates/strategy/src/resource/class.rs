//! DeviceClasses.
//!
//! In: a DeviceClass. Out: its generation, causes. Never: the devices that it selects.

use serde_json::Value;

use super::config::{CONFIG_MAX, Origin, opaque, selectors};
use super::expression::Allowance;
use super::lists::{SPEC, bounded};
use crate::core::pod::resources::is_extended;
use crate::field::Causes;
use crate::lifecycle::bump_generation;
use crate::meta::{validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{Members, child_or_empty, same_member, text_opt};

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    if !same_member(new, update.old, "spec") {
        bump_generation(new, update.old);
    }
}

pub fn validate(class: &Members, causes: &mut Causes) {
    validate_spec(class, [Origin::New; 2], causes);
}

/// - `chosen`, `config`: where selectors and parameters are from.
fn validate_spec(class: &Members, [chosen, config]: [Origin; 2], causes: &mut Causes) {
    const NAME: &str = "extendedResourceName";
    let spec = child_or_empty(class, "spec");
    selectors(spec, chosen, &Allowance::new(), &SPEC, causes);
    let items = bounded(spec, "config", CONFIG_MAX, &SPEC, causes);
    for (index, of) in items.iter().filter_map(Value::as_object).enumerate() {
        opaque(of, config, &SPEC.child("config").index(index), causes);
    }
    if let Some(name) = text_opt(spec, NAME).filter(|name| !is_extended(name)) {
        causes.invalid(&SPEC.child(NAME), name, "must be a valid extended resource name");
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::LongName, causes);
    validate_built_in_update(new, old, causes);
    let (spec, before) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    let origin = |list: &str| match same_member(spec, before, list) {
        true => Origin::Stored,
        false => Origin::New,
    };
    validate_spec(new, [origin("selectors"), origin("config")], causes);
}
