//! Endpoints: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "Endpoints",
        json!({
            "metadata": {"name": "ep", "namespace": "default"},
            "subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}],
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "ep", "namespace": "default"},
            "subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}],
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"subsets.0.addresses=[{"ip":"x"}]"#, &[r#"subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#, r#"subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address"#]),
        (r#"subsets.0.addresses=[{"ip":"127.0.0.1"}]"#, &[r#"subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#]),
        ("subsets.0.addresses=null", &["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]),
        (r#"subsets.0.ports=[{"port":0}]"#, &["subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        (r#"subsets.0.ports=[{"port":80},{"port":81}]"#, &["subsets[0].ports[0].name: Required value", "subsets[0].ports[1].name: Required value"]),
        (r#"subsets.0.ports=[{"port":80,"protocol":"X"}]"#, &[r#"subsets[0].ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP""#]),
        (r#"subsets.0.addresses.0.hostname="A""#, &[r#"subsets[0].addresses[0].hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must s…"#]),
        (r#"subsets.0.addresses.0.nodeName="A_""#, &[r#"subsets[0].addresses[0].nodeName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', …"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"subsets.0.addresses=[{"ip":"y"}]"#, &[r#"subsets[0].addresses[0].ip: Invalid value: "y": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#, r#"subsets[0].addresses[0].ip: Invalid value: "y": must be a valid IP address"#]),
        ("subsets=null", &[]),
    ]);
}
