//! The kinds of `admissionregistration.k8s.io`.
//!
//! In: configurations of webhooks, policies and their bindings. Out: rows for [`rules`](super::rules);
//! causes; a warning for what is not called or evaluated. Never: evaluates an expression.
//!
//! Source: kubernetes v1.36.3 `registry/admissionregistration`, `apis/admissionregistration/{v1,validation}`.

mod binding;
mod expressions;
mod matching;
mod policy;
#[cfg(test)]
mod tests;
mod webhook;

use matching::metadata;

use super::lifecycle::{begin, bump_generation, first_generation, reset_meta, status_apart};
use super::names::NameRule;
use super::rule::{Context, Flags, NONE, Rules, Update};
use super::value::{Members, child_or_empty, same_member, text};

/// What names of configurations end in that come from files of the server.
const STATIC: &str = ".static.k8s.io";

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "MutatingWebhookConfiguration",
        defaults: |configuration| webhook::defaults(configuration, webhook::Sort::Mutating),
        validate_create: |new, causes| webhook::validate(new, None, webhook::Sort::Mutating, causes),
        validate_update: |new, update, causes| {
            metadata(new, causes);
            webhook::validate(new, Some(update.old), webhook::Sort::Mutating, causes);
        },
        ..WEBHOOK
    },
    Rules {
        kind: "ValidatingWebhookConfiguration",
        defaults: |configuration| webhook::defaults(configuration, webhook::Sort::Validating),
        validate_create: |new, causes| webhook::validate(new, None, webhook::Sort::Validating, causes),
        validate_update: |new, update, causes| {
            metadata(new, causes);
            webhook::validate(new, Some(update.old), webhook::Sort::Validating, causes);
        },
        ..WEBHOOK
    },
    Rules {
        kind: "ValidatingAdmissionPolicy",
        defaults: policy::defaults,
        prepare_create: begin,
        prepare_update: |new, update, context| {
            status_apart(new, update, context);
            if update.is_status() {
                reset_meta(new, update.old);
            }
        },
        validate_create: |new, causes| policy::validating(new, None, causes),
        validate_update: |new, update, causes| match update.is_status() {
            true => policy::status(new, causes),
            false => {
                metadata(new, causes);
                policy::validating(new, Some(update.old), causes);
            }
        },
        ..POLICY
    },
    Rules {
        kind: "MutatingAdmissionPolicy",
        defaults: policy::defaults,
        validate_create: |new, causes| policy::mutating(new, None, causes),
        validate_update: |new, update, causes| {
            metadata(new, causes);
            policy::mutating(new, Some(update.old), causes);
        },
        ..POLICY
    },
    Rules {
        kind: "ValidatingAdmissionPolicyBinding",
        defaults: binding::defaults,
        validate_create: binding::validating,
        validate_update: |new, _, causes| {
            metadata(new, causes);
            binding::validating(new, causes);
        },
        ..POLICY
    },
    Rules {
        kind: "MutatingAdmissionPolicyBinding",
        defaults: binding::defaults,
        validate_create: binding::mutating,
        validate_update: |new, _, causes| {
            metadata(new, causes);
            binding::mutating(new, causes);
        },
        ..POLICY
    },
];

const BASE: Rules = Rules {
    namespaced: false,
    name: Some(NameRule::Subdomain),
    knows_finalizers: false,
    prepare_create: first_generation,
    flags: Flags { unconditional_update: false, ..Flags::PLAIN },
    ..NONE
};

const WEBHOOK: Rules = Rules {
    prepare_update: |new, update, context| count_changes(new, update, "webhooks", context),
    warnings: warn,
    ..BASE
};

const POLICY: Rules = Rules {
    prepare_update: |new, update, context| count_changes(new, update, "spec", context),
    warnings: warn,
    ..BASE
};

/// The generation goes up when `member` changes.
fn count_changes(new: &mut Members, update: &Update<'_>, member: &str, _: &Context<'_>) {
    if !same_member(new, update.old, member) {
        bump_generation(new, update.old);
    }
}

fn warn(object: &Members, update: Option<&Update<'_>>, warnings: &mut Vec<String>) {
    if update.is_some_and(Update::is_status) {
        return;
    }
    if text(child_or_empty(object, "metadata"), "name").ends_with(STATIC) {
        warnings.push(format!(
            "metadata.name: names ending with {STATIC:?} are reserved for static manifest-based configurations and \
             cannot be managed via the API"
        ));
    }
}
