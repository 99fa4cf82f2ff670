//! Roles: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "rbac.authorization.k8s.io",
        "v1",
        "Role",
        json!({
            "metadata": {"name": "ro", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "ro", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("rules=null", &[]),
        ("rules.0.verbs=[]", &["rules[0].verbs: Required value: verbs must contain at least one value"]),
        ("rules.0.apiGroups=[]", &["rules[0].apiGroups: Required value: resource rules must supply at least one api group"]),
        ("rules.0.resources=[]", &["rules[0].resources: Required value: resource rules must supply at least one resource"]),
        (r#"rules=[{"nonResourceURLs":["/x"],"verbs":["get"]}]"#, &[r#"rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs"#]),
        (r#"rules=[{"verbs":["get"]}]"#, &["rules[0].apiGroups: Required value: resource rules must supply at least one api group", "rules[0].resources: Required value: resource rules must supply at least one resource"]),
        (r#"metadata.name="system:x""#, &[]),
        (r#"metadata.name="a/b""#, &[r#"metadata.name: Invalid value: "a/b": may not contain '/'"#]),
        (r#"rules=[{"apiGroups":[""],"resources":["a"],"nonResourceURLs":["/x"],"verbs":["get"]}]"#, &[r#"rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs"#, r#"rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("rules.0.verbs=[]", &["rules[0].verbs: Required value: verbs must contain at least one value"]),
        ("rules=[]", &[]),
    ]);
}
