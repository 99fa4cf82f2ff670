//! ClusterRoles: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        json!({
            "metadata": {"name": "cro"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "cro"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"rules=[{"nonResourceURLs":["/x"],"verbs":["get"]}]"#, &[]),
        (r#"rules=[{"nonResourceURLs":["/x"],"apiGroups":[""],"resources":["x"],"verbs":["get"]}]"#, &[r#"rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs"#]),
        (r#"aggregationRule={"clusterRoleSelectors":[]}"#, &["aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"]),
        (r#"aggregationRule={"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"X"}]}]}"#, &[r#"aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#, "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."]),
        ("rules.0.verbs=[]", &["rules[0].verbs: Required value: verbs must contain at least one value"]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[("rules=null", &[])]);
}
