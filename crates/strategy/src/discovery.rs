//! The kinds of `discovery.k8s.io`.
//!
//! In: an EndpointSlice. Out: defaults, its generation, causes. Never: the Service it belongs to.
//!
//! Source: kubernetes v1.36.3 `registry/discovery/endpointslice`, `apis/discovery/{v1,validation}`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::to_go_text;

use super::address::{endpoint_ip, ip_warning, legacy_ip, strict_ip};
use super::core::PROTOCOLS;
use super::field::{BadValue, Causes, Path};
use super::format;
use super::lifecycle::{bump_generation, first_generation, same_but_meta};
use super::meta::{IMMUTABLE, label_key, label_value, labels, validate_built_in_create};
use super::names::NameRule;
use super::rule::{Context, NONE, Rules, Update};
use super::value::{
    Members, child, child_or_empty, default, list, objects, objects_mut, same_member, text, text_opt, texts,
};

const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const ENDPOINTS_MAX: usize = 1000;
const TOPOLOGY_MAX: usize = 16;
const HINTS_MAX: usize = 8;

pub const KINDS: &[Rules] = &[Rules {
    kind: "EndpointSlice",
    name: Some(NameRule::Subdomain),
    defaults,
    prepare_create: |slice, context| {
        first_generation(slice, context);
        drop_topology(slice);
    },
    prepare_update,
    validate_create,
    validate_update,
    warnings,
    ..NONE
}];

/// Of the addresses, unless a controller wrote them, which mends what it is given.
fn warnings(slice: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    const CONTROLLERS: [&str; 2] =
        ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if update.is_none() && text(slice, "addressType") == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_string());
    }
    let labels = child_or_empty(child_or_empty(slice, "metadata"), "labels");
    if CONTROLLERS.contains(&text(labels, "endpointslice.kubernetes.io/managed-by")) {
        return;
    }
    let at = Path::root("endpoints");
    for (index, endpoint) in objects(slice, "endpoints").enumerate() {
        let at = at.index(index);
        for (place, address) in texts(endpoint, "addresses").enumerate() {
            out.extend(ip_warning(address, &at.child("addresses").index(place)));
        }
    }
}

fn defaults(slice: &mut Members) {
    for port in objects_mut(slice, "ports") {
        default(port, "name", "");
        default(port, "protocol", "TCP");
    }
}

fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    let labels = |object| child_or_empty(child_or_empty(object, "metadata"), "labels");
    if !same_but_meta(new, old) || labels(new) != labels(old) {
        bump_generation(new, old);
    }
    if !same_member(new, old, "endpoints") {
        drop_topology(new);
    }
}

/// What the beta version had, and this one only keeps.
fn drop_topology(slice: &mut Members) {
    for endpoint in objects_mut(slice, "endpoints") {
        endpoint.remove("deprecatedTopology");
    }
}

fn validate_create(slice: &Members, causes: &mut Causes) {
    validate(slice, true, causes);
}

fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate(new, !same_member(new, update.old, "endpoints"), causes);
    if !same_member(new, update.old, "addressType") {
        causes.invalid(&Path::root("addressType"), text(new, "addressType"), IMMUTABLE);
    }
}

fn validate(slice: &Members, with_endpoints: bool, causes: &mut Causes) {
    const TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
    let address_type = text(slice, "addressType");
    match address_type {
        "" => causes.required(&Path::root("addressType"), ""),
        known if TYPES.contains(&known) => {}
        other => causes.not_supported(&Path::root("addressType"), other, &TYPES),
    }
    ports(slice, causes);
    if !with_endpoints {
        return;
    }
    let at = Path::root("endpoints");
    let count = list(slice, "endpoints").len();
    if count > ENDPOINTS_MAX {
        return causes.too_many(&at, count, ENDPOINTS_MAX);
    }
    for (index, of) in objects(slice, "endpoints").enumerate() {
        endpoint(of, address_type, &at.index(index), causes);
    }
}

fn ports(slice: &Members, causes: &mut Causes) {
    let at = Path::root("ports");
    let count = list(slice, "ports").len();
    if count > PORTS_MAX {
        return causes.too_many(&at, count, PORTS_MAX);
    }
    let mut names = Seen::default();
    for (index, port) in objects(slice, "ports").enumerate() {
        let at = at.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            causes.faults(&at.child("name"), name, format::dns1123_label(name));
        }
        if names.again(name) {
            causes.duplicate(&at.child("name"), BadValue::shown(to_go_text(&name.into())));
        }
        let protocol = text(port, "protocol");
        if !PROTOCOLS.contains(&protocol) {
            causes.not_supported(&at.child("protocol"), protocol, &PROTOCOLS);
        }
        if let Some(protocol) = text_opt(port, "appProtocol") {
            label_key(protocol, &at.child("appProtocol"), causes);
        }
    }
}

fn endpoint(endpoint: &Members, address_type: &str, at: &Path<'_>, causes: &mut Causes) {
    addresses(endpoint, address_type, &at.child("addresses"), causes);
    if let Some(node) = text_opt(endpoint, "nodeName") {
        causes.faults(&at.child("nodeName"), node, format::dns1123_subdomain(node));
    }
    let topology = child_or_empty(endpoint, "deprecatedTopology");
    if topology.len() > TOPOLOGY_MAX {
        causes.too_many(&at.child("deprecatedTopology"), topology.len(), TOPOLOGY_MAX);
    }
    labels(topology, &at.child("deprecatedTopology"), causes);
    if let Some(hostname) = text_opt(endpoint, "hostname") {
        causes.faults(&at.child("hostname"), hostname, format::dns1123_label(hostname));
    }
    if let Some(of) = child(endpoint, "hints") {
        hints(of, &at.child("hints"), causes);
    }
}

fn addresses(endpoint: &Members, address_type: &str, at: &Path<'_>, causes: &mut Causes) {
    let count = list(endpoint, "addresses").len();
    if count == 0 {
        causes.required(at, "must contain at least 1 address");
    } else if count > ADDRESSES_MAX {
        causes.too_many(at, count, ADDRESSES_MAX);
    }
    for (index, address) in texts(endpoint, "addresses").enumerate() {
        let item = at.index(index);
        let (parsed, wants_v6) = match address_type {
            "IPv4" => (legacy_ip(address, &item, causes), false),
            "IPv6" => (strict_ip(address, &item, causes), true),
            "FQDN" => {
                domain_name(address, &item, causes);
                continue;
            }
            _ => continue,
        };
        let Some(parsed) = parsed else { continue };
        if parsed.is_ipv6() != wants_v6 {
            causes.invalid(at, address, &format!("must be an {address_type} address"));
        }
        endpoint_ip(address, &item, causes);
    }
}

/// A domain name of at least two labels.
fn domain_name(name: &str, at: &Path<'_>, causes: &mut Causes) {
    if name.is_empty() {
        return causes.required(at, "");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let faults = format::dns1123_subdomain(name);
    if !faults.is_empty() {
        return causes.invalid(at, name, &faults.join(","));
    }
    if !name.contains('.') {
        return causes.invalid(at, name, "should be a domain with at least two segments separated by dots");
    }
    for label in name.split('.') {
        let faults = format::dns1123_label(label);
        if !faults.is_empty() {
            return causes.invalid(at, label, &faults.join(","));
        }
    }
}

fn hints(hints: &Members, at: &Path<'_>, causes: &mut Causes) {
    for list_name in ["forZones", "forNodes"] {
        let at = at.child(list_name);
        let count = list(hints, list_name).len();
        if count > HINTS_MAX {
            return causes.too_many(&at, count, HINTS_MAX);
        }
        let mut known = Seen::default();
        for (index, hint) in objects(hints, list_name).enumerate() {
            let at = at.index(index);
            let name = text(hint, "name");
            if known.again(name) {
                causes.duplicate(&at.child("name"), name);
            }
            if list_name == "forZones" {
                if !name.is_empty() {
                    label_value(name, &at.child("name"), causes);
                }
            } else {
                causes.faults(&at.child("name"), name, format::dns1123_subdomain(name));
            }
        }
    }
}
