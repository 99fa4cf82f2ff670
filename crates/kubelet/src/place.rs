//! Where in the world of kubelets a request goes: which container, which node, which path there.
//!
//! In: a pod and a node as they are stored, a query. Out: an address, a path; or what is wrong, in upstream's
//! words. Never: asks anybody.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/strategy.go`, `kubelet/client/kubelet_client.go`.

use std::borrow::Cow;

use forebay_apimachinery::Status;
use forebay_apimachinery::json::Reader;
use forebay_apimachinery::options::Query;

use crate::limits::TOLD_BYTES_MAX;
use crate::log::LogOptions;
use crate::members::{Passed, elements, members, number, of_object, text};

/// The gate that kubelets declare who speak WebSocket themselves.
const SPEAKS_WEBSOCKET: &str = "ExtendWebSocketsToKubelet";

/// What of a pod leads to one of its containers.
#[derive(Debug, PartialEq, Eq)]
pub struct PodPlace {
    /// Empty before it has one.
    pub node: String,
    /// `None` for what is the whole pod's.
    pub container: Option<String>,
}

/// What of a node leads to its kubelet.
#[derive(Debug, PartialEq, Eq)]
pub struct NodePlace {
    pub host: String,
    pub port: u16,
    pub speaks_websocket: bool,
}

/// Names for a message, which is no longer than a reader likes.
#[derive(Default)]
struct Told(String);

impl Told {
    fn add(&mut self, name: &str) {
        if self.0.len() < TOLD_BYTES_MAX {
            let space = if self.0.is_empty() { "" } else { " " };
            self.0.extend([space, name.get(..TOLD_BYTES_MAX).unwrap_or(name)]);
        }
    }
}

/// What of a pod leads to the container that is meant.
///
/// - `asked`: empty for its only one; `None` for none of them.
///
/// # Errors
/// 400: it has to be named, or the pod has none of that name.
pub fn of_pod(pod: &[u8], name: &str, asked: Option<&str>) -> Result<PodPlace, Status> {
    let mut node = Cow::default();
    let (mut init, mut own, mut ephemeral) =
        (Containers::new(asked), Containers::new(asked), Containers::new(asked));
    of_object(pod, |member, json| match member {
        b"spec" => members(json, |member, json| match member {
            b"nodeName" => text(json).map(|text| node = text),
            b"initContainers" => init.read(json),
            b"containers" => own.read(json),
            b"ephemeralContainers" => ephemeral.read(json),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    let container = match asked {
        None => None,
        Some("") => match (own.count, own.first) {
            (1, Some(only)) => Some(only.into_owned()),
            (0, _) => {
                return Err(Status::bad_request(format!(
                    "a container name must be specified for pod {name}"
                )));
            }
            _ => {
                let mut all = init.names;
                [own.names, ephemeral.names]
                    .iter()
                    .filter(|more| !more.0.is_empty())
                    .for_each(|more| all.add(&more.0));
                let message =
                    format!("a container name must be specified for pod {name}, choose one of: [{}]", all.0);
                return Err(Status::bad_request(message));
            }
        },
        Some(asked) if init.has_asked || own.has_asked || ephemeral.has_asked => Some(asked.to_owned()),
        Some(asked) => {
            return Err(Status::bad_request(format!("container {asked} is not valid for pod {name}")));
        }
    };
    Ok(PodPlace { node: node.into_owned(), container })
}

/// The containers of a pod of one sort.
struct Containers<'a> {
    asked: Option<&'a str>,
    has_asked: bool,
    count: usize,
    first: Option<Cow<'a, str>>,
    names: Told,
}

impl<'a> Containers<'a> {
    fn new(asked: Option<&'a str>) -> Containers<'a> {
        Containers { asked, has_asked: false, count: 0, first: None, names: Told::default() }
    }

    fn read(&mut self, json: &mut Reader<'a>) -> Passed {
        elements(json, |json| {
            self.count += 1;
            members(json, |member, json| {
                if member == b"name" {
                    let name = text(json)?;
                    self.has_asked |= self.asked == Some(&*name);
                    self.names.add(&name);
                    self.first.get_or_insert(name);
                }
                Ok(())
            })
        })
    }
}

/// What of a node leads to its kubelet, by the first sort of address that it has.
///
/// - `usual`: the port where it does not say.
///
/// # Errors
/// It has no address of these sorts.
pub fn of_node(node: &[u8], types: &[String], usual: u16) -> Result<NodePlace, Status> {
    // The address and the rank of its sort.
    let (mut host, mut told) = (None::<(Cow<'_, str>, usize)>, Told::default());
    let (mut port, mut speaks_websocket) = (None, false);
    of_object(node, |member, json| match member {
        b"status" => members(json, |member, json| match member {
            b"addresses" => elements(json, |json| {
                let (mut sort, mut address) = (Cow::default(), Cow::default());
                members(json, |member, json| match member {
                    b"type" => text(json).map(|text| sort = text),
                    b"address" => text(json).map(|text| address = text),
                    _ => Ok(()),
                })?;
                told.add(&format!("{{{} {}}}", cut(&sort), cut(&address)));
                // Few: sorts that a flag lists.
                let rank = types.iter().position(|wanted| *wanted == *sort);
                if let Some(rank) = rank.filter(|rank| host.as_ref().is_none_or(|(_, found)| rank < found)) {
                    host = Some((address, rank));
                }
                Ok(())
            }),
            b"daemonEndpoints" => members(json, |member, json| match member {
                b"kubeletEndpoint" => members(json, |member, json| match member {
                    b"Port" => number(json).map(|number| port = number),
                    _ => Ok(()),
                }),
                _ => Ok(()),
            }),
            b"declaredFeatures" => elements(json, |json| {
                text(json).map(|feature| speaks_websocket |= feature == SPEAKS_WEBSOCKET)
            }),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    let Some((host, _)) = host else {
        return Err(Status::internal(format!("no preferred addresses found; known addresses: [{}]", told.0)));
    };
    let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0).unwrap_or(usual);
    Ok(NodePlace { host: host.into_owned(), port, speaks_websocket })
}

fn cut(text: &str) -> &str {
    text.get(..TOLD_BYTES_MAX).unwrap_or(text)
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
/// - `log`: the options of a log.
pub fn target(
    subresource: &str,
    (namespace, pod, container): (&str, &str, Option<&str>),
    query: &Query,
    log: Option<&LogOptions>,
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
    match (log, subresource) {
        (Some(log), _) => log.pairs().iter().for_each(|(name, value)| add(name, value)),
        (None, "portforward") => {
            let ports: Vec<&str> = query.all("ports").collect();
            if !ports.is_empty() {
                add("port", &ports.join(","));
            }
        }
        _ => {
            for (asked, told) in
                [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")]
            {
                if query.boolean(asked) == Some(true) {
                    add(told, "1");
                }
            }
            query.all("command").for_each(|word| add("command", word));
        }
    }
    target
}

fn escape(text: &str, out: &mut String) {
    escape_but(text, "", out);
}

/// A part of a path as Go writes it: what is not escaped means something else there than its escape.
pub fn escape_part(part: &str, out: &mut String) {
    escape_but(part, "$&+,:;=@", out);
}

fn escape_but(text: &str, kept: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_container_is_named_unless_there_is_one() {
        let pod = |containers: Value| {
            let spec =
                json!({ "nodeName": "n", "initContainers": [{ "name": "first" }], "containers": containers });
            json!({ "metadata": { "name": "p" }, "spec": spec }).to_string()
        };
        let (one, two) = (pod(json!([{ "name": "a" }])), pod(json!([{ "name": "a" }, { "name": "b" }])));
        let container = |pod: &str, asked| {
            let place = of_pod(pod.as_bytes(), "p", asked).map_err(|status| status.message)?;
            assert_eq!(place.node, "n");
            Ok(place.container.unwrap_or_default())
        };
        assert_eq!(container(&one, Some("")), Ok("a".to_owned()));
        assert_eq!(container(&two, Some("first")), Ok("first".to_owned()));
        assert_eq!(container(&two, None), Ok(String::new()));
        for (pod, asked, why) in [
            (&two, "", "a container name must be specified for pod p, choose one of: [first a b]"),
            (&pod(json!([])), "", "a container name must be specified for pod p"),
            (&one, "c", "container c is not valid for pod p"),
        ] {
            assert_eq!(container(pod, Some(asked)), Err(why.to_owned()));
        }
    }

    #[test]
    fn what_is_told_of_many_containers_and_addresses_is_short() {
        let containers: Vec<Value> =
            (0..50_000).map(|index| json!({ "name": format!("c-{index}") })).collect();
        let pod = json!({ "spec": { "containers": containers } }).to_string();
        let why = of_pod(pod.as_bytes(), "p", Some("")).expect_err("none is named").message;
        assert!(why.contains("[c-0 c-1 ") && why.len() < TOLD_BYTES_MAX + 200, "{}", why.len());
        let address = json!({ "type": "x".repeat(3 << 20), "address": "y".repeat(3 << 20) });
        let node = json!({ "status": { "addresses": vec![address; 3] } }).to_string();
        let why = of_node(node.as_bytes(), &["InternalIP".to_owned()], 1).expect_err("no address").message;
        assert!(why.len() < 4 * TOLD_BYTES_MAX, "{}", why.len());
    }

    #[test]
    fn a_node_is_reached_at_the_first_address_that_is_preferred() {
        let node = json!({ "status": {
            "addresses": [{ "type": "Hostname", "address": "n" }, { "type": "InternalIP", "address": "fd00::1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10_255 } },
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        } })
        .to_string();
        let types = |types: &[&str]| types.iter().map(ToString::to_string).collect::<Vec<_>>();
        let place =
            of_node(node.as_bytes(), &types(&["ExternalIP", "InternalIP", "Hostname"]), 10_250).expect("one");
        assert_eq!(&*at(&place.host, place.port), "[fd00::1]:10255");
        assert!(place.speaks_websocket);
        let bare = json!({ "status": { "addresses": [{ "type": "Hostname", "address": "n" }] } }).to_string();
        let place = of_node(bare.as_bytes(), &types(&["Hostname"]), 10_250);
        assert_eq!(place, Ok(NodePlace { host: "n".to_owned(), port: 10_250, speaks_websocket: false }));
        let why = of_node(node.as_bytes(), &types(&["ExternalIP"]), 1).expect_err("none").message;
        assert!(why.ends_with("known addresses: [{Hostname n} {InternalIP fd00::1}]"), "{why}");
    }

    #[test]
    fn a_query_becomes_the_kubelets() {
        for (subresource, query, want) in [
            (
                "log",
                "follow=true&tailLines=5&container=c&previous=False",
                "/containerLogs/ns/p/c?follow=true&tailLines=5",
            ),
            (
                "exec",
                "command=sh&command=-c&command=echo%20%26&stdin=true&stdout=1&tty=true",
                "/exec/ns/p/c?input=1&output=1&tty=1&command=sh&command=-c&command=echo%20%26",
            ),
            ("attach", "stderr=true&tty=False", "/attach/ns/p/c?error=1"),
            ("portforward", "ports=80&ports=81", "/portForward/ns/p?port=80%2C81"),
        ] {
            let container = (subresource != "portforward").then_some("c");
            let query = Query::parse(query);
            let log = (subresource == "log").then(|| LogOptions::read(&query, "p").expect("in order"));
            assert_eq!(target(subresource, ("ns", "p", container), &query, log.as_ref()), want);
        }
    }
}
