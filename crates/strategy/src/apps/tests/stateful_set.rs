//! StatefulSets: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "apps",
        "v1",
        "StatefulSet",
        json!({
            "metadata": {"name": "ss", "namespace": "default"},
            "spec": {
                "serviceName": "s",
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
            "metadata": {"generation": 1, "name": "ss", "namespace": "default"},
            "spec": {
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "podManagementPolicy": "OrderedReady",
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "w"}},
                "serviceName": "s",
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
                "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"spec.serviceName="""#, &[]),
        (r#"spec.serviceName="A_""#, &[r#"spec.serviceName: Invalid value: "A_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end wi…"#]),
        ("spec.selector=null", &["spec.selector: Required value", r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#]),
        ("spec.selector={}", &["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"]),
        (r#"spec.selector={"matchLabels":{"app":"x"}}"#, &[r#"spec.template.metadata.labels: Invalid value: {"app":"w"}: `selector` does not match template `labels`"#]),
        ("spec.replicas=-1", &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.podManagementPolicy="X""#, &[r#"spec.podManagementPolicy: Invalid value: "X": must be 'OrderedReady' or 'Parallel'"#]),
        (r#"spec.updateStrategy={"type":"X"}"#, &[r#"spec.updateStrategy: Invalid value: {"Type":"X","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'"#]),
        (r#"spec.updateStrategy={"type":"OnDelete","rollingUpdate":{"partition":1}}"#, &[r#"spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed for updateStrategy 'RollingUpdate'"#]),
        (r#"spec.updateStrategy={"rollingUpdate":{"partition":-1}}"#, &["spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":0}}"#, &[]),
        ("spec.minReadySeconds=-1", &["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.ordinals={"start":-1}"#, &["spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.revisionHistoryLimit=-1", &[]),
        (r#"spec.persistentVolumeClaimRetentionPolicy={"whenDeleted":"X"}"#, &[r#"spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "X": supported values: "Retain", "Delete""#]),
        (r#"spec.volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]"#, &[]),
        (r#"spec.volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}];spec.template.spec.containers.0.volumeMounts=[{"name":"data","mountPath":"/d"}]"#, &[]),
        (r#"spec.volumeClaimTemplates=[{"metadata":{"name":"a"},"spec":{}}]"#, &["spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required", "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"]),
        (r#"spec.template.spec.restartPolicy="Never""#, &[r#"spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#]),
        ("spec.template.spec.activeDeadlineSeconds=4", &["spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported"]),
        (r#"spec.template.spec.containers.0.volumeMounts=[{"name":"data","mountPath":"/d"}]"#, &[r#"spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data""#]),
        (r#"metadata.name="a.b""#, &[r#"metadata.name: Invalid value: "a.b": must not contain dots"#]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with a…"#]),
        ("spec.template.metadata.labels=null", &["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.serviceName="t""#, &["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'pers…"]),
        ("spec.replicas=2", &[]),
        (r#"spec.template.spec.containers.0.image="b""#, &[]),
        (r#"spec.podManagementPolicy="Parallel""#, &["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'pers…"]),
        (r#"spec.selector={"matchLabels":{"app":"x"}};spec.template.metadata.labels={"app":"x"}"#, &["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'pers…"]),
        (r#"spec.volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]"#, &["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'pers…"]),
        ("@status status.replicas=-1", &["status.replicas: Invalid value: -1: must be greater than or equal to 0", "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas", "status.currentReplicas: Invalid value: 0: cannot be greater than status.replicas", "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas", "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas"]),
        ("@status status.replicas=1;status.readyReplicas=2", &["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"]),
        ("spec.revisionHistoryLimit=3", &[]),
        ("spec.minReadySeconds=4", &[]),
        ("@status status.currentReplicas=5;status.updatedReplicas=6;status.availableReplicas=4", &["status.currentReplicas: Invalid value: 5: cannot be greater than status.replicas", "status.updatedReplicas: Invalid value: 6: cannot be greater than status.replicas", "status.availableReplicas: Invalid value: 4: cannot be greater than status.replicas", "status.availableReplicas: Invalid value: 4: cannot be greater than status.readyReplicas"]),
    ]);
}
