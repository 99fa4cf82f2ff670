//! PodTemplates: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;
use crate::{GroupKind, warnings};

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "PodTemplate",
        json!({
            "metadata": {"name": "pt", "namespace": "default"},
            "template": {
                "metadata": {"labels": {"app": "w"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"generation": 1, "name": "pt", "namespace": "default"},
            "template": {
                "metadata": {"labels": {"app": "w"}},
                "spec": {
                    "containers": [
                        {
                            "image": "nginx:1",
                            "imagePullPolicy": "IfNotPresent",
                            "name": "c",
                            "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                        },
                    ],
                    "dnsPolicy": "ClusterFirst",
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
            },
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("template.spec.containers=[]", &["template.spec.containers: Required value"]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"template.spec.containers.0.image="x""#, &[]),
        (r#"template.spec.containers.0.image="""#, &["template.spec.containers[0].image: Required value"]),
        (r#"template.metadata.labels={"a":"b"}"#, &[]),
    ]);
}

#[test]
fn an_update_is_told_of_a_template_that_it_changes() {
    let kind = GroupKind { group: "", kind: "PodTemplate", custom: None };
    let of = |generation: u32| {
        let spec =
            json!({ "containers": [], "topologySpreadConstraints": [{ "topologyKey": "z", "maxSkew": 1 }] });
        json!({ "metadata": { "name": "t", "generation": generation }, "template": { "spec": spec } })
    };
    assert_eq!(warnings(&kind, &of(1), None).len(), 1);
    assert_eq!(warnings(&kind, &of(1), Some((None, &of(1)))).len(), 0);
    assert_eq!(warnings(&kind, &of(2), Some((None, &of(1)))).len(), 1);
}
