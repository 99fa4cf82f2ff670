//! ServiceAccounts: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new("", "v1", "ServiceAccount", json!({"metadata": {"name": "sa", "namespace": "default"}}))
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(sample().created(""), json!({"metadata": {"name": "sa", "namespace": "default"}}));
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        (r#"secrets=[{"name":"x"}]"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample()
        .check_updates(&[(r#"secrets=[{"name":"x"}]"#, &[]), ("automountServiceAccountToken=false", &[])]);
}
