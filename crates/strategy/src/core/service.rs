//! Services: what the client may leave out, and what follows the type.
//!
//! In: a Service. Out: defaults, what it is stored as. Never: addresses and ports, which come before it:
//! `service_allocation.rs`.
//!
//! Source: kubernetes v1.36.3 `registry/core/service`, `apis/core/v1/defaults.go`.

use forebay_apimachinery::Seen;
use serde_json::{Value, json};

use super::service_rules;
use crate::address::{cidr_warning, ip_warning};
use crate::field::{Causes, Path};
use crate::lifecycle::reset_status;
use crate::rule::{Context, Update};
use crate::value::{
    Members, child_made, child_mut, child_or_empty, default, default_text, int, list, objects, objects_mut,
    same_member, take_over, text, texts,
};

const AFFINITY_SECONDS: i64 = 10_800;
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY: &str = "service.kubernetes.io/topology-mode";

pub fn defaults(service: &mut Members) {
    let spec = child_made(service, "spec");
    default_text(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = child_or_empty(spec, "sessionAffinityConfig");
            if !child_or_empty(config, "clientIP").contains_key("timeoutSeconds") {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".into(), config);
            }
        }
        _ => {}
    }
    default_text(spec, "type", "ClusterIP");
    for port in objects_mut(spec, "ports") {
        default_text(port, "protocol", "TCP");
        let unset = match port.get("targetPort") {
            None => true,
            Some(Value::String(name)) => name.is_empty(),
            Some(number) => number.as_i64() == Some(0),
        };
        if unset {
            let number = int(port, "port").unwrap_or(0);
            port.insert("targetPort".into(), number.into());
        }
    }
    if externally_accessible(spec) {
        default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    let balanced = text(spec, "type") == "LoadBalancer";
    if matches!(text(spec, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if balanced {
        default(spec, "allocateLoadBalancerNodePorts", true);
        ingress_modes(service);
    }
}

fn ingress_modes(service: &mut Members) {
    let Some(balancer) = child_mut(service, "status").and_then(|status| child_mut(status, "loadBalancer"))
    else {
        return;
    };
    for ingress in objects_mut(balancer, "ingress").filter(|ingress| !text(ingress, "ip").is_empty()) {
        default(ingress, "ipMode", "VIP");
    }
}

/// Whether traffic from outside reaches it.
pub fn externally_accessible(spec: &Members) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    }
}

pub fn prepare_create(service: &mut Members, context: &Context<'_>) {
    reset_status(service, context);
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    let old = update.old;
    if update.is_status() {
        return take_over(new, old, "spec");
    }
    take_over(new, old, "status");
    let (spec, old_spec) = (child_made(new, "spec"), child_or_empty(old, "spec"));
    drop_what_the_type_had(spec, old_spec);
    if text(spec, "type") != "LoadBalancer"
        && let Some(status) = child_mut(new, "status")
    {
        status.insert("loadBalancer".into(), json!({}));
    }
}

pub fn needs_address(spec: &Members) -> bool {
    text(spec, "type") != "ExternalName"
}

fn needs_node_port(spec: &Members) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

pub fn needs_health_check(spec: &Members) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// What the old type needed and the new one cannot have goes, unless the client changed it, too.
fn drop_what_the_type_had(new: &mut Members, old: &Members) {
    let same = |new: &Members, name| same_member(new, old, name);
    if needs_address(old) && !needs_address(new) {
        if same(new, "clusterIP") && same(new, "clusterIPs") {
            new.remove("clusterIP");
            new.remove("clusterIPs");
        }
        for name in ["ipFamilies", "ipFamilyPolicy"] {
            if same(new, name) {
                new.remove(name);
            }
        }
    }
    if text(new, "type") == "ExternalName" && same(new, "internalTrafficPolicy") {
        new.remove("internalTrafficPolicy");
    }
    if needs_node_port(old) && !needs_node_port(new) {
        let known: Seen<i64> = objects(old, "ports").filter_map(|port| int(port, "nodePort")).collect();
        let known_port = |port| port == 0 || known.has(&port);
        if objects(new, "ports").filter_map(|port| int(port, "nodePort")).all(known_port) {
            for port in objects_mut(new, "ports") {
                port.remove("nodePort");
            }
        }
    }
    if needs_health_check(old) && !needs_health_check(new) && same(new, "healthCheckNodePort") {
        new.remove("healthCheckNodePort");
    }
    if text(old, "type") == "LoadBalancer" && text(new, "type") != "LoadBalancer" {
        for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(new, name) {
                new.remove(name);
            }
        }
    }
    if externally_accessible(old) && !externally_accessible(new) && same(new, "externalTrafficPolicy") {
        new.remove("externalTrafficPolicy");
    }
}

/// What is accepted and does nothing, or will not be for long.
pub fn warnings(service: &Members, update: Option<&Update<'_>>, warnings: &mut Vec<String>) {
    if update.is_some_and(Update::is_status) {
        let status = child_or_empty(child_or_empty(service, "status"), "loadBalancer");
        let (at, balancer) = (Path::root("status"), "loadBalancer");
        let at = at.child(balancer);
        let ips = objects(status, "ingress").map(|ingress| text(ingress, "ip")).enumerate();
        return warnings
            .extend(ips.filter_map(|(index, ip)| ip_warning(ip, &at.child("ingress").index(index))));
    }
    let annotations = child_or_empty(child_or_empty(service, "metadata"), "annotations");
    if annotations.contains_key(HINTS) {
        warnings.push(format!("annotation {HINTS} is deprecated, please use {TOPOLOGY} instead"));
    }
    let (spec, at) = (child_or_empty(service, "spec"), Path::root("spec"));
    let external_name = text(spec, "type") == "ExternalName";
    let headless = text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None";
    let external = !list(spec, "externalIPs").is_empty();
    let addresses = |name: &str, warnings: &mut Vec<String>| {
        let at = at.child(name);
        let ips = texts(spec, name).enumerate();
        warnings.extend(ips.filter_map(|(index, ip)| ip_warning(ip, &at.index(index))));
    };
    if !external_name {
        addresses("clusterIPs", warnings);
    }
    let ignored = |what: &str| format!("spec.{what} is ignored for headless services");
    if headless {
        let balanced = !text(spec, "loadBalancerIP").is_empty();
        let affine = text(spec, "sessionAffinity") != "None";
        let rows = [(balanced, "loadBalancerIP"), (external, "externalIPs"), (affine, "SessionAffinity")];
        warnings.extend(rows.iter().filter(|(set, _)| *set).map(|(_, what)| ignored(what)));
    }
    addresses("externalIPs", warnings);
    if external && !headless && !external_name {
        warnings
            .push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".into());
    }
    warnings.extend(ip_warning(text(spec, "loadBalancerIP"), &at.child("loadBalancerIP")));
    let ranges = texts(spec, "loadBalancerSourceRanges").enumerate();
    let at_ranges = at.child("loadBalancerSourceRanges");
    warnings.extend(ranges.filter_map(|(index, range)| cidr_warning(range, &at_ranges.index(index))));
    if external_name && external {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
    }
    if !external_name && !text(spec, "externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        let message = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(message.into());
    }
}

pub fn validate_create(service: &Members, causes: &mut Causes) {
    service_rules::validate(service, None, causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    service_rules::validate_update(new, update, causes);
}
