//! LimitRanges.
//!
//! In: a LimitRange. Out: defaults, causes. Never: limits anything; that is admission.
//!
//! Source: kubernetes v1.36.3 `apis/core/{v1/defaults.go,validation}`, `registry/core/limitrange`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::quantity::{self, ONE};
use forebay_apimachinery::selector::label_key_faults;
use serde_json::Value;

use super::pod::defaults::round_up;
use super::pod::resources::{Of, container_resource, may_overcommit, resource_name};
use crate::field::{Causes, Path};
use crate::meta::validate_built_in_create;
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{Members, child_made, child_mut, child_or_empty, objects, objects_mut, set, text};

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(range: &mut Members) {
    let Some(spec) = child_mut(range, "spec") else { return };
    for limit in objects_mut(spec, "limits") {
        if text(limit, "type") == "Container" {
            fill(limit, "default", "max");
            fill(limit, "defaultRequest", "default");
            fill(limit, "defaultRequest", "min");
        }
        for name in LISTS {
            if let Some(list) = child_mut(limit, name) {
                round_up(list);
            }
        }
    }
}

/// Takes into the list `to` what only `from` has.
fn fill(limit: &mut Members, to: &str, from: &str) {
    let known = child_or_empty(limit, from).clone();
    if known.is_empty() {
        return;
    }
    let list = child_made(limit, to);
    for (resource, quantity) in known {
        list.entry(resource).or_insert(quantity);
    }
}

/// A LimitRange without a name is given one.
pub fn prepare_create(range: &mut Members, _: &Context<'_>) {
    let meta = child_made(range, "metadata");
    if text(meta, "name").is_empty() {
        let uid = text(meta, "uid").to_string();
        set(meta, "name", Some(uid.into()));
    }
}

pub fn validate_update(new: &Members, _: &Update<'_>, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate_create(new, causes);
}

pub fn validate_create(range: &Members, causes: &mut Causes) {
    let mut kinds = Seen::default();
    for (index, limit) in objects(child_or_empty(range, "spec"), "limits").enumerate() {
        let at = SPEC.child("limits");
        let at = at.index(index);
        let kind = text(limit, "type");
        kind_name(kind, &at.child("type"), causes);
        if kinds.again(kind) {
            causes.duplicate(&at.child("type"), kind);
        }
        names(limit, kind, &at, causes);
        amounts(limit, kind, &at, causes);
    }
}

fn kind_name(kind: &str, at: &Path<'_>, causes: &mut Causes) {
    let faults = label_key_faults(kind);
    if faults.is_empty()
        && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
        && !kind.contains('/')
    {
        causes.invalid(at, kind, "must be a standard limit type or fully qualified");
    }
    causes.faults(at, kind, faults);
}

fn names(limit: &Members, kind: &str, at: &Path<'_>, causes: &mut Causes) {
    let has = |list: &str| child_or_empty(limit, list).contains_key("storage");
    for name in LISTS {
        if name == "maxLimitRequestRatio" && kind == "PersistentVolumeClaim" && !has("min") && !has("max") {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            causes.required(&at.child("limits"), detail);
        }
        let at = at.child(name);
        let list = child_or_empty(limit, name);
        if kind == "Pod" && matches!(name, "default" | "defaultRequest") {
            if !list.is_empty() {
                causes.forbidden(&at, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for resource in list.keys() {
            match kind {
                "Pod" | "Container" => container_resource(resource, Of::Container, &at.key(resource), causes),
                _ => resource_name(resource, &at.key(resource), causes),
            }
        }
    }
}

/// What one limit says of one resource.
struct Amounts<'o> {
    min: Option<&'o Value>,
    max: Option<&'o Value>,
    default: Option<&'o Value>,
    request: Option<&'o Value>,
    ratio: Option<&'o Value>,
}

fn amounts(limit: &Members, kind: &str, at: &Path<'_>, causes: &mut Causes) {
    let mut resources: Vec<&String> =
        LISTS.iter().flat_map(|list| child_or_empty(limit, list).keys()).collect();
    resources.sort_unstable();
    resources.dedup();
    for resource in resources {
        let of = |list: &str| child_or_empty(limit, list).get(resource);
        let of_container = |list: &str| of(list).filter(|_| kind != "Pod");
        let amounts = Amounts {
            min: of("min"),
            max: of("max"),
            default: of_container("default"),
            request: of_container("defaultRequest"),
            ratio: of("maxLimitRequestRatio"),
        };
        in_order(&amounts, resource, at, causes);
        ratio(&amounts, resource, at, causes);
        if let (Some(default), Some(request)) = (amounts.default, amounts.request)
            && !may_overcommit(resource)
            && quantity::of(default) != quantity::of(request)
        {
            let detail = format!(
                "default value {} must equal to defaultRequest value {} in {resource}",
                shown(default),
                shown(request)
            );
            causes.invalid(&at.child("defaultRequest").key(resource), request, &detail);
        }
    }
}

fn shown(value: &Value) -> &str {
    value.as_str().unwrap_or("0")
}

/// From the least to the most: min, request, default, max.
fn in_order(amounts: &Amounts<'_>, resource: &str, at: &Path<'_>, causes: &mut Causes) {
    let Amounts { min, max, default, request, .. } = *amounts;
    // Field, the value that is refused, and two with what they are called: the first must not be above the
    // second.
    let rows = [
        ("min", min, (min, "min value"), (max, "max value")),
        ("defaultRequest", request, (min, "min value"), (request, "default request value")),
        ("defaultRequest", request, (request, "default request value"), (max, "max value")),
        ("defaultRequest", request, (request, "default request value"), (default, "default limit value")),
        ("default", min, (min, "min value"), (default, "default value")),
        ("default", max, (default, "default value"), (max, "max value")),
    ];
    for (field, bad, (less, less_name), (more, more_name)) in rows {
        if let (Some(bad), Some(less), Some(more)) = (bad, less, more)
            && quantity::of(less) > quantity::of(more)
        {
            let detail = format!("{less_name} {} is greater than {more_name} {}", shown(less), shown(more));
            causes.invalid(&at.child(field).key(resource), bad, &detail);
        }
    }
}

/// What a limit may be of a request, at most.
fn ratio(amounts: &Amounts<'_>, resource: &str, at: &Path<'_>, causes: &mut Causes) {
    let Some(ratio) = amounts.ratio else { return };
    let at = at.child("maxLimitRequestRatio");
    if quantity::of(ratio) < ONE {
        causes.invalid(&at.key(resource), ratio, &format!("ratio {} is less than 1", shown(ratio)));
    }
    let (Some(min), Some(max)) = (amounts.min, amounts.max) else { return };
    // The wire tells six decimals of the quotient, and no more is compared either.
    let most = quantity::of(max) as f64 / quantity::of(min) as f64;
    if quantity::of(ratio) as f64 / ONE as f64 > most {
        let detail = format!("ratio {} is greater than max/min = {most:.6}", shown(ratio));
        causes.invalid(&at.key(resource), ratio, &detail);
    }
}
