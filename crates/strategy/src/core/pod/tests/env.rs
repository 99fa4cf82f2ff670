//! Environment variables: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use super::sample;

#[test]
fn files_that_variables_are_read_from_are_in_empty_volumes_of_the_pod() {
    let variable = |file: &str| {
        format!(
            r#"spec.volumes=[{{"name":"e"}},{{"name":"h","hostPath":{{"path":"/h"}}}}];spec.containers.0.env=[{{"name":"A","valueFrom":{{"fileKeyRef":{file}}}}}]"#
        )
    };
    let at = |member: &str| format!("spec.containers[0].env[0].valueFrom.fileKeyRef.{member}");
    let (of_volume, label) = (at("volumeName"), "a lowercase RFC 1123 label must…");
    sample().check_creates(&[
        (&variable(r#"{"volumeName":"e","path":"a","key":"K"}"#), &[]),
        (
            &variable(r#"{"volumeName":"x","path":"a","key":"K"}"#),
            &[&format!(r#"{of_volume}: Not found: "x""#)],
        ),
        (
            &variable(r#"{"volumeName":"h","path":"a","key":"K"}"#),
            &[&format!(r#"{of_volume}: Invalid value: "h": referenced volume must be of type emptyDir"#)],
        ),
        (
            &variable(r#"{"volumeName":"A_","path":"a","key":"K"}"#),
            &[
                &format!(r#"{of_volume}: Invalid value: "A_": {label}"#),
                &format!(r#"{of_volume}: Not found: "A_""#),
            ],
        ),
        (
            &variable(r#"{"volumeName":"e","path":"../a","key":"a=b"}"#),
            &[
                &format!(r#"{}: Invalid value: "a=b": a valid environment variable name…"#, at("key")),
                &format!(r#"{}: Invalid value: "../a": must not contain '..'"#, at("path")),
            ],
        ),
    ]);
}

#[test]
fn variables_must_be_well_made() {
    sample().check_creates(&[
        (r#"spec.containers.0.env=[{"name":""}]"#, &["spec.containers[0].env[0].name: Required value"]),
        (r#"spec.containers.0.env=[{"name":"a=b"}]"#, &[r#"spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{}}]"#, &[r#"spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"#]),
        (r#"spec.containers.0.env=[{"name":"A","value":"x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.nope"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.nope": error converting fieldPath: field label not supported: metadata.nope"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":""}}}]"#, &["spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Required value"]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"status.phase"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "m…"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a b']"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start…"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v2","fieldPath":"metadata.name"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"secretKeyRef":{"name":"","key":""}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.secretKeyRef.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric chara…"#, "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"secretKeyRef":{"name":"S","key":"a/b"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.secretKeyRef.name: Invalid value: "S": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric char…"#, r#"spec.containers[0].env[0].valueFrom.secretKeyRef.key: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.…"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"s","key":"k"},"secretKeyRef":{"name":"s","key":"k"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.gpu"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-stor…"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"2"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"2"}}}]"#, &[r#"spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.memory": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1M…"#]),
        (r#"spec.containers.0.env=[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":""}}}]"#, &["spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Required value"]),
        ("spec.containers.0.envFrom=[{}]", &[r#"spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`"#]),
        (r#"spec.containers.0.envFrom=[{"configMapRef":{"name":""}}]"#, &["spec.containers[0].envFrom[0].configMapRef.name: Required value"]),
        (r#"spec.containers.0.envFrom=[{"prefix":"a=","secretRef":{"name":"S"},"configMapRef":{"name":"c"}}]"#, &[r#"spec.containers[0].envFrom[0].prefix: Invalid value: "a=": a valid environment variable name must consist only of printable ASCII characters other than '='"#, r#"spec.containers[0].envFrom[0].secretRef.name: Invalid value: "S": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '…"#, r#"spec.containers[0].envFrom: Invalid value: "": may not have more than one field specified at a time"#]),
    ]);
}
