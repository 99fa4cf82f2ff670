//! ServiceCIDRs: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "networking.k8s.io",
        "v1",
        "ServiceCIDR",
        json!({"metadata": {"name": "sc"}, "spec": {"cidrs": ["192.168.0.0/24"]}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({"metadata": {"name": "sc"}, "spec": {"cidrs": ["192.168.0.0/24"]}, "status": {}})
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec=null", &["spec.cidrs: Required value: at least one CIDR required"]),
        ("spec.cidrs=[]", &["spec.cidrs: Required value: at least one CIDR required"]),
        (r#"spec.cidrs=["x"]"#, &[r#"spec.cidrs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        (r#"spec.cidrs=["192.168.0.1/24"]"#, &[r#"spec.cidrs[0]: Invalid value: "192.168.0.1/24": must not have bits set beyond the prefix length"#]),
        (r#"spec.cidrs=["192.168.00.0/24"]"#, &[r#"spec.cidrs[0]: Invalid value: "192.168.00.0/24": must not have leading 0s in IP or prefix length"#]),
        (r#"spec.cidrs=["192.168.0.0/24","10.0.0.0/8"]"#, &[r#"spec.cidrs: Invalid value: ["192.168.0.0/24","10.0.0.0/8"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"#]),
        (r#"spec.cidrs=["192.168.0.0/24","2001:db8::/64"]"#, &[]),
        (r#"spec.cidrs=["192.168.0.0/24","2001:db8::/64","10.0.0.0/8"]"#, &[r#"spec.cidrs: Invalid value: {"CIDRs":["192.168.0.0/24","2001:db8::/64","10.0.0.0/8"]}: may only hold up to 2 values"#]),
        (r#"spec.cidrs=["2001:DB8::/64"]"#, &[r#"spec.cidrs[0]: Invalid value: "2001:DB8::/64": must be in canonical form ("2001:db8::/64")"#]),
        (r#"spec.cidrs=["::ffff:1.2.3.0/120"]"#, &[r#"spec.cidrs[0]: Invalid value: "::ffff:1.2.3.0/120": must not have an IPv4-mapped IPv6 address"#]),
        (r#"spec.cidrs=["192.168.0.0"]"#, &[r#"spec.cidrs[0]: Invalid value: "192.168.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        (r#"spec.cidrs=["2001:db8::/64","2001:db9::/64"]"#, &[r#"spec.cidrs: Invalid value: ["2001:db8::/64","2001:db9::/64"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"#]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        (r#"spec.cidrs=["192.168.0.0/33","x"]"#, &[r#"spec.cidrs[0]: Invalid value: "192.168.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#, r#"spec.cidrs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        (r#"spec.cidrs=["192.168.0.0/24"];status={"conditions":[{"type":"Ready","status":"True","reason":"x","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.cidrs=["192.168.1.0/24"]"#, &[r#"spec.cidrs[0]: Invalid value: "192.168.1.0/24": field is immutable"#]),
        ("spec.cidrs=[]", &["spec.cidrs: Invalid value: []: field is immutable"]),
        (r#"spec.cidrs=["192.168.0.0/24","2001:db8::/64"]"#, &[]),
        (r#"spec.cidrs=["192.168.0.0/24","10.0.0.0/8"]"#, &[r#"spec.cidrs: Invalid value: ["192.168.0.0/24","10.0.0.0/8"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"#]),
        (r#"spec.cidrs=["192.168.1.0/24","x"]"#, &[r#"spec.cidrs[0]: Invalid value: "192.168.1.0/24": field is immutable"#, r#"spec.cidrs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]),
        (r#"spec.cidrs=["192.168.0.0/24","2001:db8::/64","10.0.0.0/8"]"#, &[r#"spec.cidrs: Invalid value: ["192.168.0.0/24","2001:db8::/64","10.0.0.0/8"]: field is immutable"#]),
        (r#"!spec.cidrs=["192.168.0.0/24","2001:db8::/64"] => spec.cidrs=["2001:db8::/64","192.168.0.0/24"]"#, &[r#"spec.cidrs[0]: Invalid value: "2001:db8::/64": field is immutable"#, r#"spec.cidrs[1]: Invalid value: "192.168.0.0/24": field is immutable"#]),
        (r#"!spec.cidrs=["192.168.0.0/24","2001:db8::/64"] => spec.cidrs=["192.168.0.0/24"]"#, &[r#"spec.cidrs: Invalid value: ["192.168.0.0/24"]: field is immutable"#]),
        (r#"@status status={"conditions":[{"type":"","status":"X"}]}"#, &[]),
        (r#"@status spec.cidrs=["1.1.1.0/24"]"#, &[]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"@status metadata.labels={"a":"b c"}"#, &[]),
    ]);
}
