//! The networking group: ingresses and their classes, network policies, service address ranges.
//!
//! In: v1 values. Out: their cells. Never: a look at other objects.

use jiff::Timestamp;
use serde_json::Value;

use crate::core_services::load_balancer;
use crate::labels::format_selector;
use crate::lists::{SHOWN, joined, with_more};
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static INGRESS: Printer = Printer::new(
    &[
        NAME,
        string("Class", "IngressClass that configures it."),
        string("Hosts", "Host names of the rules."),
        string("Address", "Addresses of the load balancer."),
        string("Ports", "Ports that are open."),
        AGE,
    ],
    ingress_cells,
);

pub(crate) static INGRESS_CLASS: Printer = Printer::new(
    &[
        NAME,
        string("Controller", "Controller of the class."),
        string("Parameters", "Object with more parameters."),
        AGE,
    ],
    ingress_class_cells,
);

pub(crate) static NETWORK_POLICY: Printer = Printer::new(
    &[NAME, string("Pod-Selector", "Labels of the pods it applies to."), AGE],
    network_policy_cells,
);

pub(crate) static SERVICE_CIDR: Printer =
    Printer::new(&[NAME, string("CIDRs", "Ranges of service addresses."), AGE], service_cidr_cells);

/// Rows have a third cell, the age, which has no column: kube-apiserver 1.36 answers the same.
pub(crate) static IP_ADDRESS: Printer =
    Printer::new(&[NAME, string("ParentRef", "Object the address belongs to.")], ip_address_cells);

fn ingress_cells(ingress: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = ingress.get("spec");
    let ports = if spec.get("tls").count() > 0 { "80, 443" } else { "80" };
    cells![
        ingress.name(),
        spec.get("ingressClassName").text_if_set().unwrap_or("<none>"),
        hosts(spec.get("rules")),
        load_balancer(ingress.get("status").get("loadBalancer")),
        ports,
        ingress.age(now),
    ]
}

/// Up to three hosts. Rules without a host are not shown, yet count among those left out.
fn hosts(rules: Member<'_>) -> String {
    let hosts = || rules.items().map(|rule| rule.get("host").text());
    let shown: Vec<&str> = hosts().filter(|host| !host.is_empty()).take(SHOWN).collect();
    if shown.is_empty() {
        return "*".to_owned();
    }
    let third = hosts().enumerate().filter(|(_, host)| !host.is_empty()).nth(SHOWN - 1);
    let is_cut = third.is_some_and(|(index, _)| index as i64 + 1 < rules.count());
    let more = if is_cut { rules.count() - SHOWN as i64 } else { 0 };
    with_more(joined(shown.into_iter(), ","), more)
}

fn ingress_class_cells(class: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = class.get("spec");
    let is_default = class.annotation("ingressclass.kubernetes.io/is-default-class").text() == "true";
    let suffix = if is_default { " (default)" } else { "" };
    cells![
        format!("{}{suffix}", class.name()),
        spec.get("controller").text(),
        parameters(spec.get("parameters")),
        class.age(now),
    ]
}

/// `Kind.group/name`; a group that is given but empty still brings its dot.
fn parameters(parameters: Member<'_>) -> String {
    let (kind, name) = (parameters.get("kind").text(), parameters.get("name").text());
    match parameters.get("apiGroup").text_if_set() {
        _ if !parameters.is_set() => "<none>".to_owned(),
        None => format!("{kind}/{name}"),
        Some(group) => format!("{kind}.{group}/{name}"),
    }
}

fn network_policy_cells(policy: Member<'_>, now: Timestamp) -> Vec<Value> {
    // The selector is no pointer: an absent one selects all pods, and reads the same as none.
    cells![policy.name(), format_selector(policy.get("spec").get("podSelector").value()), policy.age(now)]
}

fn service_cidr_cells(range: Member<'_>, now: Timestamp) -> Vec<Value> {
    let ranges = joined(range.get("spec").get("cidrs").items().map(Member::text), ",");
    cells![range.name(), ranges, range.age(now)]
}

fn ip_address_cells(address: Member<'_>, now: Timestamp) -> Vec<Value> {
    cells![address.name(), parent(address.get("spec").get("parentRef")), address.age(now)]
}

/// `resource.group/namespace/name`; group and namespace only where there are any.
fn parent(parent: Member<'_>) -> String {
    if !parent.is_set() {
        return "<none>".to_owned();
    }
    let part = |field: &str, lead: &str| match parent.get(field).text() {
        "" => String::new(),
        text => format!("{lead}{text}"),
    };
    let resource = format!("{}{}", part("resource", ""), part("group", ".")).to_lowercase();
    format!("{resource}{}/{}", part("namespace", "/"), parent.get("name").text())
}
