//! RoleBindings: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        json!({
            "metadata": {"name": "rb", "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}],
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "rb", "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"}],
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"roleRef.kind="X""#, &[r#"roleRef.kind: Unsupported value: "X": supported values: "Role", "ClusterRole""#]),
        (r#"roleRef.apiGroup="x""#, &[r#"roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io""#]),
        (r#"roleRef.name="""#, &["roleRef.name: Required value"]),
        (r#"subjects=[{"kind":"X","name":"u"}]"#, &[r#"subjects[0].kind: Unsupported value: "X": supported values: "ServiceAccount", "User", "Group""#]),
        (r#"subjects=[{"kind":"User","name":""}]"#, &["subjects[0].name: Required value"]),
        (r#"subjects=[{"kind":"ServiceAccount","name":"a"}]"#, &[]),
        (r#"subjects=[{"kind":"ServiceAccount","name":"A","namespace":"x"}]"#, &[r#"subjects[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start an…"#]),
        (r#"subjects=[{"kind":"User","name":"u","apiGroup":"x"}]"#, &[r#"subjects[0].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io""#]),
        ("subjects=null", &[]),
        (r#"subjects=[{"kind":"Group","name":"","apiGroup":"x"}]"#, &["subjects[0].name: Required value", r#"subjects[0].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io""#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"roleRef.name="q""#, &[r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"q"}: cannot change roleRef"#]),
        ("subjects=null", &[]),
        (r#"subjects=[{"kind":"X","name":"u"}]"#, &[r#"subjects[0].kind: Unsupported value: "X": supported values: "ServiceAccount", "User", "Group""#]),
    ]);
}
