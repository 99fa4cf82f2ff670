//! Services: what they may be.
//!
//! In: a Service, and the one it takes the place of. Out: causes. Never: which addresses and ports are taken.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::to_go_text;
use serde_json::Value;

use super::endpoints::{port_number, protocol};
use super::service::{externally_accessible, needs_health_check};
use crate::address::{endpoint_ip, legacy_cidr, legacy_ip};
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::meta::{IMMUTABLE, label_key, labels, validate_built_in_update};
use crate::rule::Update;
use crate::value::{Members, child_or_empty, int, list, objects, same_member, text, text_opt, texts};

const SPEC: Path<'static> = Path::root("spec");
const AFFINITY_SECONDS_MAX: i64 = 86_400;
const RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    if update.is_status() {
        let status = child_or_empty(child_or_empty(new, "status"), "loadBalancer");
        return ingress(status, spec, causes);
    }
    unchanged_addresses(spec, old_spec, causes);
    let class = SPEC.child("loadBalancerClass");
    let balanced = |spec| text(spec, "type") == "LoadBalancer";
    if balanced(old_spec) && balanced(spec) && !same_member(spec, old_spec, "loadBalancerClass") {
        causes.invalid(&class, BadValue::encoded(spec.get("loadBalancerClass")), "may not change once set");
    }
    load_balancer_class(spec, causes);
    if needs_health_check(old_spec)
        && needs_health_check(spec)
        && !same_member(spec, old_spec, "healthCheckNodePort")
    {
        causes.forbidden(&SPEC.child("healthCheckNodePort"), IMMUTABLE);
    }
    validate(new, Some(old), causes);
}

fn is_headless(spec: &Members) -> bool {
    texts(spec, "clusterIPs").eq(["None"])
}

/// What holds for a new service and for a changed one.
pub fn validate(service: &Members, old: Option<&Members>, causes: &mut Causes) {
    let spec = child_or_empty(service, "spec");
    let kind = text(spec, "type");
    if list(spec, "ports").is_empty() && !is_headless(spec) && kind != "ExternalName" {
        causes.required(&SPEC.child("ports"), "");
    }
    type_rules(spec, causes);
    ports(spec, causes);
    labels(child_or_empty(spec, "selector"), &SPEC.child("selector"), causes);
    affinity(spec, causes);
    let old_spec = old.map(|old| child_or_empty(old, "spec"));
    if kind != "ExternalName" {
        addresses(spec, old_spec, causes);
    }
    external_addresses(spec, old_spec, causes);
    match kind {
        "" => causes.required(&SPEC.child("type"), ""),
        "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort" => {}
        other => {
            let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
            causes.not_supported(&SPEC.child("type"), other, &known);
        }
    }
    port_pairs(spec, causes);
    source_ranges(service, old, causes);
    let allocates = spec.contains_key("allocateLoadBalancerNodePorts");
    if allocates && kind != "LoadBalancer" {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        causes.forbidden(&SPEC.child("allocateLoadBalancerNodePorts"), detail);
    }
    if !allocates && kind == "LoadBalancer" {
        causes.required(&Path::root("allocateLoadBalancerNodePorts"), "");
    }
    load_balancer_class(spec, causes);
    traffic(spec, causes);
}

fn type_rules(spec: &Members, causes: &mut Causes) {
    let kind = text(spec, "type");
    if matches!(kind, "LoadBalancer" | "NodePort") && is_headless(spec) {
        let detail = format!("may not be set to 'None' for {kind} services");
        causes.invalid(&SPEC.child("clusterIPs").index(0), "None", &detail);
    }
    if kind != "ExternalName" {
        return;
    }
    for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.contains_key(name) {
            causes.forbidden(&SPEC.child(name), "may not be set for ExternalName services");
        }
    }
    let name = text(spec, "externalName");
    match name.strip_suffix('.').unwrap_or(name) {
        "" => causes.required(&SPEC.child("externalName"), ""),
        name => causes.faults(&SPEC.child("externalName"), name, format::dns1123_subdomain(name)),
    }
}

fn ports(spec: &Members, causes: &mut Causes) {
    let several = list(spec, "ports").len() > 1;
    let mut names = Seen::default();
    for (index, port) in objects(spec, "ports").enumerate() {
        let ports = SPEC.child("ports");
        let at = ports.index(index);
        match text(port, "name") {
            "" if several => causes.required(&at.child("name"), ""),
            "" => {}
            name => {
                causes.faults(&at.child("name"), name, format::dns1123_label(name));
                if names.again(name) {
                    causes.duplicate(&at.child("name"), name);
                }
            }
        }
        port_number(port, "port", &at, causes);
        protocol(port, &at, causes);
        port_or_name(port.get("targetPort"), &at.child("targetPort"), causes);
        if let Some(protocol) = text_opt(port, "appProtocol") {
            label_key(protocol, &at.child("appProtocol"), causes);
        }
    }
}

/// A port by its number or by its name.
pub fn port_or_name(port: Option<&Value>, at: &Path<'_>, causes: &mut Causes) {
    match port {
        Some(Value::String(name)) => causes.faults(at, name, format::port_name(name)),
        number => {
            let number = number.and_then(Value::as_i64).unwrap_or(0);
            if let Some(fault) = format::port_number(number) {
                causes.invalid(at, number, fault);
            }
        }
    }
}

fn affinity(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("sessionAffinityConfig");
    match text(spec, "sessionAffinity") {
        "" => causes.required(&SPEC.child("sessionAffinity"), ""),
        "None" if spec.contains_key("sessionAffinityConfig") => {
            causes.forbidden(&at, "must not be set when session affinity is None");
        }
        "None" => {}
        "ClientIP" => {
            let config = child_or_empty(spec, "sessionAffinityConfig");
            let seconds = int(child_or_empty(config, "clientIP"), "timeoutSeconds").unwrap_or(0);
            if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) {
                let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                causes.invalid(&at.child("clientIP").child("timeoutSeconds"), seconds, &detail);
            }
        }
        other => causes.not_supported(&SPEC.child("sessionAffinity"), other, &["ClientIP", "None"]),
    }
}

/// `clusterIP`, `clusterIPs` and the families, which belong together.
pub fn addresses(spec: &Members, old: Option<&Members>, causes: &mut Causes) {
    let at = SPEC.child("clusterIPs");
    let (first, all) = (text(spec, "clusterIP"), texts(spec, "clusterIPs").collect::<Vec<_>>());
    let bad = || spec.get("clusterIPs");
    match (first, all.first()) {
        ("", Some(_)) => causes.invalid(&at, bad(), "must be empty when `clusterIP` is not specified"),
        ("", None) => {}
        (_, None) => causes.required(&at, ""),
        (first, Some(same)) if first == *same => {}
        (_, Some(_)) => causes.invalid(&at, bad(), "first value must match `clusterIP`"),
    }
    families(spec, causes);
    let known: Seen<&str> = old.into_iter().flat_map(|old| texts(old, "clusterIPs")).collect();
    let mut wrong = false;
    for (index, address) in all.iter().enumerate() {
        if index == 0 && *address == "None" {
            if all.len() > 1 {
                wrong = true;
                causes.invalid(&at, bad(), "'None' must be the first and only value");
            }
        } else if !known.has(*address) {
            wrong |= legacy_ip(address, &at.index(index), causes).is_none();
        }
    }
    if all.len() > 2 {
        causes.invalid(&at, bad(), "may only hold up to 2 values");
    }
    if wrong {
        return;
    }
    let is_v6 = |address: &str| format::sloppy_ip(address).is_some_and(|address| address.is_ipv6());
    if all.len() > 1 && all.iter().all(|address| is_v6(address) == is_v6(all[0])) {
        causes.invalid(&at, bad(), "may specify no more than one IP for each IP family");
    }
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in all.iter().zip(texts(spec, "ipFamilies")).enumerate() {
        if (family == "IPv4" && is_v6(address)) || (family == "IPv6" && !is_v6(address)) {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            causes.invalid(&at.index(index), *address, &detail);
        }
    }
}

fn families(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("ipFamilies");
    let mut known = Seen::default();
    for (index, family) in texts(spec, "ipFamilies").enumerate() {
        if !matches!(family, "IPv4" | "IPv6") {
            causes.not_supported(&at.index(index), family, &["IPv4", "IPv6"]);
        }
        if known.again(family) {
            causes.duplicate(&at.index(index), family);
        }
    }
    const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if let Some(policy) = text_opt(spec, "ipFamilyPolicy").filter(|policy| !POLICIES.contains(policy)) {
        causes.not_supported(
            &SPEC.child("ipFamilyPolicy"),
            BadValue::encoded(Some(&policy.into())),
            &POLICIES,
        );
    }
}

/// The first address and family stay; the second may come and go.
fn unchanged_addresses(new: &Members, old: &Members, causes: &mut Causes) {
    if [new, old].iter().any(|spec| text(spec, "type") == "ExternalName") {
        return;
    }
    let single = text(new, "ipFamilyPolicy") == "SingleStack";
    if !(is_headless(new) && is_headless(old)) {
        unchanged(new, old, "clusterIPs", "primary clusterIP can not be unset", causes);
        if list(old, "clusterIPs").len() > 1 && list(new, "clusterIPs").len() == 1 && !single {
            let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
            causes.invalid(
                &SPEC.child("ipFamilyPolicy"),
                BadValue::encoded(new.get("ipFamilyPolicy")),
                detail,
            );
        }
    }
    if !is_headless(new) && !is_headless(old) {
        unchanged(new, old, "ipFamilies", "primary ipFamily can not be unset", causes);
        if list(old, "ipFamilies").len() > 1 && list(new, "ipFamilies").len() == 1 && !single {
            let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
            causes.invalid(
                &SPEC.child("ipFamilyPolicy"),
                BadValue::encoded(new.get("ipFamilyPolicy")),
                detail,
            );
        }
    }
}

fn unchanged(new: &Members, old: &Members, name: &str, unset: &str, causes: &mut Causes) {
    let (values, old_values) = (list(new, name), list(old, name));
    let at = SPEC.child(name);
    if values.len() == old_values.len() {
        for (index, _) in values.iter().zip(old_values).enumerate().filter(|(_, (value, old))| value != old) {
            let index = if name == "ipFamilies" { 0 } else { index };
            causes.invalid(&at.index(index), new.get(name), "may not change once set");
        }
        return;
    }
    if values.is_empty() {
        causes.invalid(&at.index(0), new.get(name), unset);
    } else if !old_values.is_empty() && values[0] != old_values[0] {
        // Upstream shows the addresses for both.
        causes.invalid(&at.index(0), new.get("clusterIPs"), "may not change once set");
    }
}

fn external_addresses(spec: &Members, old: Option<&Members>, causes: &mut Causes) {
    let at = SPEC.child("externalIPs");
    let known: Seen<&str> = old.into_iter().flat_map(|old| texts(old, "externalIPs")).collect();
    for (index, address) in texts(spec, "externalIPs").enumerate() {
        if known.has(address) || legacy_ip(address, &at.index(index), causes).is_some() {
            endpoint_ip(address, &at.index(index), causes);
        }
    }
}

/// Ports are unique by protocol and number, and have no node port where there is none.
fn port_pairs(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("ports");
    let ports: Vec<&Members> = objects(spec, "ports").collect();
    let number = |port: &Members, name| int(port, name).unwrap_or(0);
    if text(spec, "type") == "ClusterIP" {
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| number(port, "nodePort") != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.forbidden(&at.index(index).child("nodePort"), detail);
        }
    }
    for (name, zero_counts) in [("nodePort", false), ("port", true)] {
        let mut known = Seen::default();
        for (index, port) in
            ports.iter().enumerate().filter(|(_, port)| zero_counts || number(port, name) != 0)
        {
            if !known.again((text(port, "protocol"), number(port, name))) {
                continue;
            }
            if name == "nodePort" {
                causes.duplicate(&at.index(index).child("nodePort"), number(port, name));
            } else {
                let protocol = to_go_text(&Value::from(text(port, "protocol")));
                let bad = format!(
                    "{{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\
                     \"NodePort\":0}}",
                    number(port, name)
                );
                causes.duplicate(&at.index(index), BadValue::shown(bad));
            }
        }
    }
}

fn source_ranges(service: &Members, old: Option<&Members>, causes: &mut Causes) {
    const DETAIL: &str = "may only be used when `type` is 'LoadBalancer'";
    let spec = child_or_empty(service, "spec");
    let balanced = text(spec, "type") == "LoadBalancer";
    if !list(spec, "loadBalancerSourceRanges").is_empty() {
        let at = SPEC.child("LoadBalancerSourceRanges"); // upstream's spelling
        if !balanced {
            causes.forbidden(&at, DETAIL);
        }
        let old_spec = old.map(|old| child_or_empty(old, "spec"));
        let before = old_spec.into_iter().flat_map(|old| texts(old, "loadBalancerSourceRanges"));
        let known: Seen<&str> = before.map(str::trim).collect();
        for (index, range) in texts(spec, "loadBalancerSourceRanges").map(str::trim).enumerate() {
            if !known.has(range) {
                legacy_cidr(range, &at.index(index), causes);
            }
        }
        return;
    }
    let annotation = |service| {
        text_opt(child_or_empty(child_or_empty(service, "metadata"), "annotations"), RANGES_ANNOTATION)
    };
    let Some(ranges) = annotation(service) else { return };
    let (meta, annotations) = (Path::root("metadata"), "annotations");
    let at = meta.child(annotations);
    let at = at.key(RANGES_ANNOTATION);
    if !balanced {
        causes.forbidden(&at, DETAIL);
    }
    if old.and_then(annotation) != Some(ranges) && !ranges.trim().is_empty() {
        for range in ranges.split(',') {
            legacy_cidr(range.trim(), &at, causes);
        }
    }
}

fn load_balancer_class(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("loadBalancerClass");
    match (text_opt(spec, "loadBalancerClass"), text(spec, "type")) {
        (None, _) => {}
        (Some(class), "LoadBalancer") => label_key(class, &at, causes),
        (Some(_), _) => causes.forbidden(&at, "may only be used when `type` is 'LoadBalancer'"),
    }
}

fn traffic(spec: &Members, causes: &mut Causes) {
    const POLICIES: [&str; 2] = ["Cluster", "Local"];
    let at = SPEC.child("externalTrafficPolicy");
    match (text(spec, "externalTrafficPolicy"), externally_accessible(spec)) {
        ("", true) => causes.required(&at, ""),
        ("", false) => {}
        (policy, false) => causes.invalid(&at, policy, "may only be set for externally-accessible services"),
        (policy, true) if POLICIES.contains(&policy) => {}
        (policy, true) => causes.not_supported(&at, policy, &POLICIES),
    }
    let (at, number) = (SPEC.child("healthCheckNodePort"), int(spec, "healthCheckNodePort").unwrap_or(0));
    if number != 0 && !needs_health_check(spec) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        causes.invalid(&at, number, detail);
    } else if number != 0
        && let Some(fault) = format::port_number(number)
    {
        causes.invalid(&at, number, fault);
    }
    if let Some(policy) = text_opt(spec, "internalTrafficPolicy").filter(|policy| !POLICIES.contains(policy))
    {
        causes.not_supported(&SPEC.child("internalTrafficPolicy"), policy, &POLICIES);
    }
    const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if let Some(policy) =
        text_opt(spec, "trafficDistribution").filter(|policy| !DISTRIBUTIONS.contains(policy))
    {
        causes.not_supported(&SPEC.child("trafficDistribution"), policy, &DISTRIBUTIONS);
    }
}

fn ingress(status: &Members, spec: &Members, causes: &mut Causes) {
    const MODES: [&str; 2] = ["Proxy", "VIP"];
    let status_at = Path::root("status");
    let balancer_at = status_at.child("loadBalancer");
    let at = balancer_at.child("ingress");
    if text(spec, "type") != "LoadBalancer" {
        if !list(status, "ingress").is_empty() {
            causes.forbidden(&at, "may only be used when `spec.type` is 'LoadBalancer'");
        }
        return;
    }
    for (index, ingress) in objects(status, "ingress").enumerate() {
        let at = at.index(index);
        let ip = text(ingress, "ip");
        if !ip.is_empty() {
            legacy_ip(ip, &at.child("ip"), causes);
        }
        match text_opt(ingress, "ipMode") {
            None if !ip.is_empty() => {
                causes.required(&at.child("ipMode"), "must be specified when `ip` is set")
            }
            None => {}
            Some(_) if ip.is_empty() => {
                causes.forbidden(&at.child("ipMode"), "may not be specified when `ip` is not set");
            }
            Some(mode) if MODES.contains(&mode) => {}
            Some(mode) => {
                causes.not_supported(&at.child("ipMode"), BadValue::encoded(Some(&mode.into())), &MODES)
            }
        }
        let hostname = text(ingress, "hostname");
        if !hostname.is_empty() {
            causes.faults(&at.child("hostname"), hostname, format::dns1123_subdomain(hostname));
            if format::sloppy_ip(hostname).is_some() {
                causes.invalid(&at.child("hostname"), hostname, "must be a DNS name, not an IP address");
            }
        }
    }
}
