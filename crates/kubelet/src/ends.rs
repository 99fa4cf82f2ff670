//! What a request to `proxy` leads to: who listens in a pod, behind a service, on a node.
//!
//! In: the name in a path, objects as they are stored. Out: an address and whether it is encrypted there; or
//! what is wrong, in upstream's words. Never: an address of this machine itself, or of its link.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/strategy.go`, `registry/core/service/storage/storage.go`,
//! `registry/core/node/strategy.go`.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_apimachinery::json::Reader;
use forebay_apimachinery::{Reason, Status};
use forebay_proxy::{ConnectRequest, cleaned, is_global};
use forebay_registry::Registry;

use crate::connect::read;
use crate::limits::{ADDRESSES_LOOKED_AT_MAX, NAME_BYTES_MAX, POD_BYTES_LOOKED_AT_MAX};
use crate::members::{Passed, elements, members, number, of_object, text};
use crate::place::{at, escape_part};

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
pub fn of_pod(pod: &[u8], scheme: &str, port: &str) -> Result<End, Status> {
    let (mut declared, mut addresses) = (None, Addresses::default());
    of_object(pod, |member, json| match member {
        b"spec" => members(json, |member, json| match member {
            b"containers" => elements(json, |json| {
                members(json, |member, json| match member {
                    b"ports" => elements(json, |json| {
                        if declared.is_none() {
                            let mut number_of_port = None;
                            members(json, |member, json| match member {
                                b"containerPort" => number(json).map(|number| number_of_port = number),
                                _ => Ok(()),
                            })?;
                            declared = Some(number_of_port.unwrap_or_default());
                        }
                        Ok(())
                    }),
                    _ => Ok(()),
                })
            }),
            _ => Ok(()),
        }),
        b"status" => addresses.read(json),
        _ => Ok(()),
    })?;
    let port = match (port, declared) {
        ("", Some(declared)) => declared.to_string(),
        (port, _) => port.to_owned(),
    };
    let ip =
        if addresses.all[0].is_empty() { addresses.alone } else { std::mem::take(&mut addresses.all[0]) };
    match ip.parse().is_ok_and(is_global) {
        true => Ok(End::new(scheme, &ip, &port)),
        false => Err(Status::bad_request("address not allowed")),
    }
}

/// The addresses of a pod: it has two at most.
#[derive(Default)]
struct Addresses<'a> {
    all: [Cow<'a, str>; 2],
    // From before it could have two.
    alone: Cow<'a, str>,
}

impl<'a> Addresses<'a> {
    /// Reads them in a pod's status.
    fn read(&mut self, json: &mut Reader<'a>) -> Passed {
        let Addresses { all, alone } = self;
        members(json, |member, json| match member {
            b"podIP" => text(json).map(|text| *alone = text),
            b"podIPs" => {
                let mut places = all.iter_mut();
                elements(json, |json| {
                    let mut place = places.next();
                    members(json, |member, json| match (member, &mut place) {
                        (b"ip", Some(place)) => text(json).map(|text| **place = text),
                        _ => Ok(()),
                    })
                })
            }
            _ => Ok(()),
        })
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
                let none = || unavailable(format!("no service port {number} found for service {name:?}"));
                let service = ("services", namespace, name);
                read(registry, service, move |service| port_name(service, number)).await?.ok_or_else(none)?
            }
        };
        let begin = self.0.fetch_add(1, Ordering::Relaxed);
        let of_namespace = asked.namespace.to_owned();
        let some = move |endpoints: &[u8]| candidates(endpoints, &of_namespace, &port, begin);
        let found = read(registry, ("endpoints", namespace, name), some).await.map_err(|status| {
            // Upstream says it of what was asked for.
            let is_none = status.reason == Reason::NotFound;
            if is_none { Status::not_found("", "services", name) } else { status }
        });
        let Candidates { some, has_subsets } = found?;
        let mut looked_at_bytes = 0;
        for Candidate { ip, pod, port } in some {
            if looked_at_bytes > POD_BYTES_LOOKED_AT_MAX {
                break;
            }
            let wanted = ip.clone();
            let has_it = move |pod: &[u8]| Ok((has_address(pod, &wanted)?, pod.len()));
            // Whoever writes endpoints may name any address: it is that of a pod of the namespace.
            let looked_at = read(registry, ("pods", namespace, &pod), has_it).await;
            let (is_its, bytes) = looked_at.unwrap_or_default();
            if is_its {
                return Ok(End::new(scheme, &ip, &port.to_string()));
            }
            looked_at_bytes += bytes;
        }
        let nobody = |of: &str| unavailable(format!("no endpoints available for service {of:?}"));
        Err(nobody(if has_subsets { asked.name } else { name }))
    }
}

/// The name of the port of a service that has this number.
fn port_name(service: &[u8], wanted: i64) -> Result<Option<String>, Status> {
    let mut found = None;
    of_object(service, |member, json| match member {
        b"spec" => members(json, |member, json| match member {
            b"ports" => elements(json, |json| {
                let (mut port_number, mut name) = (None, Cow::default());
                members(json, |member, json| match member {
                    b"port" => number(json).map(|number| port_number = number),
                    b"name" => text(json).map(|text| name = text),
                    _ => Ok(()),
                })?;
                if found.is_none() && port_number == Some(wanted) {
                    found = Some(name.into_owned());
                }
                Ok(())
            }),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    Ok(found)
}

/// Whether a pod has an address.
fn has_address(pod: &[u8], ip: &str) -> Result<bool, Status> {
    let mut addresses = Addresses::default();
    of_object(pod, |member, json| match member {
        b"status" => addresses.read(json),
        _ => Ok(()),
    })?;
    // Few: a pod has two.
    Ok(!ip.is_empty() && addresses.all.iter().any(|known| known == ip))
}

/// An address of a service that may be a pod's.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    ip: String,
    pod: String,
    port: i64,
}

#[derive(Debug, PartialEq, Eq)]
struct Candidates {
    some: Vec<Candidate>,
    has_subsets: bool,
}

/// Addresses of a service, so many as are looked at, from somewhere on and around the end of all.
fn candidates(endpoints: &[u8], namespace: &str, port: &str, begin: usize) -> Result<Candidates, Status> {
    let mut pass = Pass { namespace, port, begin: 0, all: 0, max: 0, subsets: 0, seen: 0, found: Vec::new() };
    pass.over(endpoints)?;
    let (all, subsets) = (pass.seen, pass.subsets);
    let begin = begin.checked_rem(all).unwrap_or(0);
    let mut pass = Pass { begin, all, max: ADDRESSES_LOOKED_AT_MAX.min(all), seen: 0, ..pass };
    if all > 0 {
        pass.over(endpoints)?;
    }
    pass.found.sort_by_key(|(rank, _)| *rank);
    Ok(Candidates { some: pass.found.into_iter().map(|(_, one)| one).collect(), has_subsets: subsets > 0 })
}

/// A pass over the addresses of a service: the first one counts them, the second one takes some.
struct Pass<'p> {
    namespace: &'p str,
    port: &'p str,
    begin: usize,
    // How many there are, and how many of these are taken.
    all: usize,
    max: usize,
    subsets: usize,
    seen: usize,
    // With their places behind the first one; <= max.
    found: Vec<(usize, Candidate)>,
}

impl Pass<'_> {
    fn over(&mut self, endpoints: &[u8]) -> Result<(), Status> {
        of_object(endpoints, |member, json| match member {
            b"subsets" => elements(json, |json| self.over_subset(json)),
            _ => Ok(()),
        })
    }

    fn over_subset(&mut self, json: &mut Reader<'_>) -> Passed {
        self.subsets += 1;
        let (seen, found, mut port) = (self.seen, self.found.len(), None);
        members(json, |member, json| match member {
            b"addresses" => elements(json, |json| self.over_address(json)),
            b"ports" => elements(json, |json| {
                let (mut name, mut port_number) = (Cow::default(), None);
                members(json, |member, json| match member {
                    b"name" => text(json).map(|text| name = text),
                    b"port" => number(json).map(|number| port_number = number),
                    _ => Ok(()),
                })?;
                if port.is_none() && name == self.port {
                    port = Some(port_number.unwrap_or_default());
                }
                Ok(())
            }),
            _ => Ok(()),
        })?;
        match port {
            Some(port) => self.found[found..].iter_mut().for_each(|(_, one)| one.port = port),
            None => {
                self.seen = seen;
                self.found.truncate(found);
            }
        }
        Ok(())
    }

    fn over_address(&mut self, json: &mut Reader<'_>) -> Passed {
        let (mut ip, mut pod, mut namespace) = (Cow::default(), Cow::default(), Cow::default());
        members(json, |member, json| match member {
            b"ip" => text(json).map(|text| ip = text),
            b"targetRef" => members(json, |member, json| match member {
                b"name" => text(json).map(|text| pod = text),
                b"namespace" => text(json).map(|text| namespace = text),
                _ => Ok(()),
            }),
            _ => Ok(()),
        })?;
        let may_be = |text: &str| !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        if namespace != self.namespace || !may_be(&pod) || !may_be(&ip) {
            return Ok(());
        }
        let rank = (self.seen + self.all - self.begin).checked_rem(self.all).unwrap_or(0);
        self.seen += 1;
        if rank < self.max {
            let (ip, pod) = (ip.into_owned(), pod.into_owned());
            self.found.push((rank, Candidate { ip, pod, port: 0 }));
        }
        Ok(())
    }
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
        escape_part(part.strip_suffix('/').unwrap_or(part), &mut path);
        if part.ends_with('/') {
            path.push('/');
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
            .to_string()
        };
        let address = |ip: &str, scheme: &str, port: &str| {
            of_pod(pod(ip).as_bytes(), scheme, port)
                .map(|end| end.address().to_string())
                .map_err(|why| why.message)
        };
        assert_eq!(address("10.0.0.1", "", ""), Ok("10.0.0.1:8080".to_owned()));
        assert_eq!(address("fd00::1", "https", "8443"), Ok("[fd00::1]:8443".to_owned()));
        for ip in ["127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "", "name"] {
            assert_eq!(address(ip, "", ""), Err("address not allowed".to_owned()), "{ip}");
        }
        let bare = json!({ "spec": {}, "status": { "podIP": "10.0.0.1" } }).to_string();
        assert_eq!(&*of_pod(bare.as_bytes(), "https", "").expect("an end").address(), "10.0.0.1:443");
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
            (parts(&["", "x", "", "y"]), "//", "/x/y/"),
            (parts(&["$&+,:;=@", "!'()*[]"]), "", "/$&+,:;=@/%21%27%28%29%2A%5B%5D"),
        ] {
            let asked =
                format!("{PREFIX}{}{end}", rest.iter().map(|it| format!("/{it}")).collect::<String>());
            assert_eq!((prefix(&asked, &rest), path(&asked, &rest)), (PREFIX, want.to_owned()));
        }
    }

    #[test]
    fn those_who_look_begin_behind_one_another() {
        let address = |ip: &str, pod: &str, of: &str| json!({ "ip": ip, "targetRef": { "name": pod, "namespace": of } });
        let subset = |addresses: Vec<Value>, port: &str, number: u16| json!({ "addresses": addresses, "ports": [{ "name": "else" }, { "name": port, "port": number }] });
        let endpoints = json!({ "metadata": {}, "subsets": [
            subset(vec![address("10.0.0.1", "a", "n"), address("10.0.0.9", "z", "other")], "web", 80),
            subset(vec![address("10.0.0.8", "y", "n")], "metrics", 90),
            subset(vec![address("10.0.0.2", "b", "n"), json!({ "ip": "10.0.0.7" }), address("10.0.0.3", "c", "n")], "web", 81),
        ] })
        .to_string();
        let found = |port: &str, begin| {
            let found = candidates(endpoints.as_bytes(), "n", port, begin).expect("in order");
            assert!(found.has_subsets);
            found.some.iter().map(|one| format!("{} {} {}", one.pod, one.ip, one.port)).collect::<Vec<_>>()
        };
        assert_eq!(found("web", 0), ["a 10.0.0.1 80", "b 10.0.0.2 81", "c 10.0.0.3 81"]);
        assert_eq!(found("web", 4), ["b 10.0.0.2 81", "c 10.0.0.3 81", "a 10.0.0.1 80"]);
        assert_eq!((found("metrics", 7), found("none", 1)), (vec!["y 10.0.0.8 90".to_owned()], Vec::new()));
        let none = Candidates { some: Vec::new(), has_subsets: false };
        assert_eq!(candidates(b"\"metadata\":{}}", "n", "", 3), Ok(none));
    }

    #[test]
    fn of_many_addresses_some_are_held() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let address = |index: usize| match index % 2 {
            0 => format!(r#"{{"ip":"10.0.0.1","targetRef":{{"name":"p-{index}","namespace":"n"}}}}"#),
            _ => format!(r#"{{"ip":"10.0.0.1","targetRef":{{"name":"{long}","namespace":"n"}}}}"#),
        };
        let all: Vec<String> = (0..20_000).map(address).collect();
        let endpoints =
            format!(r#"{{"subsets":[{{"addresses":[{}],"ports":[{{"port":1}}]}}]}}"#, all.join(","));
        let found = candidates(endpoints.as_bytes(), "n", "", 9_990).expect("in order").some;
        let pods: Vec<&str> = found.iter().map(|one| &*one.pod).collect();
        assert_eq!((pods.len(), pods[0], pods[31]), (ADDRESSES_LOOKED_AT_MAX, "p-19980", "p-42"));
    }

    #[test]
    fn an_address_is_one_of_a_pods_two() {
        let pod = json!({ "status": { "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }] } });
        let has = |ip| has_address(pod.to_string().as_bytes(), ip).expect("in order");
        assert_eq!((has("10.0.0.1"), has("fd00::1"), has("10.0.0.2"), has("")), (true, true, false, false));
    }
}
