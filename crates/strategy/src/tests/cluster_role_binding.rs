//! ClusterRoleBindings: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        json!({
            "metadata": {"name": "crb"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "crb"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (
            r#"roleRef.kind="Role""#,
            &[r#"roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole""#],
        ),
        (r#"roleRef.name="""#, &["roleRef.name: Required value"]),
        (r#"subjects=[{"kind":"ServiceAccount","name":"a"}]"#, &["subjects[0].namespace: Required value"]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"roleRef.name="q""#, &[r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"q"}: cannot change roleRef"#]),
    ]);
}
