//! ServiceCIDRs.
//!
//! In: a ServiceCIDR. Out: what it is stored as, causes. Never: which addresses of it are taken.

use serde_json::Value;

use crate::address::{Range, strict_cidr};
use crate::field::{BadValue, Causes, Path};
use crate::internal;
use crate::lifecycle::{reset_meta, status_apart_without_generation};
use crate::meta::{IMMUTABLE, validate_built_in_update};
use crate::rule::{Context, Update};
use crate::value::{Members, child_or_empty, list, texts};

const RANGES_MAX: usize = 2;
const SPEC: Path<'static> = Path::root("spec");

pub fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart_without_generation(new, update, context);
    if update.is_status() {
        reset_meta(new, update.old);
    }
}

pub fn validate_create(cidr: &Members, causes: &mut Causes) {
    validate(child_or_empty(cidr, "spec"), causes);
}

fn validate(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("cidrs");
    let ranges: Vec<&str> = texts(spec, "cidrs").collect();
    if ranges.is_empty() {
        return causes.required(&at, "at least one CIDR required");
    }
    if ranges.len() > RANGES_MAX {
        let bad = internal::shown("ServiceCIDRSpec", spec);
        return causes.invalid(&at, bad, "may only hold up to 2 values");
    }
    for (index, range) in ranges.iter().enumerate() {
        strict_cidr(range, &at.index(index), causes);
    }
    let families: Vec<bool> =
        ranges.iter().filter_map(|range| Some(Range::sloppy(range)?.address.is_ipv6())).collect();
    if let [first, second] = families[..]
        && first == second
    {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        causes.invalid(&at, spec.get("cidrs"), detail);
    }
}

/// A second range of the other family may be added; nothing else changes.
pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    if update.is_status() {
        return;
    }
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(update.old, "spec"));
    let (ranges, old) = (list(spec, "cidrs"), list(old_spec, "cidrs"));
    let at = SPEC.child("cidrs");
    let added = old.len() == 1 && ranges.len() == 2;
    if !added && ranges.len() != old.len() {
        let bad = spec.get("cidrs").filter(|_| !ranges.is_empty());
        let bad = bad.map_or(BadValue::shown("[]"), BadValue::Json);
        return causes.invalid(&at, bad, IMMUTABLE);
    }
    for (index, (range, _)) in ranges.iter().zip(old).enumerate().filter(|(_, (range, old))| range != old) {
        causes.invalid(&at.index(index), Value::as_str(range).unwrap_or(""), IMMUTABLE);
    }
    if added {
        validate(spec, causes);
    }
}
