//! Services: what they are given, in the order and words of kube-apiserver v1.36.3.
//!
//! In: writes as text, pools that hand out addresses from .100 and ports from 31000 on, and of which
//! 10.0.0.10 and port 30080 are taken. Out: what the Service has then, or why not. Never: a store.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::services::{
    Allocation, AllocationError, Family, Pools, Unavailable, allocate_changed, allocate_new, holdings,
};
use crate::testing::edited;

struct Fake {
    families: Vec<Family>,
    taken: Vec<Allocation>,
    next: u16,
}

const V4: &[Family] = &[Family::V4];
const BOTH: &[Family] = &[Family::V4, Family::V6];
const V6_FIRST: &[Family] = &[Family::V6, Family::V4];

impl Fake {
    fn new(families: &[Family]) -> Fake {
        let address = Allocation::Address(IpAddr::from([10, 0, 0, 10]));
        Fake { families: families.to_vec(), taken: vec![address, Allocation::Port(30_080)], next: 0 }
    }

    fn take(&mut self, item: Allocation, what: &str) -> Result<(), Unavailable> {
        if self.taken.contains(&item) {
            return Err(Unavailable::Because(format!("provided {what} is already allocated")));
        }
        self.taken.push(item);
        Ok(())
    }
}

impl Pools for Fake {
    fn families(&self) -> &[Family] {
        &self.families
    }

    fn address(&mut self, wanted: Option<IpAddr>, family: Family) -> Result<IpAddr, Unavailable> {
        let next = match family {
            Family::V4 => "10.0.0.100",
            Family::V6 => "fd00::100",
        };
        let address = wanted.unwrap_or_else(|| next.parse().expect("an address"));
        self.take(Allocation::Address(address), "IP").map(|()| address)
    }

    fn port(&mut self, wanted: Option<i64>) -> Result<i64, Unavailable> {
        let port = wanted.unwrap_or_else(|| {
            self.next += 1;
            i64::from(30_999 + self.next)
        });
        match u16::try_from(port) {
            Ok(number) if number >= 30_000 => self.take(Allocation::Port(number), "port").map(|()| port),
            _ => Err(Unavailable::Because("not in the range".into())),
        }
    }
}

/// What is left empty is ClusterIP, and TCP.
fn service() -> Value {
    json!({
        "metadata": {"name": "sv"},
        "spec": {
            "type": "ClusterIP", "selector": {"a": "b"},
            "ports": [{"name": "x", "port": 80, "protocol": "TCP"}],
        },
    })
}

/// `addresses / families / policy / node ports / health check port`, without what is not there.
fn shown(service: &Value) -> String {
    let spec = &service["spec"];
    let all = |value: &Value| match value.as_array() {
        Some(all) => all.iter().map(|one| one.as_str().unwrap_or("?")).collect::<Vec<_>>().join(","),
        None => String::new(),
    };
    let ports = spec["ports"].as_array().into_iter().flatten();
    let ports: Vec<String> = ports.map(|port| port["nodePort"].as_i64().unwrap_or(0).to_string()).collect();
    let parts = [
        all(&spec["clusterIPs"]),
        all(&spec["ipFamilies"]),
        spec["ipFamilyPolicy"].as_str().unwrap_or("").to_string(),
        ports.join(","),
        spec["healthCheckNodePort"].as_i64().map(|port| port.to_string()).unwrap_or_default(),
    ];
    let first = spec["clusterIPs"][0].as_str().unwrap_or("");
    assert_eq!(spec["clusterIP"].as_str().unwrap_or(""), first, "clusterIP is the first of clusterIPs");
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" / ")
}

fn told(done: Result<(), AllocationError>, service: &Value) -> String {
    match done {
        Ok(()) => shown(service),
        Err(AllocationError::Unseen) => "look first".into(),
        Err(AllocationError::Internal(why)) => format!("internal: {why}"),
        Err(AllocationError::Unknown(why)) => format!("error: {why}"),
        Err(AllocationError::Invalid(causes)) => {
            let causes: Vec<String> =
                causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
            causes.join("; ")
        }
    }
}

fn created(families: &[Family], edits: &str) -> (Value, Result<(), AllocationError>) {
    let mut service = edited(&service(), edits);
    let done = allocate_new(service.as_object_mut().expect("an object"), &mut Fake::new(families));
    (service, done)
}

fn check_creates(families: &[Family], rows: &[(&str, &str)]) {
    for (edits, expected) in rows {
        let (service, done) = created(families, edits);
        assert_eq!(told(done, &service), *expected, "{edits}");
    }
}

/// Rows of edits to create with, edits to change that with, and the outcome.
fn check_updates(families: &[Family], rows: &[(&str, &str, &str)]) {
    for (before, edits, expected) in rows {
        let (old, done) = created(families, before);
        assert_eq!(done, Ok(()), "{before}");
        let mut new = edited(&old, edits);
        let mut pools = Fake::new(families);
        pools.taken.extend(holdings(old.as_object().expect("an object")));
        pools.next = 500;
        let (members, old) = (new.as_object_mut().expect("an object"), old.as_object().expect("an object"));
        let done = allocate_changed(members, old, &mut pools);
        assert_eq!(told(done, &new), *expected, "{before} => {edits}");
    }
}

#[test]
fn new_services_are_given_an_address() {
    check_creates(
        V4,
        &[
            ("", "10.0.0.100 / IPv4 / SingleStack / 0"),
            (r#"spec.clusterIP="10.0.0.9""#, "10.0.0.9 / IPv4 / SingleStack / 0"),
            (
                r#"spec.clusterIP="10.0.0.10""#,
                r#"spec.clusterIPs: Invalid value: ["10.0.0.10"]: failed to allocate IP 10.0.0.10: provided IP is already allocated"#,
            ),
            (
                r#"spec.clusterIPs=["10.0.0.9"]"#,
                r#"spec.clusterIPs: Invalid value: ["10.0.0.9"]: must be empty when `clusterIP` is not specified"#,
            ),
            (
                r#"spec.clusterIP="fd00::1""#,
                r#"spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster"#,
            ),
            (r#"spec.clusterIP="None""#, "None / IPv4 / SingleStack / 0"),
            (r#"spec.clusterIP="None";spec.selector=null"#, "None / IPv4,IPv6 / RequireDualStack / 0"),
            (
                r#"spec.clusterIP="None";spec.selector=null;spec.ipFamilyPolicy="SingleStack""#,
                "None / IPv4 / SingleStack / 0",
            ),
            (
                r#"spec.clusterIP="None";spec.selector=null;spec.ipFamilies=["IPv6"]"#,
                "None / IPv6,IPv4 / RequireDualStack / 0",
            ),
            (r#"spec.type="ExternalName""#, "0"),
            (
                r#"spec.ipFamilies=["IPv6"]"#,
                r#"spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster"#,
            ),
            (r#"spec.ipFamilyPolicy="PreferDualStack""#, "10.0.0.100 / IPv4 / PreferDualStack / 0"),
            (
                r#"spec.ipFamilyPolicy="RequireDualStack""#,
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services"#,
            ),
            (
                r#"spec.ipFamilyPolicy="PreferDualStack";spec.ipFamilies=["IPv4","IPv6"]"#,
                r#"spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster"#,
            ),
            (
                r#"spec.clusterIP="10.0.0.9";spec.clusterIPs=["10.0.0.9","fd00::1"]"#,
                r#"spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified; spec.clusterIPs[1]: Invalid value: ["10.0.0.9","fd00::1"]: IPv6 is not configured on this cluster"#,
            ),
        ],
    );
    check_creates(
        BOTH,
        &[
            ("", "10.0.0.100 / IPv4 / SingleStack / 0"),
            (r#"spec.ipFamilies=["IPv6"]"#, "fd00::100 / IPv6 / SingleStack / 0"),
            (r#"spec.clusterIP="fd00::9""#, "fd00::9 / IPv6 / SingleStack / 0"),
            (
                r#"spec.ipFamilyPolicy="PreferDualStack""#,
                "10.0.0.100,fd00::100 / IPv4,IPv6 / PreferDualStack / 0",
            ),
            (
                r#"spec.ipFamilyPolicy="RequireDualStack";spec.ipFamilies=["IPv6"]"#,
                "fd00::100,10.0.0.100 / IPv6,IPv4 / RequireDualStack / 0",
            ),
            (
                r#"spec.ipFamilyPolicy="RequireDualStack";spec.clusterIP="fd00::9""#,
                "fd00::9,10.0.0.100 / IPv6,IPv4 / RequireDualStack / 0",
            ),
            (
                r#"spec.ipFamilyPolicy="RequireDualStack";spec.clusterIP="10.0.0.10""#,
                r#"spec.clusterIPs: Invalid value: ["10.0.0.10",""]: failed to allocate IP 10.0.0.10: provided IP is already allocated"#,
            ),
            (
                r#"spec.ipFamilies=["IPv4","IPv6"]"#,
                r#"spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"#,
            ),
            (
                r#"spec.clusterIP="None";spec.ipFamilyPolicy="PreferDualStack""#,
                "None / IPv4,IPv6 / PreferDualStack / 0",
            ),
        ],
    );
    check_creates(
        V6_FIRST,
        &[
            ("", "fd00::100 / IPv6 / SingleStack / 0"),
            (
                r#"spec.ipFamilyPolicy="PreferDualStack""#,
                "fd00::100,10.0.0.100 / IPv6,IPv4 / PreferDualStack / 0",
            ),
        ],
    );
}

#[test]
fn new_services_are_given_node_ports() {
    check_creates(
        V4,
        &[
            (r#"spec.type="NodePort""#, "10.0.0.100 / IPv4 / SingleStack / 31000"),
            (
                r#"spec.type="NodePort";spec.ports.0.nodePort=30001"#,
                "10.0.0.100 / IPv4 / SingleStack / 30001",
            ),
            (
                r#"spec.type="NodePort";spec.ports.0.nodePort=30080"#,
                "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated",
            ),
            (
                r#"spec.type="NodePort";spec.ports.0.nodePort=80"#,
                "spec.ports[0].nodePort: Invalid value: 80: not in the range",
            ),
            (
                r#"spec.type="NodePort";spec.ports.0.nodePort=-1"#,
                "spec.ports[0].nodePort: Invalid value: -1: not in the range",
            ),
            (
                r#"spec.type="NodePort";spec.ports.+={"port":80,"protocol":"UDP"}"#,
                "10.0.0.100 / IPv4 / SingleStack / 31000,31000",
            ),
            (
                r#"spec.type="NodePort";spec.ports.+={"port":80,"protocol":"UDP","nodePort":30001}"#,
                "10.0.0.100 / IPv4 / SingleStack / 30001,30001",
            ),
            (
                r#"spec.type="NodePort";spec.ports.0.nodePort=30002;spec.ports.+={"port":80,"protocol":"UDP","nodePort":30001}"#,
                "10.0.0.100 / IPv4 / SingleStack / 30002,30001",
            ),
            (
                r#"spec.type="NodePort";spec.ports.+={"port":81,"protocol":"TCP"}"#,
                "10.0.0.100 / IPv4 / SingleStack / 31000,31001",
            ),
            (
                r#"spec.type="NodePort";spec.ports.0.nodePort=30001;spec.ports.+={"port":81,"protocol":"UDP","nodePort":30001}"#,
                "spec.ports[1].nodePort: Invalid value: 30001: provided port is already allocated",
            ),
            (r#"spec.type="LoadBalancer""#, "10.0.0.100 / IPv4 / SingleStack / 31000"),
            (
                r#"spec.type="LoadBalancer";spec.allocateLoadBalancerNodePorts=false"#,
                "10.0.0.100 / IPv4 / SingleStack / 0",
            ),
            (
                r#"spec.type="LoadBalancer";spec.allocateLoadBalancerNodePorts=false;spec.ports.0.nodePort=30001"#,
                "10.0.0.100 / IPv4 / SingleStack / 30001",
            ),
            (
                r#"spec.type="LoadBalancer";spec.externalTrafficPolicy="Local""#,
                "10.0.0.100 / IPv4 / SingleStack / 31000 / 31001",
            ),
            (
                r#"spec.type="LoadBalancer";spec.externalTrafficPolicy="Local";spec.healthCheckNodePort=30003"#,
                "10.0.0.100 / IPv4 / SingleStack / 31000 / 30003",
            ),
            (
                r#"spec.type="LoadBalancer";spec.externalTrafficPolicy="Local";spec.healthCheckNodePort=30080"#,
                "internal: failed to allocate requested HealthCheck NodePort 30080: provided port is already allocated",
            ),
        ],
    );
}

#[test]
fn what_was_given_stays_when_it_is_left_out() {
    check_updates(
        V4,
        &[
            ("", "spec.clusterIP=null;spec.clusterIPs=null", "10.0.0.100 / IPv4 / SingleStack / 0"),
            ("", r#"spec.clusterIP="""#, "10.0.0.100 / IPv4 / SingleStack / 0"),
            ("", "spec.ipFamilies=null;spec.ipFamilyPolicy=null", "10.0.0.100 / IPv4 / SingleStack / 0"),
            (
                r#"spec.type="NodePort""#,
                "spec.ports.0.nodePort=null",
                "10.0.0.100 / IPv4 / SingleStack / 31000",
            ),
            (
                r#"spec.type="NodePort""#,
                r#"spec.type="LoadBalancer";spec.ports.0.nodePort=null"#,
                "10.0.0.100 / IPv4 / SingleStack / 31000",
            ),
            (
                r#"spec.type="NodePort""#,
                r#"spec.ports.0.nodePort=null;spec.ports.0.name="other""#,
                "10.0.0.100 / IPv4 / SingleStack / 31500",
            ),
            (
                r#"spec.type="NodePort""#,
                r#"spec.ports=[{"name":"x","port":1,"protocol":"TCP"},{"name":"y","port":2,"protocol":"TCP","nodePort":31000}]"#,
                "10.0.0.100 / IPv4 / SingleStack / 31500,31000",
            ),
            (
                r#"spec.type="LoadBalancer";spec.externalTrafficPolicy="Local""#,
                "spec.healthCheckNodePort=null",
                "10.0.0.100 / IPv4 / SingleStack / 31000 / 31001",
            ),
        ],
    );
}

#[test]
fn changed_services_are_given_what_they_did_not_need_before() {
    check_updates(
        V4,
        &[
            (
                r#"spec.type="ExternalName""#,
                r#"spec.type="ClusterIP""#,
                "10.0.0.100 / IPv4 / SingleStack / 0",
            ),
            (
                r#"spec.type="ExternalName""#,
                r#"spec.type="ClusterIP";spec.clusterIP="10.0.0.10";spec.clusterIPs=["10.0.0.10"]"#,
                r#"spec.clusterIPs: Invalid value: ["10.0.0.10"]: failed to allocate IP 10.0.0.10: provided IP is already allocated"#,
            ),
            (
                r#"spec.type="ExternalName""#,
                r#"spec.type="ClusterIP";spec.clusterIP="None";spec.clusterIPs=["None"]"#,
                "None / IPv4 / SingleStack / 0",
            ),
            ("", r#"spec.type="NodePort""#, "10.0.0.100 / IPv4 / SingleStack / 31500"),
            (
                "",
                r#"spec.type="NodePort";spec.ports.0.nodePort=30080"#,
                "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated",
            ),
            (
                r#"spec.type="NodePort""#,
                r#"spec.ports.+={"name":"y","port":81,"protocol":"TCP"}"#,
                "10.0.0.100 / IPv4 / SingleStack / 31000,31500",
            ),
            (
                r#"spec.type="NodePort""#,
                r#"spec.ports.+={"name":"y","port":81,"protocol":"UDP","nodePort":31000}"#,
                "10.0.0.100 / IPv4 / SingleStack / 31000,31000",
            ),
            (
                r#"spec.type="NodePort""#,
                r#"spec.ports.+={"name":"y","port":81,"protocol":"TCP","nodePort":31000}"#,
                "error: duplicate nodePort: {TCP 31000}",
            ),
            (
                r#"spec.type="LoadBalancer""#,
                r#"spec.externalTrafficPolicy="Local""#,
                "10.0.0.100 / IPv4 / SingleStack / 31000 / 31500",
            ),
            (
                r#"spec.type="LoadBalancer";spec.allocateLoadBalancerNodePorts=false"#,
                "spec.allocateLoadBalancerNodePorts=true",
                "10.0.0.100 / IPv4 / SingleStack / 31500",
            ),
        ],
    );
}

#[test]
fn a_service_from_before_there_were_addresses_is_given_one_when_it_changes() {
    for (edits, expected) in [
        ("", "10.0.0.100 / IPv4 / SingleStack / 0"),
        (r#"spec.clusterIP="10.0.0.9""#, "10.0.0.9 / IPv4 / SingleStack / 0"),
        (
            r#"spec.clusterIP="10.0.0.10""#,
            r#"spec.clusterIPs: Invalid value: ["10.0.0.10"]: failed to allocate IP 10.0.0.10: provided IP is already allocated"#,
        ),
    ] {
        let (old, mut pools) = (service(), Fake::new(V4));
        let mut new = edited(&old, edits);
        let (members, old) = (new.as_object_mut().expect("an object"), old.as_object().expect("an object"));
        let done = allocate_changed(members, old, &mut pools);
        assert_eq!(told(done, &new), expected, "{edits}");
    }
}

#[test]
fn the_second_stack_comes_and_goes_when_it_is_asked_for() {
    let two = r#"spec.ipFamilyPolicy="RequireDualStack""#;
    let prefers = r#"spec.ipFamilyPolicy="PreferDualStack""#;
    check_updates(
        BOTH,
        &[
            ("", two, "10.0.0.100,fd00::100 / IPv4,IPv6 / RequireDualStack / 0"),
            ("", prefers, "10.0.0.100,fd00::100 / IPv4,IPv6 / PreferDualStack / 0"),
            (
                "",
                r#"spec.clusterIPs.+="fd00::9";spec.ipFamilyPolicy="PreferDualStack""#,
                "10.0.0.100,fd00::9 / IPv4,IPv6 / PreferDualStack / 0",
            ),
            (two, r#"spec.ipFamilyPolicy="SingleStack""#, "10.0.0.100 / IPv4 / SingleStack / 0"),
            (
                two,
                r#"spec.ipFamilyPolicy="SingleStack";spec.clusterIPs=["10.0.0.100"];spec.ipFamilies=["IPv4"]"#,
                "10.0.0.100 / IPv4 / SingleStack / 0",
            ),
            (
                two,
                r#"spec.clusterIPs=["10.0.0.100"]"#,
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be 'SingleStack' to release the secondary cluster IP"#,
            ),
            (
                two,
                r#"spec.ipFamilies=["IPv4"]"#,
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be 'SingleStack' to release the secondary IP family"#,
            ),
            (two, "spec.ipFamilyPolicy=null", "10.0.0.100,fd00::100 / IPv4,IPv6 / RequireDualStack / 0"),
            (prefers, "metadata.labels={}", "10.0.0.100,fd00::100 / IPv4,IPv6 / PreferDualStack / 0"),
        ],
    );
    check_updates(
        V4,
        &[
            (prefers, "metadata.labels={}", "10.0.0.100 / IPv4 / PreferDualStack / 0"),
            ("", prefers, "10.0.0.100 / IPv4 / PreferDualStack / 0"),
        ],
    );
}

#[test]
fn nothing_is_taken_without_a_look() {
    struct Unseen;
    impl Pools for Unseen {
        fn families(&self) -> &[Family] {
            V4
        }
        fn address(&mut self, _: Option<IpAddr>, _: Family) -> Result<IpAddr, Unavailable> {
            Err(Unavailable::Unseen)
        }
        fn port(&mut self, _: Option<i64>) -> Result<i64, Unavailable> {
            Err(Unavailable::Unseen)
        }
    }
    for edits in ["", r#"spec.type="NodePort";spec.clusterIP="None""#] {
        let mut service = edited(&service(), edits);
        let done = allocate_new(service.as_object_mut().expect("an object"), &mut Unseen);
        assert_eq!(done, Err(AllocationError::Unseen), "{edits}");
    }
}

#[test]
fn a_service_holds_what_its_type_gives_it() {
    let rows = [
        (r#"spec.clusterIPs=["10.0.0.1","FD00::0:1"]"#, "10.0.0.1 fd00::1"),
        (r#"spec.clusterIP="10.0.0.1""#, "10.0.0.1"),
        (r#"spec.clusterIPs=["None"]"#, ""),
        (r#"spec.type="ExternalName";spec.clusterIPs=["10.0.0.1"];spec.ports.0.nodePort=30001"#, ""),
        ("spec.ports.0.nodePort=30001;spec.healthCheckNodePort=30002", ""),
        (
            r#"spec.type="NodePort";spec.ports.0.nodePort=30001;spec.ports.+={"nodePort":30001,"protocol":"UDP"}"#,
            "30001",
        ),
        (
            r#"spec.type="LoadBalancer";spec.externalTrafficPolicy="Local";spec.healthCheckNodePort=30002"#,
            "30002",
        ),
        (r#"spec.type="NodePort";spec.ports.0.nodePort=0"#, ""),
    ];
    for (edits, expected) in rows {
        let service = edited(&service(), edits);
        let held = holdings(service.as_object().expect("an object"));
        let names: Vec<String> = held
            .iter()
            .map(|item| match item {
                Allocation::Address(address) => address.to_string(),
                Allocation::Port(port) => port.to_string(),
            })
            .collect();
        assert_eq!(names.join(" "), expected, "{edits}");
    }
}
