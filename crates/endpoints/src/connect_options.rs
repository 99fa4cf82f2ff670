//! What a request for a connection says of it, as the object that policies and webhooks see, and back.
//!
//! In: a query, what follows the subresource in the path. Out: an object of the subresource's kind; a query
//! of what became of it. Never: asks anybody.
//!
//! Source: kubernetes v1.36.3 `pkg/apis/core/v1/conversion.go`; apiserver v0.36.3
//! `endpoints/handlers/get.go`.

use forebay_apimachinery::options::Query;
use forebay_apimachinery::{GroupVersionKind, Status};
use serde_json::{Map, Value, json};

const STREAMS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];
const CONTAINER: &str = "container";
const COMMAND: &str = "command";
const PORTS: &str = "ports";

/// The object; none for what nobody judges, such as logs.
///
/// - `rest`: what follows the subresource in the path.
///
/// # Errors
/// 400: a port is no port.
pub fn of(kind: &GroupVersionKind, query: &Query, rest: &str) -> Result<Option<Value>, Status> {
    let mut options = Map::new();
    options.insert("kind".into(), json!(*kind.kind));
    options.insert("apiVersion".into(), json!(kind.api_version().to_string()));
    let streams = |options: &mut Map<String, Value>| {
        for name in STREAMS.into_iter().filter(|name| query.boolean(name) == Some(true)) {
            options.insert(name.into(), Value::Bool(true));
        }
        if let Some(container) = query.first(CONTAINER).filter(|container| !container.is_empty()) {
            options.insert(CONTAINER.into(), json!(container));
        }
    };
    match &*kind.kind {
        "PodAttachOptions" => streams(&mut options),
        "PodExecOptions" => {
            streams(&mut options);
            let words: Vec<&str> = query.all(COMMAND).collect();
            // Of none upstream says so, too.
            options.insert(COMMAND.into(), if words.is_empty() { Value::Null } else { json!(words) });
        }
        "PodPortForwardOptions" => {
            let ports = query.all(PORTS).flat_map(|ports| ports.split(',')).map(port);
            let ports = ports.collect::<Result<Vec<u16>, Status>>()?;
            if !ports.is_empty() {
                options.insert(PORTS.into(), json!(ports));
            }
        }
        "PodProxyOptions" | "ServiceProxyOptions" | "NodeProxyOptions" => {
            if !rest.is_empty() {
                options.insert("path".into(), json!(rest));
            }
        }
        _ => return Ok(None),
    }
    Ok(Some(Value::Object(options)))
}

fn port(text: &str) -> Result<u16, Status> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|_| {
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        let why = format!("cannot convert to []int32: strconv.ParseUint: parsing {text:?}: {why}");
        Status::bad_request(why)
    })
}

/// The query of a request that says the same of a connection as `options`.
pub fn query(options: &Value) -> Query {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: String| pairs.push((name.to_owned(), value));
    for name in STREAMS.into_iter().filter(|name| options[*name] == true) {
        add(name, "true".to_owned());
    }
    if let Some(container) = options[CONTAINER].as_str() {
        add(CONTAINER, container.to_owned());
    }
    let items = |name: &str| options[name].as_array().map(Vec::as_slice).unwrap_or_default();
    for word in items(COMMAND).iter().filter_map(Value::as_str) {
        add(COMMAND, word.to_owned());
    }
    for port in items(PORTS) {
        add(PORTS, port.to_string());
    }
    Query::of(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, query: &str) -> Result<Option<Value>, Status> {
        of(&GroupVersionKind::new("", "v1", kind), &Query::parse(query), "/index.html")
    }

    #[test]
    fn a_query_is_an_object_and_that_the_same_query() {
        for (kind, query, want) in [
            (
                "PodExecOptions",
                "stdin=true&tty=1&container=c&command=sh&command=-c",
                json!({ "stdin": true, "tty": true, "container": "c", "command": ["sh", "-c"] }),
            ),
            ("PodExecOptions", "stdout=false&stderr=0&container=", json!({ "command": null })),
            ("PodAttachOptions", "stdout&command=sh", json!({ "stdout": true })),
            ("PodPortForwardOptions", "ports=80,81&ports=82", json!({ "ports": [80, 81, 82] })),
            ("PodPortForwardOptions", "", json!({})),
            ("ServiceProxyOptions", "path=ignored", json!({ "path": "/index.html" })),
        ] {
            let mut want = want;
            want["kind"] = json!(kind);
            want["apiVersion"] = json!("v1");
            let made = read(kind, query).expect("in order").expect("there");
            assert_eq!(made, want, "{kind} {query}");
            if !kind.ends_with("ProxyOptions") {
                let back = super::query(&made);
                assert_eq!(of(&GroupVersionKind::new("", "v1", kind), &back, ""), Ok(Some(made)));
            }
        }
        assert_eq!(read("PodLogOptions", "follow=true"), Ok(None));
    }

    #[test]
    fn a_port_that_is_none_is_refused_in_gos_words() {
        for (port, why) in [("x", "invalid syntax"), ("", "invalid syntax"), ("65536", "value out of range")]
        {
            let refused = read("PodPortForwardOptions", &format!("ports={port}")).expect_err("refused");
            let why = format!("cannot convert to []int32: strconv.ParseUint: parsing {port:?}: {why}");
            assert_eq!(refused.message, why);
        }
    }
}
