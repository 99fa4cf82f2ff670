//! Endpoints.
//!
//! In: an Endpoints. Out: defaults, causes. Never: its EndpointSlices.
//!
//! Source: kubernetes v1.36.3 `apis/core/{v1,validation}`.

use crate::address::{endpoint_ip, legacy_ip};
use crate::field::{Causes, Path};
use crate::format;
use crate::meta::{label_key, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::value::{
    Members, child_or_empty, default_text, int, list, objects, objects_mut, same_member, text, text_opt,
};

/// Protocols of ports, as they are listed.
pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub fn defaults(endpoints: &mut Members) {
    for subset in objects_mut(endpoints, "subsets") {
        for port in objects_mut(subset, "ports") {
            default_text(port, "protocol", "TCP");
        }
    }
}

pub fn validate_create(endpoints: &Members, causes: &mut Causes) {
    let at = Path::root("subsets");
    for (index, of) in objects(endpoints, "subsets").enumerate() {
        subset(of, &at.index(index), causes);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    // What an older server let through may stay.
    if !same_member(new, update.old, "subsets") {
        validate_create(new, causes);
    }
}

fn subset(subset: &Members, at: &Path<'_>, causes: &mut Causes) {
    if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
        causes.required(at, "must specify `addresses` or `notReadyAddresses`");
    }
    for name in ["addresses", "notReadyAddresses"] {
        for (index, of) in objects(subset, name).enumerate() {
            address(of, &at.child(name).index(index), causes);
        }
    }
    let several = list(subset, "ports").len() > 1;
    for (index, of) in objects(subset, "ports").enumerate() {
        port(of, several, &at.child("ports").index(index), causes);
    }
}

fn address(address: &Members, at: &Path<'_>, causes: &mut Causes) {
    let ip = text(address, "ip");
    legacy_ip(ip, &at.child("ip"), causes);
    let hostname = text(address, "hostname");
    if !hostname.is_empty() {
        causes.faults(&at.child("hostname"), hostname, format::dns1123_label(hostname));
    }
    if let Some(node) = text_opt(address, "nodeName") {
        causes.faults(&at.child("nodeName"), node, format::dns1123_subdomain(node));
    }
    endpoint_ip(ip, &at.child("ip"), causes);
}

fn port(port: &Members, name_required: bool, at: &Path<'_>, causes: &mut Causes) {
    match text(port, "name") {
        "" if name_required => causes.required(&at.child("name"), ""),
        "" => {}
        name => causes.faults(&at.child("name"), name, format::dns1123_label(name)),
    }
    port_number(port, "port", at, causes);
    protocol(port, at, causes);
    if let Some(protocol) = text_opt(port, "appProtocol") {
        label_key(protocol, &at.child("appProtocol"), causes);
    }
}

/// The number of a port, which must be one.
pub fn port_number(object: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    let number = int(object, name).unwrap_or(0);
    if let Some(fault) = format::port_number(number) {
        causes.invalid(&at.child(name), number, fault);
    }
}

/// The protocol of a port.
pub fn protocol(port: &Members, at: &Path<'_>, causes: &mut Causes) {
    match text(port, "protocol") {
        "" => causes.required(&at.child("protocol"), ""),
        known if PROTOCOLS.contains(&known) => {}
        other => causes.not_supported(&at.child("protocol"), other, &PROTOCOLS),
    }
}
