//! Events: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "Event",
        json!({
            "metadata": {"name": "ev", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "metadata": {"name": "ev", "namespace": "default"},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"involvedObject.namespace="x""#, &[r#"involvedObject.namespace: Invalid value: "x": does not match event.namespace"#]),
        (r#"involvedObject.namespace="""#, &[]),
        (r#"involvedObject={"kind":"Node","name":"n"}"#, &[]),
        (r#"eventTime="2026-01-01T00:00:00.000000Z""#, &["reportingComponent: Required value", r#"reportingComponent: Invalid value: "": name part must be non-empty"#, r#"reportingComponent: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric…"#, "reportingInstance: Required value", "action: Required value", "reason: Required value"]),
        (r#"reason="x""#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[("count=2", &[]), (r#"involvedObject.name="q""#, &[])]);
}
