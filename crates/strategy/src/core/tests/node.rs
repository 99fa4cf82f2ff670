//! Nodes: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new("", "v1", "Node", json!({"metadata": {"name": "nd"}}))
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(sample().created(""), json!({"metadata": {"name": "nd"}}));
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        (r#"spec.podCIDR="x""#, &[r#"spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        (r#"spec.podCIDRs=["10.0.0.0/24","10.0.1.0/24"]"#, &[r#"spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for each IP family"#]),
        (r#"spec.taints=[{"key":"a","effect":"X"}]"#, &[r#"metadata.taints[0].effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#]),
        (r#"spec.taints=[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]"#, &[r#"metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair"#]),
        (r#"spec.taints=[{"key":"","effect":""}]"#, &[r#"metadata.taints[0].key: Invalid value: "": name part must be non-empty"#, r#"metadata.taints[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanum…"#, "metadata.taints[0].effect: Required value"]),
        (r#"spec.taints=[{"key":"a","value":"a b","effect":"NoSchedule"}]"#, &[r#"metadata.taints[0].value: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must…"#]),
        (r#"spec.providerID="x""#, &[]),
        (r#"status={"capacity":{"cpu":"-1"}}"#, &[r#"status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0"#, r#"status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"status={"capacity":{"nope":"1"}}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.unschedulable=true", &[]),
        (r#"spec.podCIDR="10.0.0.0/24";spec.podCIDRs=["10.0.0.0/24"]"#, &[]),
        (r#"spec.providerID="x""#, &[]),
        (r#"!spec.providerID="x" => spec.providerID="y""#, &[r#"spec.providerID: Forbidden: node updates may not change providerID except from "" to valid"#]),
        (r#"!spec.podCIDR="10.0.0.0/24";spec.podCIDRs=["10.0.0.0/24"] => spec.podCIDR="10.0.1.0/24";spec.podCIDRs=["10.0.1.0/24"]"#, &[r#"spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid"#]),
        (r#"@status status.capacity={"cpu":"1"}"#, &[]),
        (r#"@status status.addresses=[{"type":"InternalIP","address":"1.1.1.1"},{"type":"InternalIP","address":"1.1.1.1"}]"#, &[r#"status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"1.1.1.1"}"#]),
        (r#"spec.externalID="x""#, &["spec.externalID: Forbidden: may not be updated"]),
        (r#"spec.taints=[{"key":"a b","effect":"NoSchedule"}]"#, &[r#"metadata.taints[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alpha…"#, r#"metadata.taints[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alpha…"#]),
    ]);
}

#[test]
fn features_that_a_node_declares_are_names_in_order() {
    let at = "status.declaredFeatures";
    let said = |list: &str| format!(r#"@status {at}={list}"#);
    let malformed = |index: usize, name: &str| {
        format!(
            r#"{at}[{index}]: Invalid value: "{name}": invalid feature name "{name}": must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"#
        )
    };
    sample().check_updates(&[
        (&said(r#"["A","B/c","B/d1"]"#), &[]),
        (&said(r#"["","a"]"#), &[&malformed(0, ""), &malformed(1, "a")]),
        (&said(r#"["A/","B/1"]"#), &[&malformed(0, "A/"), &malformed(1, "B/1")]),
        (&said(r#"["A","A"]"#), &[&format!(r#"{at}[1]: Duplicate value: "A""#)]),
        (
            &said(r#"["B","A"]"#),
            &[&format!(r#"{at}[1]: Invalid value: "A": list must be sorted alphabetically"#)],
        ),
    ]);
    sample().check_creates(&[(r#"status={"declaredFeatures":["x"]}"#, &[&malformed(0, "x")])]);
}

#[test]
fn swap_that_a_node_has_is_more_than_nothing() {
    let status = |bytes: i64| format!(r#"status={{"nodeInfo":{{"swap":{{"capacity":{bytes}}}}}}}"#);
    let refused = "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero";
    sample().check_creates(&[(&status(1), &[]), (&status(0), &[refused])]);
}
