//! MutatingWebhookConfigurations and ValidatingWebhookConfigurations.
//!
//! In: a configuration. Out: defaults, causes. Never: calls anybody.

use forebay_apimachinery::Seen;
use forebay_crd::check::webhook_client;
use forebay_crd::field::causes as causes_of_schema;
use serde_json::Value;

use super::expressions::Expressions;
use super::matching::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, conditions, default_matching, default_scopes,
    one_of, rule,
};
use crate::field::{Causes, Path};
use crate::format;
use crate::selector;
use crate::value::{
    Members, child, child_mut, default, int, list, objects, objects_mut, same_member, text, text_opt, texts,
};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

/// What a webhook does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Mutating,
    Validating,
}

pub fn defaults(configuration: &mut Members, sort: Sort) {
    for hook in objects_mut(configuration, "webhooks") {
        default(hook, "failurePolicy", "Fail");
        default_matching(hook);
        default(hook, "timeoutSeconds", 10);
        if sort == Sort::Mutating {
            default(hook, "reinvocationPolicy", "Never");
        }
        default_scopes(hook, "rules");
        if let Some(service) = child_mut(hook, "clientConfig").and_then(|client| child_mut(client, "service"))
        {
            default(service, "port", 443);
        }
    }
}

/// What is let through because the stored object has it already.
struct Leniency {
    side_effects: bool,
    review_versions: bool,
    repeated_names: bool,
    label_values: bool,
    conditions: bool,
}

impl Leniency {
    fn of(new: &Members, old: Option<&Members>) -> Leniency {
        let old_hooks = || old.into_iter().flat_map(|old| objects(old, "webhooks"));
        let mut names = Seen::default();
        Leniency {
            side_effects: old_hooks().any(|hook| !NO_SIDE_EFFECTS.contains(&text(hook, "sideEffects"))),
            review_versions: old_hooks()
                .any(|hook| !list(hook, "admissionReviewVersions").is_empty() && !names_known_version(hook)),
            repeated_names: old_hooks().any(|hook| names.again(text(hook, "name"))),
            label_values: old_hooks().any(|hook| !selector_causes(hook).is_empty()),
            conditions: old.is_some_and(|old| {
                list(old, "webhooks").len() == list(new, "webhooks").len()
                    && objects(old, "webhooks")
                        .zip(objects(new, "webhooks"))
                        .all(|(old, new)| same_member(old, new, "matchConditions"))
            }),
        }
    }
}

/// What is wrong with the selectors of a webhook.
fn selector_causes(hook: &Members) -> Causes {
    let mut causes = Causes::default();
    for name in ["namespaceSelector", "objectSelector"] {
        child(hook, name).into_iter().for_each(|of| selector::validate(of, &Path::root(name), &mut causes));
    }
    causes
}

fn names_known_version(hook: &Members) -> bool {
    texts(hook, "admissionReviewVersions").any(|version| REVIEW_VERSIONS.contains(&version))
}

pub fn validate(configuration: &Members, old: Option<&Members>, sort: Sort, causes: &mut Causes) {
    let leniency = Leniency::of(configuration, old);
    let mut expressions = Expressions::of_webhooks(old);
    let at = Path::root("webhooks");
    let mut names = Seen::default();
    for (index, hook) in objects(configuration, "webhooks").enumerate() {
        let at = at.index(index);
        webhook(hook, &leniency, sort, &at, &mut expressions, causes);
        review_versions(hook, &leniency, &at.child("admissionReviewVersions"), causes);
        let name = text(hook, "name");
        if names.again(name) && !name.is_empty() && !leniency.repeated_names {
            causes.duplicate(&at.child("name"), name);
        }
    }
}

fn webhook(
    hook: &Members,
    leniency: &Leniency,
    sort: Sort,
    at: &Path<'_>,
    expressions: &mut Expressions<'_>,
    causes: &mut Causes,
) {
    qualified_name(text(hook, "name"), &at.child("name"), causes);
    for (index, of) in objects(hook, "rules").enumerate() {
        rule(of, &at.child("rules").index(index), causes);
    }
    one_of(hook, "failurePolicy", &FAILURE_POLICIES, at, causes);
    one_of(hook, "matchPolicy", &MATCH_POLICIES, at, causes);
    let allowed = if leniency.side_effects { &SIDE_EFFECTS[..] } else { &NO_SIDE_EFFECTS[..] };
    match text_opt(hook, "sideEffects") {
        None => {
            let detail = format!("must specify one of {}", allowed.join(", "));
            causes.required(&at.child("sideEffects"), &detail);
        }
        Some(_) => one_of(hook, "sideEffects", allowed, at, causes),
    }
    if let Some(seconds) = int(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        causes.invalid(&at.child("timeoutSeconds"), seconds, detail);
    }
    for name in ["namespaceSelector", "objectSelector"] {
        if let Some(of) = child(hook, name) {
            match leniency.label_values {
                true => selector::validate_but_values(of, &at.child(name), causes),
                false => selector::validate(of, &at.child(name), causes),
            }
        }
    }
    if sort == Sort::Mutating {
        one_of(hook, "reinvocationPolicy", &REINVOCATION_POLICIES, at, causes);
    }
    let client = hook.get("clientConfig").unwrap_or(&Value::Null);
    let client_at = at.child("clientConfig").to_string();
    causes.append(causes_of_schema(&webhook_client(client, &client_at)));
    if !leniency.conditions {
        conditions(hook, at, expressions, causes);
    }
}

/// A subdomain of at least three segments.
fn qualified_name(name: &str, at: &Path<'_>, causes: &mut Causes) {
    let faults = format::dns1123_subdomain(name);
    match name {
        "" => causes.required(at, ""),
        _ if !faults.is_empty() => causes.invalid(at, name, &faults.join(",")),
        _ if name.split('.').count() < 3 => {
            let detail = "should be a domain with at least three segments separated by dots";
            causes.invalid(at, name, detail);
        }
        _ => {}
    }
}

fn review_versions(hook: &Members, leniency: &Leniency, at: &Path<'_>, causes: &mut Causes) {
    const NAME: &str = "admissionReviewVersions";
    let known = REVIEW_VERSIONS.join(", ");
    if list(hook, NAME).is_empty() {
        return causes.required(at, &format!("must specify one of {known}"));
    }
    let mut seen = Seen::default();
    for (index, version) in texts(hook, NAME).enumerate() {
        if seen.again(version) {
            causes.invalid(&at.index(index), version, "duplicate version");
            continue;
        }
        causes.faults(&at.index(index), version, format::dns1035_label(version));
    }
    if !leniency.review_versions && !names_known_version(hook) {
        causes.invalid(at, hook.get(NAME), &format!("must include at least one of {known}"));
    }
}
