//! Where in the world of kubelets a request goes: which container, which node, which path there.
//!
//! In: a pod and a node as trees, a query. Out: an address, a path; or what is wrong, in upstream's words.
//! Never: asks anybody.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/strategy.go`, `kubelet/client/kubelet_client.go`.

use forebay_apimachinery::Status;
use forebay_apimachinery::options::Query;
use serde_json::Value;

/// The gate that kubelets declare who speak WebSocket themselves.
const SPEAKS_WEBSOCKET: &str = "ExtendWebSocketsToKubelet";

/// The container that is meant.
///
/// # Errors
/// 400: it has to be named, or the pod has none of that name.
pub fn container<'p>(pod: &'p Value, asked: &str) -> Result<&'p str, Status> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let of = |member: &str| {
        let all = pod["spec"][member].as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(|container| container["name"].as_str())
    };
    let all = || of("initContainers").chain(of("containers")).chain(of("ephemeralContainers"));
    if !asked.is_empty() {
        // Once: for a request.
        let found = all().find(|known| *known == asked);
        return found
            .ok_or_else(|| Status::bad_request(format!("container {asked} is not valid for pod {name}")));
    }
    let mut own = of("containers");
    match (own.next(), own.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
        (Some(_), Some(_)) => {
            let all: Vec<&str> = all().collect();
            let message = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                all.join(" ")
            );
            Err(Status::bad_request(message))
        }
    }
}

/// The host of a node, by the first sort of address that it has.
///
/// # Errors
/// It has none of these.
pub fn host<'n>(node: &'n Value, types: &[String]) -> Result<&'n str, Status> {
    let all = node["status"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |wanted: &String| {
        // Once: for a request, among few.
        let found = all.iter().find(|address| address["type"].as_str() == Some(wanted));
        found.and_then(|address| address["address"].as_str())
    };
    types.iter().find_map(of).ok_or_else(|| {
        let known: Vec<String> = all
            .iter()
            .map(|one| {
                let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
                format!("{{{} {}}}", text("type"), text("address"))
            })
            .collect();
        Status::internal(format!("no preferred addresses found; known addresses: [{}]", known.join(" ")))
    })
}

/// The port of its kubelet; `usual` where it does not say.
pub fn port(node: &Value, usual: u16) -> u16 {
    let said = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    said.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0).unwrap_or(usual)
}

/// Whether its kubelet speaks WebSocket.
pub fn speaks_websocket(node: &Value) -> bool {
    let mut features = node["status"]["declaredFeatures"].as_array().into_iter().flatten();
    features.any(|feature| feature == SPEAKS_WEBSOCKET)
}

/// As a URL has it.
pub fn at(host: &str, port: u16) -> Box<str> {
    match host.contains(':') {
        true => format!("[{host}]:{port}").into(),
        false => format!("{host}:{port}").into(),
    }
}

/// Path and query at a kubelet.
///
/// - `container`: `None` for what is the whole pod's.
pub fn target(
    subresource: &str,
    (namespace, pod, container): (&str, &str, Option<&str>),
    query: &Query,
) -> String {
    let place = match subresource {
        "log" => "containerLogs",
        "portforward" => "portForward",
        other => other,
    };
    let mut target = format!("/{place}/{namespace}/{pod}");
    if let Some(container) = container {
        target.push('/');
        target.push_str(container);
    }
    let mut separator = '?';
    let mut add = |name: &str, value: &str| {
        target.push(separator);
        target.push_str(name);
        target.push('=');
        escape(value, &mut target);
        separator = '&';
    };
    let is_set = |name: &str| query.first(name).is_some_and(|value| value != "0" && value != "false");
    match subresource {
        "log" => {
            for name in ["follow", "previous", "timestamps"].into_iter().filter(|name| is_set(name)) {
                add(name, "true");
            }
            for name in ["sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"] {
                if let Some(value) = query.first(name).filter(|value| !value.is_empty()) {
                    add(name, value);
                }
            }
        }
        "portforward" => {
            let ports: Vec<&str> = query.all("ports").collect();
            if !ports.is_empty() {
                add("port", &ports.join(","));
            }
        }
        _ => {
            for (asked, told) in
                [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")]
            {
                if is_set(asked) {
                    add(told, "1");
                }
            }
            query.all("command").for_each(|word| add("command", word));
        }
    }
    target
}

pub fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_named_unless_there_is_one() {
        let pod = |containers: Value| {
            json!({ "metadata": { "name": "p" }, "spec": {
                "containers": containers, "initContainers": [{ "name": "first" }] } })
        };
        let (one, two) = (pod(json!([{ "name": "a" }])), pod(json!([{ "name": "a" }, { "name": "b" }])));
        assert_eq!(container(&one, ""), Ok("a"));
        assert_eq!(container(&two, "first"), Ok("first"));
        for (pod, asked, why) in [
            (&two, "", "a container name must be specified for pod p, choose one of: [first a b]"),
            (&one, "c", "container c is not valid for pod p"),
        ] {
            assert_eq!(container(pod, asked).expect_err("none").message, why);
        }
    }

    #[test]
    fn a_node_is_reached_at_the_first_address_that_is_preferred() {
        let node = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": "fd00::1" }, { "type": "Hostname", "address": "n" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10_255 } },
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        } });
        let types = |types: &[&str]| types.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(host(&node, &types(&["ExternalIP", "InternalIP", "Hostname"])), Ok("fd00::1"));
        assert_eq!(&*at("fd00::1", port(&node, 10_250)), "[fd00::1]:10255");
        assert!(speaks_websocket(&node) && !speaks_websocket(&json!({})));
        assert_eq!(port(&json!({}), 10_250), 10_250);
        let why = host(&node, &types(&["ExternalIP"])).expect_err("none").message;
        assert!(why.ends_with("known addresses: [{InternalIP fd00::1} {Hostname n}]"), "{why}");
    }

    #[test]
    fn a_query_becomes_the_kubelets() {
        for (subresource, query, want) in [
            (
                "log",
                "follow=true&tailLines=5&container=c&previous=false",
                "/containerLogs/ns/p/c?follow=true&tailLines=5",
            ),
            (
                "exec",
                "command=sh&command=-c&command=echo%20%26&stdin=true&stdout=1&tty=true",
                "/exec/ns/p/c?input=1&output=1&tty=1&command=sh&command=-c&command=echo%20%26",
            ),
            ("attach", "stderr=true", "/attach/ns/p/c?error=1"),
            ("portforward", "ports=80&ports=81", "/portForward/ns/p?port=80%2C81"),
        ] {
            let container = (subresource != "portforward").then_some("c");
            assert_eq!(target(subresource, ("ns", "p", container), &Query::parse(query)), want);
        }
    }
}
