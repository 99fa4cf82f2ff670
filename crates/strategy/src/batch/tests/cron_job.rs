//! CronJobs: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "batch",
        "v1",
        "CronJob",
        json!({
            "metadata": {"name": "cj", "namespace": "default"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "c", "image": "nginx:1"}],
                            },
                        },
                    },
                },
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"generation": 1, "name": "cj", "namespace": "default"},
            "spec": {
                "concurrencyPolicy": "Allow",
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {
                    "spec": {
                        "template": {
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
                                "restartPolicy": "Never",
                                "schedulerName": "default-scheduler",
                                "securityContext": {},
                                "terminationGracePeriodSeconds": 30,
                            },
                        },
                    },
                },
                "schedule": "* * * * *",
                "successfulJobsHistoryLimit": 3,
                "suspend": false,
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"spec.schedule="""#, &["spec.schedule: Required value"]),
        (r#"spec.schedule="x""#, &[r#"spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]"#]),
        (r#"spec.schedule="* * * *""#, &[r#"spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]"#]),
        (r#"spec.schedule="61 * * * *""#, &[r#"spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61"#]),
        (r#"spec.schedule="@every 1s""#, &[]),
        (r#"spec.schedule="@nope""#, &[r#"spec.schedule: Invalid value: "@nope": unrecognized descriptor: @nope"#]),
        (r#"spec.schedule="TZ=UTC * * * * *""#, &[r#"spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead"#]),
        (r#"spec.schedule="0 0 31 2 *""#, &[]),
        (r#"spec.timeZone="""#, &[r#"spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string"#]),
        (r#"spec.timeZone="Local""#, &[r#"spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"#]),
        (r#"spec.timeZone="Europe/Berlin""#, &[]),
        (r#"spec.concurrencyPolicy="X""#, &[r#"spec.concurrencyPolicy: Unsupported value: "X": supported values: "Allow", "Forbid", "Replace""#]),
        ("spec.startingDeadlineSeconds=-1", &["spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.successfulJobsHistoryLimit=-1", &["spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.failedJobsHistoryLimit=-1", &["spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"metadata.name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &[r#"metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 52 characters"#]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        (r#"spec.jobTemplate.spec.template.spec.restartPolicy="Always""#, &[r#"spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#]),
        (r#"spec.jobTemplate.spec.selector={"matchLabels":{"a":"b"}}"#, &[r#"spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be auto-generated"#]),
        ("spec.jobTemplate.spec.manualSelector=true", &[r#"spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false""#]),
        ("spec.jobTemplate.spec.manualSelector=false", &[]),
        ("spec.jobTemplate.spec.template.spec.containers=[]", &["spec.jobTemplate.spec.template.spec.containers: Required value"]),
        ("spec.jobTemplate.spec.backoffLimit=-1", &["spec.jobTemplate.spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.jobTemplate.spec.completionMode="Indexed""#, &["spec.jobTemplate.spec.completions: Required value: when completion mode is Indexed"]),
        (r#"spec.jobTemplate.spec.podFailurePolicy={"rules":[{"action":"Ignore","onPodConditions":[{"type":"A"}]}]}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.schedule="1 * * * *""#, &[]),
        (r#"spec.schedule="x""#, &[r#"spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]"#]),
        ("spec.suspend=true", &[]),
        (r#"spec.schedule="TZ=UTC * * * * *""#, &[r#"spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead"#]),
        (r#"spec.jobTemplate.spec.template.spec.containers.0.image="b""#, &[]),
        (r#"@status status.lastScheduleTime="2026-01-01T00:00:00Z""#, &[]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric…"#]),
    ]);
}
