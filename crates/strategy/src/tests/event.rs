//! Events of events.k8s.io: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "events.k8s.io",
        "v1",
        "Event",
        json!({
            "metadata": {"name": "ev2", "namespace": "default"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "a.b/c",
            "reportingInstance": "i",
            "action": "x",
            "reason": "r",
            "type": "Normal",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "action": "x",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "metadata": {"name": "ev2", "namespace": "default"},
            "reason": "r",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reportingController": "a.b/c",
            "reportingInstance": "i",
            "type": "Normal",
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("eventTime=null", &["eventTime: Required value"]),
        (r#"reportingController="""#, &["reportingController: Required value", r#"reportingController: Invalid value: "": name part must be non-empty"#, r#"reportingController: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeri…"#]),
        (r#"reportingInstance="""#, &["reportingInstance: Required value"]),
        (r#"action="""#, &["action: Required value"]),
        (r#"reason="""#, &["reason: Required value"]),
        (r#"type="X""#, &[r#"type: Invalid value: "": has invalid value: X"#]),
        (r#"note="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &[r#"message: Invalid value: "": can have at most 1024 characters"#]),
        (r#"series={"count":1,"lastObservedTime":null}"#, &[r#"series.count: Invalid value: "": should be at least 2"#, "series.lastObservedTime: Required value"]),
        (r#"regarding.namespace="x""#, &[]),
        (r#"reportingController="a b""#, &[r#"reportingController: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanum…"#]),
        ("deprecatedCount=2", &[r#"count: Invalid value: "": needs to be unset"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (
            r#"reason="z""#,
            &[
                r#"reason: Invalid value: "z": field is immutable"#,
                r#"reason: Invalid value: "z": field is immutable"#,
            ],
        ),
        (r#"series={"count":2,"lastObservedTime":"2026-01-01T00:00:00.000000Z"}"#, &[]),
        (
            r#"series={"count":1,"lastObservedTime":null}"#,
            &[
                r#"series.count: Invalid value: "": should be at least 2"#,
                "series.lastObservedTime: Required value",
            ],
        ),
    ]);
}

#[test]
fn a_source_that_says_nothing_is_unset() {
    sample().check_creates(&[
        (r#"deprecatedSource={"component":"","host":""}"#, &[]),
        (r#"deprecatedSource={"host":"x"}"#, &[r#"source: Invalid value: "": needs to be unset"#]),
    ]);
    sample().check_updates(&[
        (r#"deprecatedSource={"component":""}"#, &[]),
        (
            r#"deprecatedSource={"component":"x"}"#,
            &[r#"source: Invalid value: {"Component":"x","Host":""}: field is immutable"#],
        ),
    ]);
}
