//! LimitRanges and ResourceQuotas.
//!
//! In: a LimitRange or a ResourceQuota. Out: what its parts imply. Never: enforces them; that is admission.
//!
//! Source: kubernetes v1.36.3 `apis/core/v1/defaults.go`, `registry/core/limitrange`.

use super::pod::defaults::round_up;
use crate::strategy::Context;
use crate::strategy::value::{Members, child_made, child_mut, child_or_empty, objects_mut, set, text};

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

pub fn limit_range_defaults(range: &mut Members) {
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
pub fn name_limit_range(range: &mut Members, _: &Context<'_>) {
    let meta = child_made(range, "metadata");
    if text(meta, "name").is_empty() {
        let uid = text(meta, "uid").to_string();
        set(meta, "name", Some(uid.into()));
    }
}

pub fn quota_defaults(quota: &mut Members) {
    for (part, lists) in [("spec", &["hard"][..]), ("status", &["hard", "used"])] {
        let Some(part) = child_mut(quota, part) else { continue };
        for name in lists {
            if let Some(list) = child_mut(part, name) {
                round_up(list);
            }
        }
    }
}
