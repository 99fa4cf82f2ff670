//! NetworkPolicies: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        json!({"metadata": {"name": "np", "namespace": "default"}, "spec": {"podSelector": {}}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "np", "namespace": "default", "generation": 1},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        ("spec=null", &[]),
        (r#"spec.podSelector={"matchLabels":{"a b":"c"}}"#, &[r#"spec.podSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"spec.podSelector={"matchExpressions":[{"key":"a","operator":"X"}]}"#, &[r#"spec.podSelector.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#]),
        (r#"spec.policyTypes=["X"]"#, &[r#"spec.policyTypes[0]: Unsupported value: "X": supported values: "Ingress", "Egress""#]),
        (r#"spec.policyTypes=["Ingress","Egress","Ingress"]"#, &[r#"spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes"#]),
        (r#"spec.policyTypes=["Egress"]"#, &[]),
        (r#"spec.policyTypes=["Ingress","Ingress"]"#, &[]),
        ("spec.ingress=[{}]", &[]),
        ("spec.egress=[{}]", &[]),
        (r#"spec.ingress=[{"ports":[{"port":0}]}]"#, &["spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        (r#"spec.ingress=[{"ports":[{"port":"A"}]}]"#, &[r#"spec.ingress[0].ports[0].port: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"#, r#"spec.ingress[0].ports[0].port: Invalid value: "A": must contain at least one letter (a-z)"#]),
        (r#"spec.ingress=[{"ports":[{"protocol":"X","port":80}]}]"#, &[r#"spec.ingress[0].ports[0].protocol: Unsupported value: "X": supported values: "TCP", "UDP", "SCTP""#]),
        (r#"spec.ingress=[{"ports":[{"protocol":""}]}]"#, &[r#"spec.ingress[0].ports[0].protocol: Unsupported value: "": supported values: "TCP", "UDP", "SCTP""#]),
        (r#"spec.ingress=[{"ports":[{"endPort":80}]}]"#, &["spec.ingress[0].ports[0].endPort: Invalid value: 80: may not be specified when `port` is not specified"]),
        (r#"spec.ingress=[{"ports":[{"port":"http","endPort":80}]}]"#, &["spec.ingress[0].ports[0].endPort: Invalid value: 80: may not be specified when `port` is non-numeric"]),
        (r#"spec.ingress=[{"ports":[{"port":90,"endPort":80}]}]"#, &["spec.ingress[0].ports[0].endPort: Invalid value: 90: must be greater than or equal to `port`"]),
        (r#"spec.ingress=[{"ports":[{"port":90,"endPort":70000}]}]"#, &["spec.ingress[0].ports[0].endPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
        (r#"spec.ingress=[{"ports":[{"port":90,"endPort":100}]}]"#, &[]),
        (r#"spec.ingress=[{"from":[{}]}]"#, &["spec.ingress[0].from[0]: Required value: must specify a peer"]),
        (r#"spec.ingress=[{"from":[{"podSelector":{"matchLabels":{"a b":"c"}},"namespaceSelector":{"matchLabels":{"c d":"e"}}}]}]"#, &[r#"spec.ingress[0].from[0].podSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must st…"#, r#"spec.ingress[0].from[0].namespaceSelector.matchLabels: Invalid value: "c d": name part must consist of alphanumeric characters, '-', '_' or '.', and m…"#]),
        (r#"spec.ingress=[{"from":[{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}}]}]"#, &["spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"]),
        (r#"spec.ingress=[{"from":[{"ipBlock":{"cidr":""}}]}]"#, &["spec.ingress[0].from[0].ipBlock.cidr: Required value"]),
        (r#"spec.ingress=[{"from":[{"ipBlock":{"cidr":"x"}}]}]"#, &[r#"spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        (r#"spec.ingress=[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["x","11.0.0.0/16","10.0.0.0/8","10.1.0.0/16"]}}]}]"#, &[r#"spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#, r#"spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`"#, r#"spec.ingress[0].from[0].ipBlock.except[2]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`"#]),
        (r#"spec.egress=[{"to":[{}],"ports":[{"port":70000}]}]"#, &["spec.egress[0].ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive", "spec.egress[0].to[0]: Required value: must specify a peer"]),
        (r#"spec.egress=[{"to":[{"ipBlock":{"cidr":"10.0.0.0/33"}}]}]"#, &[r#"spec.egress[0].to[0].ipBlock.cidr: Invalid value: "10.0.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        (r#"spec.egress=[{"to":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]"#, &[r#"spec.egress[0].to[0].ipBlock.cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length"#]),
        (r#"spec.egress=[{"to":[{"ipBlock":{"cidr":"2001:db8::/32","except":["2001:db8:1::/48","10.0.0.0/8"]}}]}]"#, &[r#"spec.egress[0].to[0].ipBlock.except[1]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`"#]),
        (r#"spec.egress=[{"to":[{"ipBlock":{"cidr":"010.0.0.0/8"}}]}]"#, &[r#"spec.egress[0].to[0].ipBlock.cidr: Invalid value: "010.0.0.0/8": must not have leading 0s in IP or prefix length"#]),
        (r#"spec.ingress=[{"ports":[{"protocol":"SCTP"}]}]"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.podSelector={"matchLabels":{"a b":"c"}}"#, &[r#"spec.podSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"spec.policyTypes=["X"]"#, &[r#"spec.policyTypes[0]: Unsupported value: "X": supported values: "Ingress", "Egress""#]),
        (r#"spec.policyTypes=["Egress"]"#, &[]),
        (r#"spec.ingress=[{"from":[{}]}]"#, &["spec.ingress[0].from[0]: Required value: must specify a peer"]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"spec.egress=[{"ports":[{"port":-1}]}]"#, &["spec.egress[0].ports[0].port: Invalid value: -1: must be between 1 and 65535, inclusive"]),
        (r#"!spec.ingress=[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"}}]}] => spec.ingress=[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["y"]}}]}]"#, &[r#"spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "y": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
    ]);
}
