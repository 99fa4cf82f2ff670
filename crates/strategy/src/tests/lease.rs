//! Leases: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "coordination.k8s.io",
        "v1",
        "Lease",
        json!({"metadata": {"name": "le", "namespace": "default"}, "spec": {}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(sample().created(""), json!({"metadata": {"name": "le", "namespace": "default"}, "spec": {}}));
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.leaseDurationSeconds=0", &["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]),
        ("spec.leaseTransitions=-1", &["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.holderIdentity="""#, &[]),
        (r#"spec.strategy="X""#, &[]),
        (r#"spec.preferredHolder="x""#, &[]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        (r#"spec.preferredHolder="x";spec.strategy="OldestEmulationVersion""#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (
            "spec.leaseDurationSeconds=-1",
            &["spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0"],
        ),
        (r#"spec.holderIdentity="x""#, &[]),
    ]);
}
