//! Nodes, namespaces and component statuses: what a cluster is made of.
//!
//! In: v1 values. Out: their cells. Never: a look at other objects.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::lists::joined;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static NODE: Printer = Printer::new(
    &[
        NAME,
        string("Status", "Whether the node is ready and takes pods."),
        string("Roles", "Roles from the labels of the node."),
        AGE,
        string("Version", "Version of the kubelet."),
        string("Internal-IP", "First address inside the cluster.").wide(),
        string("External-IP", "First address outside the cluster.").wide(),
        string("OS-Image", "Operating system.").wide(),
        string("Kernel-Version", "Kernel and machine architecture.").wide(),
        string("Container-Runtime", "Container runtime and its version.").wide(),
    ],
    node_cells,
);

pub(crate) static NAMESPACE: Printer =
    Printer::new(&[NAME, string("Status", "Phase of the namespace."), AGE], namespace_cells);

pub(crate) static COMPONENT_STATUS: Printer = Printer::new(
    &[
        NAME,
        string("Status", "Whether the component is healthy."),
        string("Message", "Message of the health check."),
        string("Error", "Error of the health check."),
    ],
    component_status_cells,
);

fn node_cells(node: Member<'_>, now: Timestamp) -> Vec<Value> {
    let info = node.get("status").get("nodeInfo");
    cells![
        node.name(),
        node_status(node),
        node_roles(node),
        node.age(now),
        info.get("kubeletVersion").text(),
        node_address(node, "InternalIP"),
        node_address(node, "ExternalIP"),
        info.get("osImage").text_or("<unknown>"),
        kernel(info),
        info.get("containerRuntimeVersion").text_or("<unknown>"),
    ]
}

/// The last `Ready` condition counts, should there be two.
fn node_status(node: Member<'_>) -> String {
    let mut conditions = node.get("status").get("conditions").items().rev();
    let ready = conditions.find(|condition| condition.get("type").text() == "Ready");
    let status = match ready.map(|condition| condition.get("status").text()) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    match node.get("spec").get("unschedulable").flag() {
        true => format!("{status},SchedulingDisabled"),
        false => status.to_owned(),
    }
}

/// Roles from `node-role.kubernetes.io/<role>` and `kubernetes.io/role=<role>`, sorted, each once.
fn node_roles(node: Member<'_>) -> String {
    let labels = node.get("metadata").get("labels").entries();
    let role = |(key, value): (&'_ str, Member<'_>)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None => (key == "kubernetes.io/role").then(|| value.text().to_owned()),
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    match joined(roles.iter().map(String::as_str), ",") {
        text if text.is_empty() => "<none>".to_owned(),
        text => text,
    }
}

fn node_address<'a>(node: Member<'a>, type_: &str) -> &'a str {
    let mut addresses = node.get("status").get("addresses").items();
    let first = addresses.find(|address| address.get("type").text() == type_);
    first.map_or("<none>", |address| address.get("address").text())
}

fn kernel(info: Member<'_>) -> String {
    let version = info.get("kernelVersion").text_or("<unknown>");
    match info.get("architecture").text() {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

fn namespace_cells(namespace: Member<'_>, now: Timestamp) -> Vec<Value> {
    let phase = namespace.get("status").get("phase");
    cells![namespace.name(), phase.text_or("Active"), namespace.age(now)]
}

fn component_status_cells(component: Member<'_>, _now: Timestamp) -> Vec<Value> {
    let mut conditions = component.get("conditions").items();
    let healthy = conditions.find(|condition| condition.get("type").text() == "Healthy");
    let Some(healthy) = healthy else { return cells![component.name(), "Unknown", "", ""] };
    let status = match healthy.get("status").text() {
        "True" => "Healthy",
        _ => "Unhealthy",
    };
    cells![component.name(), status, healthy.get("message").text(), healthy.get("error").text()]
}
