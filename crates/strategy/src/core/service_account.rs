//! ServiceAccounts.
//!
//! In: a ServiceAccount. Out: its secrets by name alone; causes. Never: makes tokens.
//!
//! Source: kubernetes v1.36.3 `registry/core/serviceaccount`.

use crate::field::Causes;
use crate::meta::{validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{Members, child_or_empty, objects_mut};

pub fn prepare_create(account: &mut Members, _: &Context<'_>) {
    for secret in objects_mut(account, "secrets") {
        secret.retain(|name, _| name == "name");
    }
}

pub fn prepare_update(new: &mut Members, _: &Update<'_>, context: &Context<'_>) {
    prepare_create(new, context);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
}
