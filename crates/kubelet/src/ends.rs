//! What a request to `proxy` leads to: who listens in a pod, behind a service, on a node.
//!
//! In: the name in a path, objects as trees. Out: an address and whether it is encrypted there; or what is
//! wrong, in upstream's words. Never: an address of this machine itself, or of its link.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/strategy.go`, `registry/core/service/storage/storage.go`,
//! `registry/core/node/strategy.go`.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_apimachinery::{Reason, Status};
use forebay_proxy::{ConnectRequest, cleaned, is_global};
use forebay_registry::Registry;
use http::Method;
use serde_json::Value;

use crate::connect::object;
use crate::limits::ADDRESSES_LOOKED_AT_MAX;
use crate::place::{at, escape};

/// By which it may be asked.
pub const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];

/// Who listens.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    pub host: String,
    port: String,
    pub is_encrypted: bool,
}

/// Where the search for one of several begins: behind the one before.
#[derive(Default)]
pub struct Ends(AtomicUsize);

impl End {
    /// - `port`: empty for the usual one.
    pub fn new(scheme: &str, host: &str, port: &str) -> End {
        End { host: host.to_owned(), port: port.to_owned(), is_encrypted: scheme == "https" }
    }

    /// Host and port.
    pub fn address(&self) -> Box<str> {
        let usual = if self.is_encrypted { 443 } else { 80 };
        match self.port.parse::<u16>() {
            Ok(port) => at(&self.host, port),
            Err(_) if self.port.is_empty() => at(&self.host, usual),
            // A port that is none is told when it is connected to.
            Err(_) => format!("{}:{}", self.host, self.port).into(),
        }
    }
}

/// Scheme, name and port of `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
///
/// # Errors
/// 400.
pub fn split<'n>(kind: &str, id: &'n str) -> Result<(&'n str, &'n str, &'n str), Status> {
    let parts: Vec<&str> = id.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => ("", "", ""),
    };
    match !name.is_empty() && matches!(scheme, "" | "http" | "https") {
        true => Ok((scheme, name, port)),
        false => Err(Status::bad_request(format!("invalid {kind} request {id:?}"))),
    }
}

/// Who listens in a pod, at its first port where none is named.
///
/// # Errors
/// 400: it has no address that may be asked.
pub fn of_pod(pod: &Value, scheme: &str, port: &str) -> Result<End, Status> {
    let declared = || {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let mut ports = containers.filter_map(|container| container["ports"].as_array()?.first());
        ports.next().and_then(|port| port["containerPort"].as_u64()).map(|port| port.to_string())
    };
    let port = if port.is_empty() { declared().unwrap_or_default() } else { port.to_owned() };
    let status = &pod["status"];
    let ip = status["podIPs"][0]["ip"].as_str().or(status["podIP"].as_str()).unwrap_or_default();
    match ip.parse().is_ok_and(is_global) {
        true => Ok(End::new(scheme, ip, &port)),
        false => Err(Status::bad_request("address not allowed")),
    }
}

impl Ends {
    /// Who listens behind a service: a pod that is one of its endpoints.
    ///
    /// # Errors
    /// 404, 503.
    pub async fn of_service(&self, registry: &Registry, asked: ConnectRequest<'_>) -> Result<End, Status> {
        let (scheme, name, port) = split("service", asked.name)?;
        let unavailable = |why: String| Status::new(Reason::ServiceUnavailable, why);
        let namespace = Some(asked.namespace);
        let port = match port.parse::<i64>() {
            Err(_) => port.to_owned(),
            Ok(number) => {
                let service = object(registry, "services", namespace, name).await?;
                let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
                // Once: for a request.
                let known = ports.find(|known| known["port"].as_i64() == Some(number));
                let none = || unavailable(format!("no service port {number} found for service {name:?}"));
                known.ok_or_else(none)?["name"].as_str().unwrap_or_default().to_owned()
            }
        };
        let endpoints = object(registry, "endpoints", namespace, name).await.map_err(|status| {
            // Upstream says it of what was asked for.
            let is_none = status.reason == Reason::NotFound;
            if is_none { Status::not_found("", "services", name) } else { status }
        })?;
        let subsets = endpoints["subsets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let nobody = |of: &str| unavailable(format!("no endpoints available for service {of:?}"));
        if subsets.is_empty() {
            return Err(nobody(name));
        }
        let (begin, mut looked_at) = (self.0.fetch_add(1, Ordering::Relaxed), 0);
        for subset in turned(subsets, begin) {
            let addresses = subset["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut ports = subset["ports"].as_array().into_iter().flatten();
            // Few: each subset once for a request.
            let Some(found) = ports.find(|known| known["name"].as_str().unwrap_or_default() == port) else {
                continue;
            };
            for address in turned(addresses, begin) {
                looked_at += 1;
                if looked_at > ADDRESSES_LOOKED_AT_MAX {
                    return Err(nobody(asked.name));
                }
                if is_pods(registry, asked.namespace, address).await {
                    let ip = address["ip"].as_str().unwrap_or_default();
                    return Ok(End::new(scheme, ip, &found["port"].as_u64().unwrap_or(0).to_string()));
                }
            }
        }
        Err(nobody(asked.name))
    }
}

/// All of `all`, from somewhere on.
fn turned(all: &[Value], begin: usize) -> impl Iterator<Item = &Value> {
    let begin = begin.checked_rem(all.len()).unwrap_or(0);
    all[begin..].iter().chain(&all[..begin])
}

/// Whether it is the address of a pod of the namespace: whoever writes endpoints may name any.
async fn is_pods(registry: &Registry, namespace: &str, address: &Value) -> bool {
    let (of, ip) = (&address["targetRef"], address["ip"].as_str());
    let Some(name) = of["name"].as_str().filter(|_| of["namespace"].as_str() == Some(namespace)) else {
        return false;
    };
    let Ok(pod) = object(registry, "pods", Some(namespace), name).await else { return false };
    let mut addresses = pod["status"]["podIPs"].as_array().into_iter().flatten();
    // Few: a pod has two.
    ip.is_some() && addresses.any(|known| known["ip"].as_str() == ip)
}

/// The path that was asked for without what follows the subresource.
pub fn prefix<'p>(path: &'p str, rest: &[String]) -> &'p str {
    let path = path.trim_end_matches('/');
    let behind: usize = rest.iter().map(|part| part.len() + 1).sum();
    path.get(..path.len().saturating_sub(behind)).unwrap_or(path)
}

/// What follows it, as it is asked for there.
pub fn path(asked: &str, rest: &[String]) -> String {
    let mut joined = String::new();
    for part in rest {
        joined.push('/');
        joined.push_str(part);
    }
    if asked.ends_with('/') {
        joined.push('/');
    }
    let mut path = String::new();
    for part in cleaned(&joined).split_inclusive('/') {
        escape(part.strip_suffix('/').unwrap_or(part), &mut path);
        if part.ends_with('/') {
            path.push('/');
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_may_have_a_scheme_and_a_port() {
        let split = |id| split("pod", id).map_err(|status| status.message);
        assert_eq!(split("a"), Ok(("", "a", "")));
        assert_eq!(split("a:b"), Ok(("", "a", "b")));
        assert_eq!(split("https:a:"), Ok(("https", "a", "")));
        for id in ["ftp:a:1", ":1", "a:b:c:d", "https::1"] {
            assert_eq!(split(id), Err(format!("invalid pod request {id:?}")));
        }
    }

    #[test]
    fn a_pod_listens_at_its_first_port_and_not_on_this_machine() {
        let pod = |ip: &str| {
            json!({
                "spec": { "containers": [{}, { "ports": [{ "containerPort": 8080 }, { "containerPort": 1 }] }] },
                "status": { "podIPs": [{ "ip": ip }] },
            })
        };
        let address = |ip: &str, scheme: &str, port: &str| {
            of_pod(&pod(ip), scheme, port).map(|end| end.address().to_string()).map_err(|why| why.message)
        };
        assert_eq!(address("10.0.0.1", "", ""), Ok("10.0.0.1:8080".to_owned()));
        assert_eq!(address("fd00::1", "https", "8443"), Ok("[fd00::1]:8443".to_owned()));
        for ip in ["127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "", "name"] {
            assert_eq!(address(ip, "", ""), Err("address not allowed".to_owned()), "{ip}");
        }
        let bare = json!({ "spec": {}, "status": { "podIP": "10.0.0.1" } });
        assert_eq!(&*of_pod(&bare, "https", "").expect("an end").address(), "10.0.0.1:443");
    }

    #[test]
    fn what_follows_the_subresource_is_the_path_there() {
        let parts = |parts: &[&str]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        const PREFIX: &str = "/api/v1/namespaces/n/pods/p/proxy";
        for (rest, end, want) in [
            (parts(&[]), "/", "/"),
            (parts(&["a", "b"]), "", "/a/b"),
            (parts(&["a b", "ü", "x?y"]), "/", "/a%20b/%C3%BC/x%3Fy/"),
            (parts(&["..", "x"]), "", "/x"),
        ] {
            let asked =
                format!("{PREFIX}{}{end}", rest.iter().map(|it| format!("/{it}")).collect::<String>());
            assert_eq!((prefix(&asked, &rest), path(&asked, &rest)), (PREFIX, want.to_owned()));
        }
    }

    #[test]
    fn those_who_look_begin_behind_one_another() {
        let all = [json!(1), json!(2), json!(3)];
        let from = |begin| turned(&all, begin).map(|one| one.as_i64().unwrap_or(0)).collect::<Vec<_>>();
        assert_eq!((from(0), from(4), turned(&[], 7).count()), (vec![1, 2, 3], vec![2, 3, 1], 0));
    }
}
