//! EndpointSlices: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::{Value, json};

use crate::testing::Sample;
use crate::{Context, GroupKind, prepare_update};

fn sample() -> Sample {
    Sample::new(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        json!({
            "metadata": {"name": "es", "namespace": "default"},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"]}],
            "ports": [{"port": 80}],
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"]}],
            "metadata": {"generation": 1, "name": "es", "namespace": "default"},
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"addressType="X""#, &[r#"addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6""#]),
        (r#"addressType="""#, &["addressType: Required value"]),
        (r#"endpoints=[{"addresses":[]}]"#, &["endpoints[0].addresses: Required value: must contain at least 1 address"]),
        (r#"endpoints=[{"addresses":["x"]}]"#, &[r#"endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]),
        (r#"endpoints=[{"addresses":["::1"]}]"#, &[r#"endpoints[0].addresses: Invalid value: "::1": must be an IPv4 address"#, r#"endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#]),
        (r#"endpoints=[{"addresses":["127.0.0.1"]}]"#, &[r#"endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#]),
        (r#"ports=[{"port":0}]"#, &[]),
        (r#"ports=[{"port":80},{"port":81}]"#, &[r#"ports[1].name: Duplicate value: """#]),
        (r#"ports=[{"port":80,"protocol":"X"}]"#, &[r#"ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP""#]),
        (r#"ports=[{"port":80,"name":"A"}]"#, &[r#"ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with a…"#]),
        (r#"endpoints=[{"addresses":["10.1.1.1"],"hostname":"A"}]"#, &[r#"endpoints[0].hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and en…"#]),
        (r#"endpoints=[{"addresses":["10.1.1.1"],"deprecatedTopology":{"a b":"c"}}]"#, &[]),
        (r#"addressType="FQDN";endpoints=[{"addresses":["A_"]}]"#, &[r#"endpoints[0].addresses[0]: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and mus…"#]),
        (r#"endpoints=[{"addresses":["10.1.1.1"],"hints":{"forZones":[{"name":"a"},{"name":"a"}]}}]"#, &[r#"endpoints[0].hints.forZones[1].name: Duplicate value: "a""#]),
        (r#"ports=[{"port":80,"appProtocol":"a b"}]"#, &[r#"ports[0].appProtocol: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanu…"#]),
        (r#"endpoints=[{"addresses":["10.1.1.1"],"nodeName":"A_"}]"#, &[r#"endpoints[0].nodeName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        (r#"addressType="IPv6";endpoints=[{"addresses":["10.1.1.1"]}]"#, &[r#"endpoints[0].addresses: Invalid value: "10.1.1.1": must be an IPv6 address"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"addressType="IPv6";endpoints=[]"#, &[r#"addressType: Invalid value: "IPv6": field is immutable"#]),
        ("endpoints=[]", &[]),
        (r#"endpoints=[{"addresses":["x"]}]"#, &[r#"endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]),
    ]);
}

#[test]
fn conditions_that_say_nothing_are_as_good_as_none() {
    let kind = GroupKind { group: "discovery.k8s.io", kind: "EndpointSlice", custom: None };
    let of = |conditions: Option<Value>| {
        let mut slice =
            json!({ "metadata": { "generation": 1 }, "endpoints": [{ "addresses": ["10.1.1.1"] }] });
        if let Some(conditions) = conditions {
            slice["endpoints"][0]["conditions"] = conditions;
        }
        slice
    };
    let generation = |mut new: Value| {
        let context = Context { now: "2026-01-01T00:00:00Z", user: None };
        prepare_update(&kind, None, &mut new, &of(Some(json!({}))), &context);
        new["metadata"]["generation"].clone()
    };
    assert_eq!(generation(of(None)), 1);
    assert_eq!(generation(of(Some(json!({ "ready": true })))), 2);
}
