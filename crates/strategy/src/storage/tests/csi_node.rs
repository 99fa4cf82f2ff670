//! CSINodes: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "storage.k8s.io",
        "v1",
        "CSINode",
        json!({
            "metadata": {"name": "cn"},
            "spec": {"drivers": [{"name": "a.b", "nodeID": "n", "topologyKeys": ["a"]}]},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "cn"},
            "spec": {"drivers": [{"name": "a.b", "nodeID": "n", "topologyKeys": ["a"]}]},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        ("spec=null", &[]),
        ("spec.drivers=null", &[]),
        ("spec.drivers=[]", &[]),
        (r#"spec.drivers.0.name="""#, &["spec.drivers[0].name: Required value"]),
        (r#"spec.drivers.0.name="a b""#, &[r#"spec.drivers[0].name: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        (r#"spec.drivers.0.name="A.B""#, &[]),
        (r#"spec.drivers.0.name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &["spec.drivers[0].name: Too long: may not be more than 63 bytes"]),
        (r#"spec.drivers.0.nodeID="""#, &["spec.drivers[0].nodeID: Required value"]),
        (r#"spec.drivers.0.nodeID="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &[r#"spec.drivers[0].nodeID: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"#]),
        (r#"spec.drivers.0.allocatable={"count":-1}"#, &["spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.drivers.0.allocatable={"count":0}"#, &[]),
        ("spec.drivers.0.allocatable={}", &[]),
        (r#"spec.drivers.0.topologyKeys=[""]"#, &["spec.drivers[0]: Required value", r#"spec.drivers[0]: Invalid value: "": name part must be non-empty"#, r#"spec.drivers[0]: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"spec.drivers.0.topologyKeys=["a","a"]"#, &[r#"spec.drivers[0]: Duplicate value: "a""#]),
        (r#"spec.drivers.0.topologyKeys=["a b"]"#, &[r#"spec.drivers[0]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        ("spec.drivers.0.topologyKeys=null", &[]),
        (r#"spec.drivers.+={"name":"a.b","nodeID":"m"}"#, &[r#"spec.drivers[1].name: Duplicate value: "a.b""#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.drivers.0.nodeID="m""#, &[r#"spec.drivers: Invalid value: {"Name":"a.b","NodeID":"m","TopologyKeys":["a"],"Allocatable":null}: field is immutable"#]),
        (r#"spec.drivers.0.nodeID="""#, &["spec.drivers[0].nodeID: Required value", r#"spec.drivers: Invalid value: {"Name":"a.b","NodeID":"","TopologyKeys":["a"],"Allocatable":null}: field is immutable"#]),
        (r#"spec.drivers.0.topologyKeys=["b"]"#, &[r#"spec.drivers: Invalid value: {"Name":"a.b","NodeID":"n","TopologyKeys":["b"],"Allocatable":null}: field is immutable"#]),
        ("spec.drivers.0.topologyKeys=null", &[r#"spec.drivers: Invalid value: {"Name":"a.b","NodeID":"n","TopologyKeys":null,"Allocatable":null}: field is immutable"#]),
        (r#"spec.drivers.0.allocatable={"count":5}"#, &[]),
        ("spec.drivers=[]", &[]),
        (r#"spec.drivers.+={"name":"c.d","nodeID":"m"}"#, &[]),
        (r#"spec.drivers.+={"name":"a.b","nodeID":"m"}"#, &[r#"spec.drivers[1].name: Duplicate value: "a.b""#, r#"spec.drivers: Invalid value: {"Name":"a.b","NodeID":"m","TopologyKeys":null,"Allocatable":null}: field is immutable"#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"!spec.drivers.0.allocatable={"count":5} => spec.drivers.0.allocatable={"count":6};spec.drivers.0.nodeID="z""#, &[r#"spec.drivers: Invalid value: {"Name":"a.b","NodeID":"z","TopologyKeys":["a"],"Allocatable":null}: field is immutable"#]),
    ]);
}
