//! Annotations of pods and of templates: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use super::sample;
use crate::testing::Sample;
use crate::{GroupKind, Privileged, validate_update};

fn template() -> Sample {
    let spec = json!({"containers": [{"name": "c", "image": "nginx:1"}]});
    Sample::new(
        "",
        "v1",
        "PodTemplate",
        json!({"metadata": {"name": "t", "namespace": "default"}, "template": {"metadata": {}, "spec": spec}}),
    )
}

const FIELD: &str =
    r#"spec.containers.0.securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"a"}}"#;

#[test]
fn profiles_of_seccomp_are_well_made_and_say_what_the_fields_say() {
    const POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/c";
    let annotated = |key: &str, value: &str| format!(r#"metadata.annotations={{"{key}":"{value}"}}"#);
    sample().check_creates(&[
        (&annotated(POD, "runtime/default"), &[]),
        (&annotated(POD, "localhost/a"), &[]),
        (
            &annotated(POD, "x"),
            &[r#"metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile"#],
        ),
        (
            &annotated(CONTAINER, "localhost//.."),
            &[
                r#"metadata.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: "/..": must be a relative path"#,
                r#"metadata.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: "/..": must not contain '..'"#,
            ],
        ),
        (&format!("{};{FIELD}", annotated(CONTAINER, "localhost/a")), &[]),
        (
            &format!("{};{FIELD}", annotated(CONTAINER, "localhost/b")),
            &["spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match"],
        ),
        (
            &format!("{};{FIELD}", annotated(CONTAINER, "unconfined")),
            &["spec.containers[0].securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"],
        ),
        (
            &format!(r#"{};spec.securityContext={{"seccompProfile":{{"type":"Unconfined"}}}}"#, annotated(POD, "docker/default")),
            &["spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"],
        ),
    ]);
    // What is there may go on in an update, but for its form.
    sample().check_updates(&[(&format!("!{FIELD} => {}", annotated(CONTAINER, "localhost/b")), &[])]);
}

#[test]
fn tolerations_in_an_annotation_are_read_as_go_reads_them() {
    let noted = |said: &str| {
        let said = serde_json::to_string(said).expect("a text");
        format!(r#"metadata.annotations={{"scheduler.alpha.kubernetes.io/tolerations":{said}}}"#)
    };
    let at = "metadata.annotations";
    sample().check_creates(&[
        (&noted(""), &[]),
        (&noted("null"), &[]),
        (&noted(r#"[{"KEY":"a","operator":"Exists","other":{}}]"#), &[]),
        (&noted("{"), &[&format!(r#"{at}: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": unexpected end of JSON input"#)]),
        (&noted("{}"), &[&format!(r#"{at}: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot unmarshal object into Go value of type []core.Toleration"#)]),
        (&noted(r#"[{"key":1}]"#), &[&format!(r#"{at}: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot unmarshal number into Go struct field Toleration.Key of type string"#)]),
        (&noted(r#"[{"tolerationSeconds":1.5}]"#), &[&format!(r#"{at}: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot unmarshal number 1.5 into Go struct field Toleration.TolerationSeconds of type int64"#)]),
        (&noted(r#"[{"key":"a","effect":"X"}]"#), &[&format!(r#"{at}.scheduler.alpha.kubernetes.io/tolerations[0].effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#)]),
    ]);
}

#[test]
fn a_cost_that_made_no_sense_may_go_on() {
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let costs = |cost: &str| format!(r#"metadata.annotations={{"{COST}":"{cost}"}}"#);
    let refused = format!(r#"metadata.annotations[{COST}]: Invalid value: "008": must be a 32bit integer"#);
    let refused = refused.as_str();
    sample().check_updates(&[
        (&costs("-8"), &[]),
        (&costs("008"), &[refused, refused]),
        (&format!("@status {}", costs("008")), &[refused]),
    ]);
    let pod = |cost: &str| {
        let mut pod = sample().sent(&costs(cost));
        pod["metadata"]["resourceVersion"] = "1".into();
        pod
    };
    let kind = GroupKind::built_in("", "Pod");
    let told = |new: &str, old: &str| {
        let causes = validate_update(&kind, Some("status"), &pod(new), &pod(old), Privileged::Allowed);
        causes.len()
    };
    assert_eq!((told("008", "x"), told("008", "8")), (0, 1));
}

#[test]
fn what_says_that_a_pod_is_a_mirror_or_confined_stays() {
    const MIRROR: &str = r#""kubernetes.io/config.mirror":"x""#;
    const ARMOR: &str = r#""container.apparmor.security.beta.kubernetes.io/c":"unconfined""#;
    let noted = |what: &str| format!("metadata.annotations={{{what}}}");
    let added = |at: &str, what: &str| format!("metadata.annotations[{at}]: Forbidden: may not {what}");
    let mirror = |what| added("kubernetes.io/config.mirror", what);
    let armor = |what| added("container.apparmor.security.beta.kubernetes.io/c", what);
    for subresource in ["", "@status "] {
        sample().check_updates(&[
            (
                &format!(r#"!spec.nodeName="n" => {subresource}{}"#, noted(MIRROR)),
                &[&mirror("add mirror pod annotation")],
            ),
            (
                &format!(r#"!spec.nodeName="n";{} => {subresource}metadata.annotations=null"#, noted(MIRROR)),
                &[&mirror("remove or update mirror pod annotation")],
            ),
            (
                &format!(
                    r#"!spec.nodeName="n";{} => {subresource}{}"#,
                    noted(MIRROR),
                    noted(&MIRROR.replace(r#""x""#, r#""y""#))
                ),
                &[&mirror("remove or update mirror pod annotation")],
            ),
            (&format!("{subresource}{}", noted(ARMOR)), &[&armor("add AppArmor annotations")]),
            (
                &format!("!{} => {subresource}metadata.annotations=null", noted(ARMOR)),
                &[&armor("remove or update AppArmor annotations")],
            ),
            (&format!(r#"!{} => {subresource}{}"#, noted(ARMOR), noted(&format!(r#"{ARMOR},"a":"b""#))), &[]),
        ]);
    }
    // Neither subresource changes annotations.
    sample().check_updates(&[
        (&format!("@resize {}", noted(ARMOR)), &[]),
        (&format!("@ephemeralcontainers {}", noted(ARMOR)), &[]),
    ]);
}

#[test]
fn the_annotations_of_a_template_say_what_a_pods_may() {
    let noted = |key: &str, value: &str| format!(r#"template.metadata.annotations={{"{key}":"{value}"}}"#);
    template().check_creates(&[
        (
            &noted("controller.kubernetes.io/pod-deletion-cost", "1.5"),
            &[r#"template.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "1.5": must be a 32bit integer"#],
        ),
        (
            &noted("kubernetes.io/config.mirror", "x"),
            &[r#"template.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set"#],
        ),
        (
            &noted("seccomp.security.alpha.kubernetes.io/pod", "x"),
            &[r#"template.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile"#],
        ),
    ]);
}
