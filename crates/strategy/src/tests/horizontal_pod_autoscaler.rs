//! HorizontalPodAutoscalers: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        json!({
            "metadata": {"name": "h", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "maxReplicas": 3,
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "h", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                "minReplicas": 1,
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 80},
                        },
                    },
                ],
            },
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        ("spec=null", &["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`", "spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value", r#"spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group"#]),
        ("spec.maxReplicas=0", &["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"]),
        ("spec.maxReplicas=-1", &["spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1", "spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`"]),
        ("spec.minReplicas=0", &["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1", "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"]),
        ("spec.minReplicas=-1", &["spec.minReplicas: Invalid value: -1: must be greater than or equal to 1"]),
        ("spec.minReplicas=5", &["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"]),
        ("spec.scaleTargetRef={}", &["spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value", r#"spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group"#]),
        (r#"spec.scaleTargetRef={"kind":"a/b","name":"..","apiVersion":"apps/v1"}"#, &[r#"spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain '/'"#, r#"spec.scaleTargetRef.name: Invalid value: "..": may not be '..'"#]),
        (r#"spec.scaleTargetRef={"kind":"Deployment","name":"d"}"#, &[r#"spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group"#]),
        (r#"spec.scaleTargetRef={"kind":"Deployment","name":"d","apiVersion":"a/b/c"}"#, &[r#"spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#]),
        (r#"spec.scaleTargetRef={"kind":"ReplicationController","name":"d","apiVersion":"v1"}"#, &[]),
        (r#"spec.scaleTargetRef={"kind":"Pod","name":"d","apiVersion":"v1"}"#, &[r#"spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group"#]),
        (r#"spec.metrics=[{"type":""}]"#, &["spec.metrics[0].type: Required value: must specify a metric source type", r#"spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#, r#"spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#]),
        (r#"spec.metrics=[{"type":"X"}]"#, &[r#"spec.metrics[0].type: Unsupported value: "X": supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#, r#"spec.metrics[0].type: Unsupported value: "X": supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#]),
        (r#"spec.metrics=[{"type":"Resource"}]"#, &["spec.metrics[0].resource: Required value: must populate information for the given metric source"]),
        (r#"spec.metrics=[{"type":"Resource","resource":{"name":"","target":{"type":""}}}]"#, &["spec.metrics[0].resource.name: Required value: must specify a resource name", "spec.metrics[0].resource.target.type: Required value: must specify a metric target type", r#"spec.metrics[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue"#, "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"]),
        (r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"X","averageUtilization":0}}}]"#, &[r#"spec.metrics[0].resource.target.type: Invalid value: "X": must be either Utilization, Value, or AverageValue"#, "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"]),
        (r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":10,"averageValue":"1"}}}]"#, &["spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"]),
        (r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Value","value":"-1","averageValue":"0"}}}]"#, &[r#"spec.metrics[0].resource.target.value: Invalid value: "-1": must be positive"#, r#"spec.metrics[0].resource.target.averageValue: Invalid value: "0": must be positive"#]),
        (r#"spec.metrics=[{"type":"Pods","pods":{"metric":{"name":""},"target":{"type":"Value"}}}]"#, &["spec.metrics[0].pods.metric.name: Required value: must specify a metric name", "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue"]),
        (r#"spec.metrics=[{"type":"Pods","pods":{"metric":{"name":"a/b"},"target":{"type":"AverageValue","averageValue":"1"}}}]"#, &[r#"spec.metrics[0].pods.metric.name: Invalid value: "a/b": may not contain '/'"#]),
        (r#"spec.metrics=[{"type":"Pods","pods":{"metric":{"name":"ab","selector":{"matchLabels":{"a":"b"}}},"target":{"type":"AverageValue","averageValue":"1500m"}}}]"#, &[]),
        (r#"spec.metrics=[{"type":"Object","object":{"describedObject":{"kind":"","name":""},"metric":{"name":"m"},"target":{"type":"Value"}}}]"#, &["spec.metrics[0].object.describedObject.kind: Required value", "spec.metrics[0].object.describedObject.name: Required value", "spec.metrics[0].object.target.averageValue: Required value: must set either a target value or averageValue"]),
        (r#"spec.metrics=[{"type":"Object","object":{"describedObject":{"kind":"K","name":"n","apiVersion":"a/b/c"},"metric":{"name":"m"},"target":{"type":"Value","value":"1"}}}]"#, &[r#"spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#]),
        (r#"spec.metrics=[{"type":"Object","object":{"describedObject":{"kind":"K","name":"n"},"metric":{"name":"m"},"target":{"type":"Value","value":"1"}}}]"#, &[]),
        (r#"spec.metrics=[{"type":"External","external":{"metric":{"name":"m"},"target":{"type":"Value"}}}]"#, &["spec.metrics[0].external.target.averageValue: Required value: must set either a target value for metric or a per-pod target"]),
        (r#"spec.metrics=[{"type":"External","external":{"metric":{"name":"m"},"target":{"type":"Value","value":"1","averageValue":"2"}}}]"#, &["spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"]),
        (r#"spec.metrics=[{"type":"ContainerResource","containerResource":{"name":"","container":"","target":{"type":"Value"}}}]"#, &["spec.metrics[0].containerResource.name: Required value: must specify a resource name", "spec.metrics[0].containerResource.container: Required value: must specify a container", "spec.metrics[0].containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"]),
        (r#"spec.metrics=[{"type":"ContainerResource","containerResource":{"name":"foo","container":"A","target":{"type":"Value","averageUtilization":5}}}]"#, &[r#"spec.metrics[0].containerResource.name: Invalid value: "foo": must be a standard resource type or fully qualified"#, r#"spec.metrics[0].containerResource.name: Invalid value: "foo": must be a standard resource for containers"#, r#"spec.metrics[0].containerResource.container: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#]),
        (r#"spec.metrics=[{"type":"ContainerResource","containerResource":{"name":"cpu","container":"a","target":{"type":"Utilization","averageUtilization":5}}}]"#, &[]),
        (r#"spec.metrics=[{"type":"Pods","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":5}}}]"#, &["spec.metrics[0].pods: Required value: must populate information for the given metric source"]),
        (r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":5}},"pods":{"metric":{"name":"a"},"target":{"type":"AverageValue","averageValue":"1"}}}]"#, &["spec.metrics[0].pods: Forbidden: must populate the given metric source only"]),
        (r#"spec.minReplicas=0;spec.metrics=[{"type":"External","external":{"metric":{"name":"m"},"target":{"type":"Value","value":"1"}}}]"#, &["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]),
        (r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]"#, &[]),
        ("spec.behavior={}", &[]),
        (r#"spec.behavior={"scaleUp":{}}"#, &[]),
        (r#"spec.behavior={"scaleUp":{"stabilizationWindowSeconds":-1,"selectPolicy":"X"}}"#, &["spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero", r#"spec.behavior.scaleUp.selectPolicy: Unsupported value: "X": supported values: "Disabled", "Max", "Min""#]),
        (r#"spec.behavior={"scaleUp":{"stabilizationWindowSeconds":3601}}"#, &["spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"]),
        (r#"spec.behavior={"scaleUp":{"policies":[{"type":"X","value":0,"periodSeconds":0}]}}"#, &[r#"spec.behavior.scaleUp.policies[0].type: Unsupported value: "X": supported values: "Percent", "Pods""#, "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero", "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero"]),
        (r#"spec.behavior={"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":1801}]}}"#, &["spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"]),
        (r#"spec.behavior={"scaleUp":{"tolerance":"-1"}}"#, &[r#"spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"spec.behavior={"scaleUp":{"tolerance":"100m"}}"#, &[]),
        (r#"spec.behavior={"scaleDown":{"selectPolicy":"Disabled","tolerance":"0"}}"#, &[]),
        (r#"metadata.annotations={"autoscaling.alpha.kubernetes.io/metrics":"[]","a":"b"}"#, &[]),
        (r#"status={"currentReplicas":5}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.maxReplicas=0", &["spec.maxReplicas: Required value: must be set and greater than 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"]),
        ("spec.minReplicas=0", &["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1", "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"]),
        (r#"spec.scaleTargetRef.name="""#, &["spec.scaleTargetRef.name: Required value"]),
        (r#"spec.scaleTargetRef.apiVersion="x""#, &[r#"spec.scaleTargetRef.apiVersion: Invalid value: "x": apiVersion must specify API group"#]),
        (r#"spec.scaleTargetRef.apiVersion="x";spec.scaleTargetRef.kind="Z""#, &[r#"spec.scaleTargetRef.apiVersion: Invalid value: "x": apiVersion must specify API group"#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"spec.metrics=[{"type":"X"}]"#, &[r#"spec.metrics[0].type: Unsupported value: "X": supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#, r#"spec.metrics[0].type: Unsupported value: "X": supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#]),
        ("spec.metrics=null", &[]),
        (r#"@status status={"currentReplicas":-1,"desiredReplicas":-2}"#, &["status.currentReplicas: Invalid value: -1: must be greater than or equal to 0", "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0"]),
        (r#"@status status={"currentReplicas":1,"desiredReplicas":2}"#, &[]),
        (r#"@status status={"desiredReplicas":0,"currentMetrics":[{"type":"X"}],"conditions":[{"type":"","status":"Z"}]}"#, &[]),
        ("@status spec.maxReplicas=9", &[]),
        (r#"status={"desiredReplicas":7}"#, &[]),
        (r#"!spec.metrics=[{"type":"Object","object":{"describedObject":{"kind":"K","name":"n"},"metric":{"name":"m"},"target":{"type":"Value","value":"1"}}}] => spec.metrics.0.object.describedObject.apiVersion="a/b/c""#, &[r#"spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#]),
    ]);
}
