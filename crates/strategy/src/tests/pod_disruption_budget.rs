//! PodDisruptionBudgets: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "policy",
        "v1",
        "PodDisruptionBudget",
        json!({
            "metadata": {"name": "pdb", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "pdb", "namespace": "default", "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[]),
        (r#"metadata.name="a/b""#, &[r#"metadata.name: Invalid value: "a/b": may not contain '/'"#]),
        ("spec=null", &[]),
        ("spec.selector=null", &[]),
        ("spec.selector={}", &[]),
        ("spec.maxUnavailable=1", &[r#"spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set"#]),
        ("spec.minAvailable=-1", &["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.minAvailable="x""#, &[r#"spec.minAvailable: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"#]),
        (r#"spec.minAvailable="101%""#, &[r#"spec.minAvailable: Invalid value: "101%": must not be greater than 100%"#]),
        (r#"spec.minAvailable="-1%""#, &[r#"spec.minAvailable: Invalid value: "-1%": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"#]),
        (r#"spec.minAvailable="50%""#, &[]),
        ("spec.minAvailable=null;spec.maxUnavailable=-1", &["spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.minAvailable=null;spec.maxUnavailable="101%""#, &[r#"spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%"#]),
        (r#"spec.minAvailable=null;spec.maxUnavailable="x%""#, &[r#"spec.maxUnavailable: Invalid value: "x%": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"#]),
        ("spec.minAvailable=null", &[]),
        (r#"spec.selector={"matchLabels":{"a b":"c"}}"#, &[r#"spec.selector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"spec.selector={"matchLabels":{"a":"b c"}}"#, &[r#"spec.selector.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and mus…"#]),
        (r#"spec.selector={"matchExpressions":[{"key":"a","operator":"In"}]}"#, &["spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
        (r#"spec.selector={"matchExpressions":[{"key":"a","operator":"X"}]}"#, &[r#"spec.selector.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#]),
        (r#"spec.unhealthyPodEvictionPolicy="X""#, &[r#"spec.unhealthyPodEvictionPolicy: Unsupported value: "X": supported values: "AlwaysAllow", "IfHealthyBudget""#]),
        (r#"spec.unhealthyPodEvictionPolicy="""#, &[r#"spec.unhealthyPodEvictionPolicy: Unsupported value: "": supported values: "AlwaysAllow", "IfHealthyBudget""#]),
        (r#"spec.unhealthyPodEvictionPolicy="AlwaysAllow""#, &[]),
        (r#"spec.minAvailable=-1;spec.maxUnavailable="200%""#, &[r#"spec: Invalid value: {"MinAvailable":-1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":"200%","UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set"#, "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0", r#"spec.maxUnavailable: Invalid value: "200%": must not be greater than 100%"#]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]),
        (r#"metadata.finalizers=["x"]"#, &[]),
        (r#"status={"disruptionsAllowed":5}"#, &[]),
        (r#"spec.selector={"matchLabels":{"a":"b","pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match":"x"}}"#, &[]),
        (r#"spec.selector={"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}]}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.minAvailable=2", &[]),
        ("spec.minAvailable=-1", &["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.selector={"matchLabels":{"c":"d"}}"#, &[]),
        ("spec.selector=null", &[]),
        ("spec.maxUnavailable=1", &[r#"spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set"#]),
        (r#"spec.unhealthyPodEvictionPolicy="X""#, &[r#"spec.unhealthyPodEvictionPolicy: Unsupported value: "X": supported values: "AlwaysAllow", "IfHealthyBudget""#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[]),
        (r#"@status status={"disruptionsAllowed":-1,"currentHealthy":-1,"desiredHealthy":-1,"expectedPods":-1}"#, &["status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0", "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0", "status.desiredHealthy: Invalid value: -1: must be greater than or equal to 0", "status.expectedPods: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"@status status={"disruptionsAllowed":1,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}"#, &[]),
        (r#"@status status={"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0,"conditions":[{"type":"","status":"X","reason":"","message":"","lastTransitionTime":null}]}"#, &[r#"status.conditions[0].type: Invalid value: "": name part must be non-empty"#, r#"status.conditions[0].type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#, r#"status.conditions[0].status: Unsupported value: "X": supported values: "False", "True", "Unknown""#, "status.conditions[0].lastTransitionTime: Required value", "status.conditions[0].reason: Required value"]),
        (r#"@status status={"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0,"conditions":[{"type":"a","status":"True","reason":"a b","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"a","status":"True","reason":"x","observedGeneration":-1,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}"#, &[r#"status.conditions[0].reason: Invalid value: "a b": a condition reason must start with alphabetic character, optionally followed by a string of alphanu…"#, r#"status.conditions[1].type: Duplicate value: "a""#, "status.conditions[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero"]),
        ("@status spec.minAvailable=7", &[]),
    ]);
}
