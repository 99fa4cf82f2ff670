//! Services and Endpoints: addresses and ports as short text.
//!
//! In: v1 values. Out: their cells. Never: a look at other objects.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::labels::format_labels;
use crate::lists::{SHOWN, joined, with_more};
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static SERVICE: Printer = Printer::new(
    &[
        NAME,
        string("Type", "How the service is exposed."),
        string("Cluster-IP", "First address inside the cluster."),
        string("External-IP", "Addresses outside the cluster."),
        string("Port(s)", "Ports that are exposed."),
        AGE,
        string("Selector", "Labels of the pods that traffic goes to.").wide(),
    ],
    service_cells,
);

pub(crate) static ENDPOINTS: Printer =
    Printer::new(&[NAME, string("Endpoints", "Addresses that are ready, with ports."), AGE], endpoints_cells);

fn service_cells(service: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = service.get("spec");
    cells![
        service.name(),
        spec.get("type").text_or("ClusterIP"),
        cluster_ip(spec),
        external_ip(spec, service.get("status").get("loadBalancer")),
        service_ports(spec),
        service.age(now),
        format_labels(spec.get("selector").value()),
    ]
}

/// Services from before the plural field have only the singular one; kube-apiserver fills the plural one in
/// on read.
fn cluster_ip(spec: Member<'_>) -> &str {
    match spec.get("clusterIPs").items().next() {
        Some(first) => first.text(),
        None => spec.get("clusterIP").text_or("<none>"),
    }
}

fn external_ip(spec: Member<'_>, balancer: Member<'_>) -> String {
    let external_ips = || joined(spec.get("externalIPs").items().map(Member::text), ",");
    match spec.get("type").text_or("ClusterIP") {
        "ClusterIP" | "NodePort" if spec.get("externalIPs").count() > 0 => external_ips(),
        "ClusterIP" | "NodePort" => "<none>".to_owned(),
        "LoadBalancer" => match (load_balancer(balancer), spec.get("externalIPs").count()) {
            (addresses, 0) if addresses.is_empty() => "<pending>".to_owned(),
            (addresses, 0) => addresses,
            (addresses, _) if addresses.is_empty() => external_ips(),
            (addresses, _) => format!("{addresses},{}", external_ips()),
        },
        "ExternalName" => spec.get("externalName").text().to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses of a load balancer, sorted, each once; of an entry the IP address goes before the host name.
pub(crate) fn load_balancer(status: Member<'_>) -> String {
    let addresses =
        status.get("ingress").items().map(|entry| entry.get("ip").text_or(entry.get("hostname").text()));
    let addresses: BTreeSet<&str> = addresses.filter(|address| !address.is_empty()).collect();
    joined(addresses.into_iter(), ",")
}

/// `80/TCP,443:30443/TCP`
fn service_ports(spec: Member<'_>) -> String {
    let ports = spec.get("ports").items().map(|port| {
        let (number, protocol) = (port.get("port").int(), port.get("protocol").text_or("TCP"));
        match port.get("nodePort").int() {
            node_port @ 1.. => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    });
    match ports.collect::<Vec<_>>().join(",") {
        text if text.is_empty() => "<none>".to_owned(),
        text => text,
    }
}

fn endpoints_cells(endpoints: Member<'_>, now: Timestamp) -> Vec<Value> {
    cells![endpoints.name(), addresses(endpoints), endpoints.age(now)]
}

/// Every port of every ready address, three of them in full; addresses alone where a subset has no ports.
fn addresses(endpoints: Member<'_>) -> String {
    let subsets = endpoints.get("subsets");
    if subsets.count() == 0 {
        return "<none>".to_owned();
    }
    let mut shown = Vec::with_capacity(SHOWN);
    let mut total = 0;
    for subset in subsets.items() {
        let addresses = subset.get("addresses");
        let ports: Vec<Option<i64>> = match subset.get("ports").items() {
            ports if ports.len() == 0 => vec![None],
            ports => ports.map(|port| Some(port.get("port").int())).collect(),
        };
        for port in ports {
            total += addresses.count();
            let missing = SHOWN - shown.len();
            shown.extend(
                addresses.items().take(missing).map(|address| with_port(address.get("ip").text(), port)),
            );
        }
    }
    let more = total - shown.len() as i64;
    with_more(shown.join(","), more)
}

fn with_port(address: &str, port: Option<i64>) -> String {
    match port {
        None => address.to_owned(),
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
    }
}
