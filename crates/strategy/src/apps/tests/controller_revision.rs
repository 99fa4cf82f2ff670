//! ControllerRevisions: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "apps",
        "v1",
        "ControllerRevision",
        json!({"metadata": {"name": "cr", "namespace": "default"}, "revision": 1, "data": {"a": 1}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({"data": {"a": 1}, "metadata": {"name": "cr", "namespace": "default"}, "revision": 1})
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("revision=-1", &["revision: Invalid value: -1: must be greater than or equal to 0"]),
        ("data=null", &["data: Required value: data is mandatory"]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"data={"a":2}"#, &[r#"data: Invalid value: {"a":2}: field is immutable"#]),
        ("revision=2", &[]),
        ("revision=-1", &["revision: Invalid value: -1: must be greater than or equal to 0"]),
    ]);
}
