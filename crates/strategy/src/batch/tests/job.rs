//! Jobs: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "batch",
        "v1",
        "Job",
        json!({
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx:1"}]}},
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {
                "generation": 1,
                "labels": {
                    "batch.kubernetes.io/controller-uid": "11111111-1111-1111-1111-111111111111",
                    "batch.kubernetes.io/job-name": "j",
                    "controller-uid": "11111111-1111-1111-1111-111111111111",
                    "job-name": "j",
                },
                "name": "j",
                "namespace": "default",
            },
            "spec": {
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "completions": 1,
                "manualSelector": false,
                "parallelism": 1,
                "podReplacementPolicy": "TerminatingOrFailed",
                "selector": {
                    "matchLabels": {"batch.kubernetes.io/controller-uid": "11111111-1111-1111-1111-111111111111"},
                },
                "suspend": false,
                "template": {
                    "metadata": {
                        "labels": {
                            "batch.kubernetes.io/controller-uid": "11111111-1111-1111-1111-111111111111",
                            "batch.kubernetes.io/job-name": "j",
                            "controller-uid": "11111111-1111-1111-1111-111111111111",
                            "job-name": "j",
                        },
                    },
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
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.parallelism=-1", &["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.completions=-1", &["spec.completions: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.backoffLimit=-1", &["spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.activeDeadlineSeconds=-1", &["spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"]),
        ("spec.ttlSecondsAfterFinished=-1", &["spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.template.spec.restartPolicy="Always""#, &[r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#]),
        ("spec.template.spec.restartPolicy=null", &[r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#]),
        (r#"spec.template.spec.restartPolicy="X""#, &[r#"spec.template.spec.restartPolicy: Unsupported value: "X": supported values: "Always", "OnFailure", "Never""#, r#"spec.template.spec.restartPolicy: Unsupported value: "X": supported values: "OnFailure", "Never""#]),
        ("spec.template.spec.containers=[]", &["spec.template.spec.containers: Required value"]),
        (r#"spec.template.spec.containers.0.name="A""#, &[r#"spec.template.spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and m…"#]),
        (r#"spec.completionMode="X""#, &[r#"spec.completionMode: Unsupported value: "X": supported values: "NonIndexed", "Indexed""#]),
        (r#"spec.completionMode="Indexed""#, &[]),
        (r#"spec.completionMode="Indexed";spec.completions=3"#, &[]),
        (r#"spec.completionMode="Indexed";spec.completions=3;spec.parallelism=200000"#, &["spec.parallelism: Invalid value: 200000: must be less than or equal to 100000 when completion mode is Indexed"]),
        (r#"spec.completionMode="Indexed";spec.completions=3;metadata.name="a.b""#, &[r#"metadata.name: Invalid value: "a.b": will not able to create pod with invalid DNS label: a.b-2"#]),
        (r#"spec.completionMode="Indexed";spec.completions=3;metadata.name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &[r#"metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": will not able to create pod with invalid DNS label: a…"#]),
        ("spec.backoffLimitPerIndex=1", &["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
        ("spec.maxFailedIndexes=1", &["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified", "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode"]),
        (r#"spec.completionMode="Indexed";spec.completions=3;spec.backoffLimitPerIndex=1;spec.maxFailedIndexes=5"#, &["spec.maxFailedIndexes: Invalid value: 5: must be less than or equal to completions"]),
        (r#"spec.completionMode="Indexed";spec.completions=200000;spec.backoffLimitPerIndex=1"#, &["spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"]),
        (r#"spec.completionMode="Indexed";spec.completions=200000;spec.parallelism=20000;spec.backoffLimitPerIndex=1;spec.maxFailedIndexes=20000"#, &["spec.parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index", "spec.maxFailedIndexes: Invalid value: 20000: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"]),
        (r#"spec.selector={"matchLabels":{"a":"b"}}"#, &[r#"spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111"}}: `selector` not auto-generated"#, r#"spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111","batch.kubernetes.io/job-na…"#]),
        ("spec.manualSelector=true", &["spec.selector: Required value", "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"]),
        (r#"spec.manualSelector=true;spec.selector={"matchLabels":{"a":"b"}}"#, &["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"]),
        (r#"spec.manualSelector=true;spec.selector={"matchLabels":{"a":"b"}};spec.template.metadata={"labels":{"a":"b"}}"#, &[]),
        (r#"spec.template.metadata={"labels":{"job-name":"other"}}"#, &[r#"spec.template.metadata.labels[job-name]: Invalid value: {"batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111","batch.kubernetes…"#]),
        (r#"spec.template.metadata={"labels":{"controller-uid":"other"}}"#, &[r#"spec.template.metadata.labels[controller-uid]: Invalid value: {"batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111","batch.kube…"#]),
        (r#"spec.template.metadata={"labels":{"app":"x"}}"#, &[]),
        (r#"spec.managedBy="""#, &["spec.managedBy: Required value"]),
        (r#"spec.managedBy="x""#, &[r#"spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")"#]),
        (r#"spec.managedBy="acme.io/foo""#, &[]),
        (r#"spec.managedBy="A_/b""#, &[r#"spec.managedBy: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        (r#"spec.managedBy="acme.io/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &["spec.managedBy: Too long: may not be more than 63 bytes"]),
        (r#"spec.podReplacementPolicy="X""#, &[r#"spec.podReplacementPolicy: Unsupported value: "X": supported values: "Failed", "TerminatingOrFailed""#]),
        (r#"spec.podFailurePolicy={"rules":[]}"#, &[]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"X"}]}"#, &[r#"spec.podFailurePolicy.rules[0].action: Unsupported value: "X": supported values: "Count", "FailIndex", "FailJob", "Ignore""#, "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[0]}}]}"#, &["spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"FailJob","onExitCodes":{"operator":"X","values":[]}}]}"#, &[r#"spec.podFailurePolicy.rules[0].onExitCodes.operator: Unsupported value: "X": supported values: "In", "NotIn""#, "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: []: at least one value is required"]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"FailJob","onExitCodes":{"containerName":"zz","operator":"In","values":[2,1,1]}}]}"#, &[r#"spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "zz": must be one of the container or initContainer names in the pod template"#, "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 1", "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1,1]: must be ordered"]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}"#, &[]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"Ignore","onPodConditions":[{"type":"a b","status":"X"}]}]}"#, &[r#"spec.podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and …"#, r#"spec.podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: "X": supported values: "False", "True", "Unknown""#]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"FailIndex","onPodConditions":[{"type":"A"}]}]}"#, &[r#"spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set"#]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"FailJob","onPodConditions":[{"type":"A"}],"onExitCodes":{"operator":"In","values":[1]}}]}"#, &["spec.podFailurePolicy.rules[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"Ignore","onPodConditions":[{"type":"A"}]}]};spec.template.spec.restartPolicy="OnFailure""#, &[r#"spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified"#]),
        (r#"spec.podFailurePolicy={"rules":[{"action":"Ignore","onPodConditions":[{"type":"A"}]}]};spec.podReplacementPolicy="TerminatingOrFailed""#, &[r#"spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed""#]),
        (r#"spec.successPolicy={"rules":[]}"#, &[r#"spec.successPolicy: Invalid value: {"Rules":[]}: requires indexed completion mode"#]),
        (r#"spec.completionMode="Indexed";spec.completions=3;spec.successPolicy={"rules":[]}"#, &["spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified"]),
        (r#"spec.completionMode="Indexed";spec.completions=3;spec.successPolicy={"rules":[{}]}"#, &["spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"]),
        (r#"spec.completionMode="Indexed";spec.completions=3;spec.successPolicy={"rules":[{"succeededIndexes":"0-5"},{"succeededIndexes":"0,1","succeededCount":3},{"succeededCount":0},{"succeededCount":9},{"succeededIndexes":"a"}]}"#, &[r#"spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0-5": error parsing succeededIndexes: too large index: "5""#, "spec.successPolicy.rules[1].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)", "spec.successPolicy.rules[3].succeededCount: Invalid value: 9: must be less than or equal to 3 (the number of specified completions)", r#"spec.successPolicy.rules[4].succeededIndexes: Invalid value: "a": error parsing succeededIndexes: cannot convert string to integer for index: "a""#]),
        ("spec.suspend=true", &[]),
        ("spec.parallelism=3", &[]),
        ("spec.completions=null;spec.parallelism=2", &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.parallelism=5", &[]),
        ("spec.completions=5", &["spec.completions: Invalid value: 5: field is immutable"]),
        ("spec.backoffLimit=3", &[]),
        (r#"spec.selector={"matchLabels":{"a":"b"}}"#, &[r#"spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` not auto-generated"#, r#"spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111","batch.kubernetes.io/job-na…"#, r#"spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111","batch.kubernetes.io/job-na…"#, r#"spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable"#]),
        (r#"spec.template.spec.containers.0.image="x""#, &[r#"spec.template: Invalid value: {"labels":{"batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111","batch.kubernetes.io/job-name":"j…"#]),
        (r#"spec.template.spec.resources={}"#, &[r#"spec.template: Invalid value: {"labels":{"batch.kubernetes.io/controller-uid":"11111111-1111-1111-1111-111111111111","batch.kubernetes.io/job-name":"j…"#]),
        (r#"spec.completionMode="Indexed""#, &[r#"spec.completionMode: Invalid value: "Indexed": field is immutable"#]),
        (r#"spec.podFailurePolicy={"rules":[]}"#, &[r#"spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed""#, r#"spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed""#, r#"spec.podFailurePolicy: Invalid value: {"Rules":[]}: field is immutable"#]),
        (r#"spec.managedBy="a.io/b""#, &[r#"spec.managedBy: Invalid value: "a.io/b": field is immutable"#]),
        (r#"spec.successPolicy={"rules":[]}"#, &[r#"spec.successPolicy: Invalid value: {"Rules":[]}: requires indexed completion mode"#, r#"spec.successPolicy: Invalid value: {"Rules":[]}: requires indexed completion mode"#, r#"spec.successPolicy: Invalid value: {"Rules":[]}: field is immutable"#]),
        ("spec.manualSelector=true", &[]),
        ("spec.suspend=true", &[]),
        ("spec.ttlSecondsAfterFinished=3", &[]),
        ("spec.backoffLimitPerIndex=3", &["spec.backoffLimitPerIndex: Invalid value: 3: requires indexed completion mode", "spec.backoffLimitPerIndex: Invalid value: 3: requires indexed completion mode", "spec.backoffLimitPerIndex: Invalid value: 3: field is immutable"]),
        (r#"spec.template.metadata.labels={"a":"b"}"#, &["spec.template.metadata.labels[controller-uid]: Required value: must be '11111111-1111-1111-1111-111111111111'", "spec.template.metadata.labels[job-name]: Required value: must be 'j'", "spec.template.metadata.labels[batch.kubernetes.io/controller-uid]: Required value: must be '11111111-1111-1111-1111-111111111111'", "spec.template.metadata.labels[batch.kubernetes.io/job-name]: Required value: must be 'j'", r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#, r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#, r#"spec.template: Invalid value: {"labels":{"a":"b"},"Spec":{"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"nginx:1","Command":n…"#]),
        ("spec.activeDeadlineSeconds=-4", &["spec.activeDeadlineSeconds: Invalid value: -4: must be greater than or equal to 0", "spec.activeDeadlineSeconds: Invalid value: -4: must be greater than or equal to 0"]),
        (r#"!spec.suspend=true => spec.template.spec.nodeSelector={"a":"b"}"#, &[]),
        (r#"!spec.suspend=true => spec.template.spec.tolerations=[{"key":"a","operator":"Exists"}]"#, &[]),
        (r#"!spec.suspend=true => spec.template.spec.containers.0.image="x""#, &[r#"spec.template.spec: Invalid value: {"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"x","Command":null,"Args":null,"WorkingDir"…"#]),
        (r#"!spec.suspend=true => spec.template.metadata.annotations={"a":"b"}"#, &[]),
        (r#"!spec.suspend=true => spec.template.spec.containers.0.resources={"limits":{"cpu":"1"}}"#, &[]),
        (r#"!spec.suspend=true => spec.template.spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}"#, &[]),
        (r#"!spec.suspend=true => spec.template.spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}}"#, &[r#"spec.template.spec: Invalid value: {"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"nginx:1","Command":null,"Args":null,"Worki…"#]),
        (r#"!spec.completionMode="Indexed";spec.completions=3;spec.parallelism=3 => spec.completions=4;spec.parallelism=4"#, &[]),
        (r#"!spec.completionMode="Indexed";spec.completions=3;spec.parallelism=3 => spec.completions=4"#, &["spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"]),
        (r#"!spec.completionMode="Indexed";spec.completions=3;spec.parallelism=3 => spec.completions=null"#, &["spec.completions: Required value: when completion mode is Indexed", "spec.completions: Required value: when completion mode is Indexed"]),
        (r#"@status status.active=1;status.startTime="2026-01-01T00:00:00Z""#, &[]),
        ("@status status.active=-1", &["status.active: Invalid value: -1: must be greater than or equal to 0"]),
        ("@status status.succeeded=-1;status.failed=-1", &["status.succeeded: Invalid value: -1: must be greater than or equal to 0", "status.failed: Invalid value: -1: must be greater than or equal to 0", "status.failed: Invalid value: -1: cannot decrease the failed counter", "status.succeeded: Invalid value: -1: cannot decrease the succeeded counter"]),
        (r#"@status status.conditions=[{"type":"Complete","status":"True"}]"#, &["status.completionTime: Required value: completionTime is required for Complete jobs", "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition", "status.startTime: Required value: startTime is required for finished job"]),
        (r#"@status status.conditions=[{"type":"Complete","status":"True"},{"type":"Failed","status":"True"}]"#, &["status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions", "status.completionTime: Required value: completionTime is required for Complete jobs", "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition", "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition", "status.startTime: Required value: startTime is required for finished job"]),
        (r#"@status status.completionTime="2026-01-01T00:00:00Z""#, &[r#"status.completionTime: Invalid value: "2026-01-01T00:00:00Z": cannot set completionTime when there is no Complete=True condition"#]),
        (r#"@status status.startTime="2026-01-01T00:00:00Z";status.completionTime="2025-01-01T00:00:00Z";status.conditions=[{"type":"Complete","status":"True"},{"type":"SuccessCriteriaMet","status":"True"}]"#, &[r#"status.completionTime: Invalid value: "2025-01-01T00:00:00Z": must be equal to or after `startTime`"#]),
        ("@status status.ready=2;status.active=1", &["status.ready: Invalid value: 2: cannot set more ready pods than active"]),
        (r#"@status status.completedIndexes="0""#, &[r#"status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode"#]),
        (r#"@status status.failedIndexes="0""#, &[r#"status.failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when backoffLimitPerIndex is null"#]),
        ("@status status.terminating=-1", &["status.terminating: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"@status status.uncountedTerminatedPods={"succeeded":["a","a"],"failed":["","a"]}"#, &[r#"status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "a""#, r#"status.uncountedTerminatedPods.failed[0]: Invalid value: "": must not be empty"#, r#"status.uncountedTerminatedPods.failed[1]: Duplicate value: "a""#]),
        (r#"@status status.conditions=[{"type":"Suspended","status":"True"}]"#, &[]),
    ]);
}
