//! ResourceQuotas.
//!
//! In: a ResourceQuota. Out: defaults, causes. Never: counts anything; that is admission and a controller.
//!
//! Source: kubernetes v1.36.3 `apis/core/{helper,v1/defaults.go,validation}`.

use forebay_apimachinery::steps;

use super::pod::defaults::round_up;
use super::pod::resources::{is_quota_resource, quantity_value, resource_name};
use crate::field::{Causes, Path};
use crate::meta::{IMMUTABLE, validate_built_in_update};
use crate::rule::Update;
use crate::value::{Members, child, child_mut, child_or_empty, list, objects, text, texts};

const SPEC: Path<'static> = Path::root("spec");
const STATUS: Path<'static> = Path::root("status");

pub fn defaults(quota: &mut Members) {
    for (part, lists) in [("spec", &["hard"][..]), ("status", &["hard", "used"])] {
        let Some(part) = child_mut(quota, part) else { continue };
        for name in lists {
            if let Some(list) = child_mut(part, name) {
                round_up(list);
            }
        }
    }
}

pub fn validate_create(quota: &Members, causes: &mut Causes) {
    let spec = child_or_empty(quota, "spec");
    amounts(spec, "hard", &SPEC, causes);
    let wanted: Vec<&str> = texts(spec, "scopes").collect();
    let at = SPEC.child("scopes");
    let mut unfit = Unfit::of(spec);
    for scope in &wanted {
        if !SCOPES.contains(scope) {
            causes.invalid(&at, spec.get("scopes"), "unsupported scope");
        }
        for _ in 0..unfit.count(scope) {
            if causes.is_full() {
                break;
            }
            causes.invalid(&at, spec.get("scopes"), "unsupported scope applied to resource");
        }
    }
    conflicts(&wanted, spec, &at, causes);
    if let Some(selector) = child(spec, "scopeSelector") {
        scope_selector(spec, selector, causes);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    if update.is_status() {
        let status = child_or_empty(new, "status");
        amounts(status, "hard", &STATUS, causes);
        return amounts(status, "used", &STATUS, causes);
    }
    validate_create(new, causes);
    let scopes = |quota| {
        let mut scopes: Vec<&str> = texts(child_or_empty(quota, "spec"), "scopes").collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    };
    if scopes(new) != scopes(update.old) {
        let bad = child_or_empty(new, "spec").get("scopes");
        causes.invalid(&SPEC.child("scopes"), bad, IMMUTABLE);
    }
}

fn amounts(part: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child(name);
    for (resource, amount) in child_or_empty(part, name) {
        let at = at.key(resource);
        resource_name(resource, &at, causes);
        if !resource.contains('/') && !is_quota_resource(resource) {
            causes.invalid(&at, resource.as_str(), "must be a standard resource for quota");
        }
        quantity_value(resource, amount, &at, causes);
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const COMPUTE: [&str; 6] =
    ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

/// How many resources of a quota cannot be counted in a scope. Each scope is looked at once, however often it
/// is named.
struct Unfit<'o> {
    hard: &'o Members,
    counts: [Option<usize>; SCOPES.len()],
}

impl<'o> Unfit<'o> {
    fn of(spec: &'o Members) -> Unfit<'o> {
        Unfit { hard: child_or_empty(spec, "hard"), counts: [None; SCOPES.len()] }
    }

    fn count(&mut self, scope: &str) -> usize {
        // Everything fits a scope that is none.
        let Some(known) = SCOPES.iter().position(|known| *known == scope) else { return 0 };
        let fits = |resource: &str| match scope {
            "BestEffort" => resource == "pods",
            "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
            _ => resource == "pods" || COMPUTE.contains(&resource),
        };
        let unfit = |resource: &&String| {
            steps::add(1);
            is_quota_resource(resource) && !fits(resource)
        };
        *self.counts[known].get_or_insert_with(|| self.hard.keys().filter(unfit).count())
    }
}

fn conflicts(wanted: &[&str], spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| wanted.contains(scope)) {
            causes.invalid(at, spec.get("scopes"), "conflicting scopes");
        }
    }
}

fn scope_selector(spec: &Members, selector: &Members, causes: &mut Causes) {
    const EXISTS_ONLY: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                               ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                               ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let at = SPEC.child("scopeSelector");
    let at = at.child("matchExpressions");
    let mut wanted: Vec<&str> = Vec::new();
    let mut unfit = Unfit::of(spec);
    for expression in objects(selector, "matchExpressions") {
        let [scope, operator] = ["scopeName", "operator"].map(|name| text(expression, name));
        if !SCOPES.contains(&scope) {
            causes.invalid(&at.child("scopeName"), scope, "unsupported scope");
        }
        for _ in 0..unfit.count(scope) {
            if causes.is_full() {
                break;
            }
            let bad = crate::internal::shown("ScopeSelector", selector);
            causes.invalid(&at, bad, "unsupported scope applied to resource");
        }
        let of_pods = SCOPES.contains(&scope) && !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if of_pods && operator != "Exists" {
            causes.invalid(&at.child("operator"), operator, EXISTS_ONLY);
        }
        let empty = list(expression, "values").is_empty();
        match operator {
            "In" | "NotIn" if empty => {
                let detail =
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                causes.required(&at.child("values"), detail);
            }
            "Exists" | "DoesNotExist" if !empty => {
                let detail =
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                causes.invalid(&at.child("values"), expression.get("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => causes.invalid(&at.child("operator"), other, "not a valid selector operator"),
        }
        wanted.push(scope);
    }
    conflicts(&wanted, spec, &at, causes);
}
