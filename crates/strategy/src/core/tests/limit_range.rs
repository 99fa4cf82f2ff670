//! LimitRanges: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "LimitRange",
        json!({
            "metadata": {"name": "lr", "namespace": "default"},
            "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "lr", "namespace": "default"},
            "spec": {
                "limits": [{"default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}, "type": "Container"}],
            },
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"spec.limits.0.type="X""#, &[r#"spec.limits[0].type: Invalid value: "X": must be a standard limit type or fully qualified"#]),
        (r#"spec.limits.0.type="""#, &[r#"spec.limits[0].type: Invalid value: "": name part must be non-empty"#, r#"spec.limits[0].type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeri…"#]),
        (r#"spec.limits.0.min={"cpu":"2"};spec.limits.0.max={"cpu":"1"}"#, &[r#"spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1"#, r#"spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1"#, r#"spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1"#]),
        (r#"spec.limits=[{"type":"Container"},{"type":"Container"}]"#, &[r#"spec.limits[1].type: Duplicate value: "Container""#]),
        (r#"spec.limits.0.type="Pod""#, &["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"]),
        (r#"spec.limits.0.defaultRequest={"cpu":"2"}"#, &[r#"spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1"#]),
        (r#"spec.limits.0.maxLimitRequestRatio={"cpu":"500m"}"#, &[r#"spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1"#]),
        (r#"spec.limits=[{"type":"PersistentVolumeClaim"}]"#, &["spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided"]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        (r#"spec.limits.0.min={"cpu":"2"}"#, &[r#"spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1"#, r#"spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1"#]),
        (r#"spec.limits.0.max={"cpu":"500m"}"#, &[r#"spec.limits[0].defaultRequest[cpu]: Invalid value: "1": default request value 1 is greater than max value 500m"#, r#"spec.limits[0].default[cpu]: Invalid value: "500m": default value 1 is greater than max value 500m"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (
            r#"spec.limits.0.type="X""#,
            &[r#"spec.limits[0].type: Invalid value: "X": must be a standard limit type or fully qualified"#],
        ),
        ("spec.limits=[]", &[]),
    ]);
}
