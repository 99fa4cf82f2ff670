//! ResourceClaims: what they were given, and who uses it.
//!
//! In: a claim with its new status, and the stored one. Out: what it is stored as, causes. Never: allocates.

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::to_go_text;
use serde_json::Value;

use super::claim::{Requested, request_ref, request_refs};
use super::config::{CONFIG_MAX, Origin, opaque, raw};
use super::device::binding_conditions;
use super::lists::{bounded, no_duplicates};
use super::names;
use crate::address::Range;
use crate::conditions;
use crate::core::pod::csi_driver_name;
use crate::core::pod::node_selector;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::lifecycle::{reset_meta, status_apart_without_generation};
use crate::meta::{IMMUTABLE, validate_built_in_update};
use crate::rule::{Context, Update};
use crate::value::{
    Members, child, child_made, child_or_empty, list, objects, same_member, text, text_opt, texts,
};

const STATUS: Path<'static> = Path::root("status");
const RESERVED_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
const CONDITIONS_MAX: usize = 8;
const DATA_BYTES_MAX: usize = 10 << 10;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_BYTES_MAX: usize = 128;
const IPS_MAX: usize = 16;
const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];

pub fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart_without_generation(new, update, context);
    if update.is_status() {
        reset_meta(new, update.old);
        forget_deallocated(new, update.old);
    }
}

/// What a driver said of a device that the claim no longer has is forgotten.
fn forget_deallocated(new: &mut Members, old: &Members) {
    let now = allocated(child_or_empty(new, "status"));
    let before = objects(child_or_empty(allocation_of(child_or_empty(old, "status")), "devices"), "results");
    let gone: Seen<String> = before.map(device_id).filter(|id| !now.has(id)).collect();
    let status = child_made(new, "status");
    if let Some(Value::Array(devices)) = status.get_mut("devices") {
        devices.retain(|device| device.as_object().is_none_or(|device| !gone.has(&device_id(device))));
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}

/// What a device is known by, as messages have it.
fn device_id(device: &Members) -> String {
    let shown = |name| to_go_text(&Value::from(text(device, name)));
    format!(
        "{{\"Driver\":{},\"Pool\":{},\"Device\":{},\"ShareID\":{}}}",
        shown("driver"),
        shown("pool"),
        shown("device"),
        shown("shareID")
    )
}

fn allocation_of(status: &Members) -> &Members {
    child_or_empty(status, "allocation")
}

fn allocated(status: &Members) -> Seen<String> {
    objects(child_or_empty(allocation_of(status), "devices"), "results").map(device_id).collect()
}

pub fn validate_update(new: &Members, old: &Members, causes: &mut Causes) {
    validate_built_in_update(new, old, causes);
    let claim = child_or_empty(child_or_empty(new, "spec"), "devices");
    let (status, old_status) = (child_or_empty(new, "status"), child_or_empty(old, "status"));
    consumers(status, causes);
    devices(status, causes);
    let is_going = child_or_empty(new, "metadata").contains_key("deletionTimestamp");
    reserved(status, old_status, is_going, causes);
    let at = STATUS.child("allocation");
    match (child(status, "allocation"), child(old_status, "allocation")) {
        (Some(allocation), Some(_)) => {
            if !same_member(status, old_status, "allocation") {
                causes.invalid(&at, internal::shown("resource.AllocationResult", allocation), IMMUTABLE);
            }
        }
        (Some(of), None) => allocation(of, &Requested::of(claim), &at, causes),
        (None, _) => {}
    }
}

fn consumers(status: &Members, causes: &mut Causes) {
    let items = bounded(status, "reservedFor", RESERVED_MAX, &STATUS, causes);
    let at = STATUS.child("reservedFor");
    for (index, consumer) in items.iter().filter_map(Value::as_object).enumerate() {
        let at = at.index(index);
        for name in ["resource", "name", "uid"] {
            if text(consumer, name).is_empty() {
                causes.required(&at.child(name), "");
            }
        }
    }
    no_duplicates(items.iter().filter_map(Value::as_object).map(|of| text(of, "uid")), &at, causes);
}

/// Who may use a claim: nobody while nothing is allocated, and nobody new while it goes away.
fn reserved(status: &Members, old: &Members, is_going: bool, causes: &mut Causes) {
    let at = STATUS.child("reservedFor");
    if list(status, "reservedFor").is_empty() {
        return;
    }
    if child(status, "allocation").is_none() {
        causes.forbidden(&at, "may not be specified when `allocated` is not set");
    } else if is_going && any_new(list(status, "reservedFor"), list(old, "reservedFor")) {
        let detail =
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        causes.forbidden(&at, detail);
    }
}

fn any_new(now: &[Value], before: &[Value]) -> bool {
    let known: Seen<&Value> = before.iter().collect();
    !now.iter().all(|one| known.has(one))
}

fn devices(status: &Members, causes: &mut Causes) {
    let (known, at) = (allocated(status), STATUS.child("devices"));
    let mut seen: Seen<String> = Seen::default();
    for (index, of) in objects(status, "devices").enumerate() {
        device(of, &known, &at.index(index), causes);
    }
    for (index, of) in objects(status, "devices").enumerate() {
        let id = device_id(of);
        if seen.has(&id) {
            causes.duplicate(&at.index(index), BadValue::shown(id));
        } else {
            seen.again(id);
        }
    }
}

fn device(device: &Members, allocated: &Seen<String>, at: &Path<'_>, causes: &mut Causes) {
    csi_driver_name(text(device, "driver"), &at.child("driver"), causes);
    names::pool(text(device, "pool"), &at.child("pool"), causes);
    let name = text(device, "device");
    causes.faults(&at.child("device"), name, format::dns1123_label(name));
    if let Some(share) = text_opt(device, "shareID") {
        names::uuid(share, &at.child("shareID"), causes);
    }
    let id = device_id(device);
    if !allocated.has(&id) {
        causes.invalid(at, BadValue::shown(id), "must be an allocated device in the claim");
    }
    let count = list(device, "conditions").len();
    if count > CONDITIONS_MAX {
        causes.too_many(&at.child("conditions"), count, CONDITIONS_MAX);
    }
    conditions::validate(device, &at.child("conditions"), causes);
    if let Some(data) = device.get("data") {
        raw(Some(data), Origin::New, DATA_BYTES_MAX, &at.child("data"), causes);
    }
    if let Some(network) = child(device, "networkData") {
        network_data(network, &at.child("networkData"), causes);
    }
}

fn network_data(network: &Members, at: &Path<'_>, causes: &mut Causes) {
    for (name, max) in [("interfaceName", INTERFACE_BYTES_MAX), ("hardwareAddress", HARDWARE_BYTES_MAX)] {
        if text(network, name).len() > max {
            causes.too_long(&at.child(name), max);
        }
    }
    let items = bounded(network, "ips", IPS_MAX, at, causes);
    let at = at.child("ips");
    for (index, address) in items.iter().filter_map(Value::as_str).enumerate() {
        interface_address(address, &at.index(index), causes);
    }
    if !items.is_empty() {
        no_duplicates(texts(network, "ips"), &at, causes);
    }
}

/// `10.9.8.7/24`
fn interface_address(value: &str, at: &Path<'_>, causes: &mut Causes) {
    let Some(range) = Range::sloppy(value) else {
        let detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return causes.invalid(at, value, detail);
    };
    let mapped = match range.address {
        std::net::IpAddr::V6(v6) => v6.to_ipv4_mapped(),
        std::net::IpAddr::V4(_) => None,
    };
    let canonical = match mapped {
        Some(v4) => format!("{v4}/{}", range.bits.saturating_sub(96)),
        None => format!("{}/{}", range.address, range.bits),
    };
    if value != canonical {
        causes.invalid(at, value, &format!("must be in canonical form ({canonical:?})"));
    }
}

/// What was allocated for the first time.
fn allocation(allocation: &Members, requested: &Requested<'_>, at: &Path<'_>, causes: &mut Causes) {
    let (devices, devices_at) = (child_or_empty(allocation, "devices"), at.child("devices"));
    let results = bounded(devices, "results", RESULTS_MAX, &devices_at, causes);
    for (index, of) in results.iter().filter_map(Value::as_object).enumerate() {
        result(of, requested, &devices_at.child("results").index(index), causes);
    }
    // Those of the classes and those of the claim.
    let configs = bounded(devices, "config", 2 * CONFIG_MAX, &devices_at, causes);
    for (index, of) in configs.iter().filter_map(Value::as_object).enumerate() {
        let at = devices_at.child("config");
        let at = at.index(index);
        match text(of, "source") {
            "" => causes.required(&at.child("source"), ""),
            source if !SOURCES.contains(&source) => {
                causes.not_supported(&at.child("source"), source, &SOURCES);
            }
            _ => {}
        }
        request_refs(of, requested, &at, causes);
        opaque(of, Origin::New, &at, causes);
    }
    if let Some(nodes) = child(allocation, "nodeSelector") {
        node_selector(nodes, &at.child("nodeSelector"), causes);
    }
}

fn result(result: &Members, requested: &Requested<'_>, at: &Path<'_>, causes: &mut Causes) {
    request_ref(text(result, "request"), requested, &at.child("request"), causes);
    csi_driver_name(text(result, "driver"), &at.child("driver"), causes);
    names::pool(text(result, "pool"), &at.child("pool"), causes);
    let name = text(result, "device");
    causes.faults(&at.child("device"), name, format::dns1123_label(name));
    binding_conditions(result, at, causes);
    if let Some(share) = text_opt(result, "shareID") {
        names::uuid(share, &at.child("shareID"), causes);
    }
}
