//! Deployments: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "apps",
        "v1",
        "Deployment",
        json!({
            "metadata": {"name": "d", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "w"}},
                "template": {
                    "metadata": {"labels": {"app": "w"}},
                    "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
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
            "metadata": {"generation": 1, "name": "d", "namespace": "default"},
            "spec": {
                "progressDeadlineSeconds": 600,
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "w"}},
                "strategy": {
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                    "type": "RollingUpdate",
                },
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
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.replicas=-1", &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.selector=null", &["spec.selector: Required value", r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#]),
        ("spec.selector={}", &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
        (r#"spec.selector={"matchLabels":{"app":"x"}}"#, &[r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#]),
        (r#"spec.selector={"matchExpressions":[{"key":"a","operator":"X"}]}"#, &[r#"spec.selector.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator"#, r#"spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"X"}]}: invalid label selector"#]),
        (r#"spec.selector={"matchExpressions":[{"key":"a","operator":"In"}]}"#, &["spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'", r#"spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"In"}]}: invalid label selector"#]),
        ("spec.template.metadata.labels=null", &["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"]),
        (r#"spec.template.metadata.labels={"app":"w","a b":"c"}"#, &[r#"spec.template.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanu…"#]),
        (r#"spec.template.spec.restartPolicy="Never""#, &[r#"spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#]),
        ("spec.template.spec.containers=[]", &["spec.template.spec.containers: Required value"]),
        (r#"spec.template.spec.containers.0.image="""#, &["spec.template.spec.containers[0].image: Required value"]),
        ("spec.template.spec.activeDeadlineSeconds=5", &["spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"]),
        (r#"spec.template.spec.hostNetwork=true;spec.template.spec.containers.0.ports=[{"containerPort":80}]"#, &[]),
        (r#"spec.template.spec.containers.0.resources={"limits":{"cpu":"1"}}"#, &[]),
        (r#"spec.strategy={"type":"X"}"#, &[r#"spec.strategy: Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate""#]),
        (r#"spec.strategy={"type":"Recreate"}"#, &[]),
        (r#"spec.strategy={"type":"Recreate","rollingUpdate":{"maxSurge":1}}"#, &["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}}"#, &["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"]),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"x","maxUnavailable":-1}}"#, &["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or equal to 0", r#"spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '9…"#]),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"10%","maxUnavailable":"101%"}}"#, &[r#"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%"#]),
        ("spec.minReadySeconds=-1", &["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.revisionHistoryLimit=-1", &["spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.progressDeadlineSeconds=-1", &["spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0", "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds"]),
        ("spec.progressDeadlineSeconds=5;spec.minReadySeconds=5", &["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"]),
        ("spec.minReadySeconds=700", &["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        (r#"spec.template.spec.ephemeralContainers=[{"name":"e","image":"x"}]"#, &["spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.replicas=3", &[]),
        (r#"spec.selector={"matchLabels":{"app":"w","b":"c"}}"#, &[r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#, r#"spec.selector: Invalid value: {"matchLabels":{"app":"w","b":"c"}}: field is immutable"#]),
        (r#"spec.selector={"matchLabels":{"app":"x"}};spec.template.metadata.labels={"app":"x"}"#, &[r#"spec.selector: Invalid value: {"matchLabels":{"app":"x"}}: field is immutable"#]),
        (r#"spec.template.metadata.labels={"app":"x"}"#, &[r#"spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`"#]),
        ("spec.replicas=-1", &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.template.spec.containers.0.image="b""#, &[]),
        ("@status status.replicas=-1", &["status.replicas: Invalid value: -1: must be greater than or equal to 0", "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas", "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas", "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas"]),
        ("@status status.availableReplicas=5;status.readyReplicas=3;status.updatedReplicas=4;status.replicas=1", &["status.updatedReplicas: Invalid value: 4: cannot be greater than status.replicas", "status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas", "status.availableReplicas: Invalid value: 5: cannot be greater than status.replicas", "status.availableReplicas: Invalid value: 5: cannot be greater than readyReplicas"]),
        ("@status status.collisionCount=-1", &["status.collisionCount: Invalid value: -1: must be greater than or equal to 0"]),
        ("@status spec.replicas=7", &[]),
    ]);
}
