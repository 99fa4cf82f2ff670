//! Probes and hooks: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use super::sample;

#[test]
fn probes_must_be_well_made() {
    sample().check_creates(&[
        (r#"spec.initContainers=[{"name":"i","image":"b","livenessProbe":{"exec":{"command":["a"]}},"lifecycle":{"preStop":{"exec":{"command":["a"]}}}}]"#, &["spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always", "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"]),
        (r#"spec.initContainers=[{"name":"i","image":"b","restartPolicy":"Always","startupProbe":{"exec":{"command":["a"]}}}]"#, &[]),
        ("spec.containers.0.livenessProbe={}", &["spec.containers[0].livenessProbe: Required value: must specify a handler type"]),
        (r#"spec.containers.0.livenessProbe={"exec":{"command":[]}}"#, &["spec.containers[0].livenessProbe.exec.command: Required value"]),
        (r#"spec.containers.0.livenessProbe={"httpGet":{"path":"","port":0}}"#, &["spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        (r#"spec.containers.0.livenessProbe={"httpGet":{"port":"http","scheme":"FTP"}}"#, &[r#"spec.containers[0].livenessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS""#]),
        (r#"spec.containers.0.livenessProbe={"httpGet":{"port":80},"exec":{"command":["a"]}}"#, &["spec.containers[0].livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type"]),
        (r#"spec.containers.0.livenessProbe={"tcpSocket":{"port":"A"},"periodSeconds":-1,"timeoutSeconds":-1,"initialDelaySeconds":-1}"#, &[r#"spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"#, r#"spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: "A": must contain at least one letter (a-z)"#, "spec.containers[0].livenessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0", "spec.containers[0].livenessProbe.timeoutSeconds: Invalid value: -1: must be greater than or equal to 0", "spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"]),
        (r#"spec.containers.0.livenessProbe={"tcpSocket":{"port":80},"successThreshold":2,"failureThreshold":-1}"#, &["spec.containers[0].livenessProbe.failureThreshold: Invalid value: -1: must be greater than or equal to 0", "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"]),
        (r#"spec.containers.0.readinessProbe={"tcpSocket":{"port":80},"successThreshold":2,"terminationGracePeriodSeconds":1}"#, &["spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes"]),
        (r#"spec.containers.0.livenessProbe={"grpc":{"port":0}}"#, &["spec.containers[0].livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        (r#"spec.containers.0.startupProbe={"tcpSocket":{"port":80},"terminationGracePeriodSeconds":-1,"successThreshold":3}"#, &["spec.containers[0].startupProbe.terminationGracePeriodSeconds: Invalid value: -1: must be greater than 0", "spec.containers[0].startupProbe.successThreshold: Invalid value: 3: must be 1"]),
        (r#"spec.containers.0.livenessProbe={"httpGet":{"port":80,"httpHeaders":[{"name":"a b","value":"x"}]}}"#, &[r#"spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. '…"#]),
        (r#"spec.containers.0.lifecycle={"preStop":{}}"#, &["spec.containers[0].lifecycle.preStop: Required value: must specify a handler type"]),
        (r#"spec.containers.0.lifecycle={"postStart":{"exec":{"command":[]}}}"#, &["spec.containers[0].lifecycle.postStart.exec.command: Required value"]),
        (r#"spec.containers.0.lifecycle={"preStop":{"sleep":{"seconds":-1}}}"#, &["spec.containers[0].lifecycle.preStop.sleep: Invalid value: -1: must be non-negative and less than terminationGracePeriodSeconds (30)"]),
        (r#"spec.containers.0.lifecycle={"preStop":{"sleep":{"seconds":100}}}"#, &["spec.containers[0].lifecycle.preStop.sleep: Invalid value: 100: must be non-negative and less than terminationGracePeriodSeconds (30)"]),
        (r#"spec.containers.0.lifecycle={"stopSignal":"SIGX"}"#, &[]),
        (r#"spec.containers.0.lifecycle={"preStop":{"sleep":{"seconds":0}}}"#, &[]),
    ]);
}
