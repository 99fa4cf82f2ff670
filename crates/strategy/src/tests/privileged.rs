//! A cluster whose policy knows no privileged containers: new pods and templates, and those that are there.
//!
//! In: writes of every kind that has a pod. Out: causes as kube-apiserver v1.36.3 gives them without
//! `--allow-privileged`. Never: pod security, which judges by namespace.

use serde_json::{Value, json};

use crate::testing::Sample;

const CONTAINER: &str = r#"containers.0.securityContext={"privileged":true}"#;

/// Group, kind, and where the spec of its pods is.
const KINDS: [(&str, &str, &str); 9] = [
    ("", "Pod", "spec"),
    ("", "PodTemplate", "template.spec"),
    ("", "ReplicationController", "spec.template.spec"),
    ("apps", "ReplicaSet", "spec.template.spec"),
    ("apps", "Deployment", "spec.template.spec"),
    ("apps", "DaemonSet", "spec.template.spec"),
    ("apps", "StatefulSet", "spec.template.spec"),
    ("batch", "Job", "spec.template.spec"),
    ("batch", "CronJob", "spec.jobTemplate.spec.template.spec"),
];

fn sample((group, kind, at): (&'static str, &'static str, &str)) -> Sample {
    let mut pod = json!({ "spec": { "containers": [{ "name": "c", "image": "nginx:1" }] } });
    if group == "batch" {
        pod["spec"]["restartPolicy"] = "Never".into();
    } else if kind != "Pod" {
        pod["metadata"] = json!({ "labels": { "app": "w" } });
    }
    // From the inside out.
    let above = at.strip_suffix("spec").expect("of a pod").split('.').filter(|step| !step.is_empty());
    let mut object = above.rev().fold(pod, |inner, step| json!({ step: inner }));
    match (group, kind) {
        ("apps", _) => object["spec"]["selector"] = json!({ "matchLabels": { "app": "w" } }),
        (_, "ReplicationController") => object["spec"]["selector"] = json!({ "app": "w" }),
        (_, "CronJob") => object["spec"]["schedule"] = "* * * * *".into(),
        _ => {}
    }
    object["metadata"] = json!({ "name": "a", "namespace": "default" });
    Sample::new(group, "v1", kind, object)
}

#[test]
fn no_kind_takes_in_a_privileged_container_that_the_policy_disallows() {
    for of @ (_, _, at) in KINDS {
        let want =
            format!("{at}.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy");
        let (new, plain) =
            (format!("{at}.{CONTAINER}"), format!("{at}.{CONTAINER}").replace("true", "false"));
        sample(of).check_creates(&[(&new, &[]), (&plain, &[])]);
        sample(of).without_privileged().check_creates(&[(&new, &[&want]), (&plain, &[]), ("", &[])]);
    }
}

#[test]
fn what_is_there_is_judged_with_every_change_but_that_of_its_status() {
    for of @ (_, kind, at) in KINDS {
        let cause =
            format!("{at}.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy");
        let labelled = format!(r#"!{at}.{CONTAINER} => metadata.labels={{"a":"b"}}"#);
        let want: &[&str] = match kind {
            // What its pods were made of before may be invalid.
            "StatefulSet" => &[],
            // It is validated as a whole, and then as what has changed.
            "Job" => &[&cause, &cause],
            _ => &[&cause],
        };
        sample(of).check_updates(&[(&labelled, &[])]);
        sample(of).without_privileged().check_updates(&[(&labelled, want)]);
        if !matches!(kind, "PodTemplate" | "CronJob") {
            let status = format!(r#"!{at}.{CONTAINER} => @status metadata.labels={{"a":"b"}}"#);
            sample(of).without_privileged().check_updates(&[(&status, &[])]);
        }
    }
    let template = "spec.template.spec";
    let added = format!("{template}.{CONTAINER}");
    let want = format!(
        "{template}.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"
    );
    let stateful = sample(("apps", "StatefulSet", template)).without_privileged();
    stateful.check_updates(&[(&added, &[&want]), (r#"metadata.labels={"a":"b"}"#, &[])]);
}

#[test]
fn every_container_of_a_pod_is_named_in_its_place() {
    const WHY: &str = "Forbidden: disallowed by cluster policy";
    let pod = || sample(KINDS[0]).without_privileged();
    let init = json!([{ "name": "i", "image": "nginx:1", "securityContext": { "privileged": true } }]);
    let debugger: Value = json!([{
        "name": "d", "image": "nginx:1", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
        "securityContext": { "privileged": true },
    }]);
    pod().check_creates(&[
        (
            &format!(r#"spec.initContainers={init};spec.containers.0.securityContext={{"privileged":true,"runAsUser":-1}}"#),
            &[
                &format!("spec.containers[0].securityContext.privileged: {WHY}"),
                "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                &format!("spec.initContainers[0].securityContext.privileged: {WHY}"),
            ],
        ),
        (
            r#"spec.hostNetwork=true;spec.securityContext={"windowsOptions":{"hostProcess":true}}"#,
            &["spec: Forbidden: hostProcess containers are disallowed by cluster policy"],
        ),
    ]);
    pod().check_updates(&[(
        &format!("@ephemeralcontainers spec.ephemeralContainers={debugger}"),
        &[&format!("spec.ephemeralContainers[0].securityContext.privileged: {WHY}")],
    )]);
}
