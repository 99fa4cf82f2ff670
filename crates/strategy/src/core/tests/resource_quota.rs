//! ResourceQuotas: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "ResourceQuota",
        json!({"metadata": {"name": "rq", "namespace": "default"}, "spec": {"hard": {"pods": "1"}}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "rq", "namespace": "default"},
            "spec": {"hard": {"pods": "1"}},
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"spec.hard={"pods":"-1"}"#, &[r#"spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"spec.hard={"pods":"1.5"}"#, &[r#"spec.hard[pods]: Invalid value: "1500m": must be an integer"#]),
        (r#"spec.hard={"nope":"1"}"#, &[r#"spec.hard[nope]: Invalid value: "nope": must be a standard resource type or fully qualified"#, r#"spec.hard[nope]: Invalid value: "nope": must be a standard resource for quota"#]),
        (r#"spec.hard={"a b":"1"}"#, &[r#"spec.hard[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric …"#, r#"spec.hard[a b]: Invalid value: "a b": must be a standard resource for quota"#]),
        (r#"spec.scopes=["X"]"#, &[r#"spec.scopes: Invalid value: ["X"]: unsupported scope"#]),
        (r#"spec.scopes=["BestEffort","NotBestEffort"]"#, &[r#"spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes"#]),
        (r#"spec.scopes=["BestEffort"];spec.hard={"cpu":"1"}"#, &[r#"spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource"#]),
        (r#"spec.scopeSelector={"matchExpressions":[{"scopeName":"PriorityClass","operator":"X"}]}"#, &[r#"spec.scopeSelector.matchExpressions.operator: Invalid value: "X": not a valid selector operator"#]),
        (r#"spec.scopeSelector={"matchExpressions":[{"scopeName":"Terminating","operator":"In","values":["a"]}]}"#, &[r#"spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaS…"#]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.hard={"pods":"2"}"#, &[]),
        (
            r#"spec.hard={"pods":"-2"}"#,
            &[r#"spec.hard[pods]: Invalid value: "-2": must be greater than or equal to 0"#],
        ),
        (
            r#"spec.scopes=["BestEffort"]"#,
            &[r#"spec.scopes: Invalid value: ["BestEffort"]: field is immutable"#],
        ),
        (
            r#"@status status.used={"pods":"-1"}"#,
            &[r#"status.used[pods]: Invalid value: "-1": must be greater than or equal to 0"#],
        ),
        (r#"@status status.hard={"pods":"1"}"#, &[]),
    ]);
}
