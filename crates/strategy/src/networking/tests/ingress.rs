//! Ingresses: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "networking.k8s.io",
        "v1",
        "Ingress",
        json!({
            "metadata": {"name": "in", "namespace": "default"},
            "spec": {
                "rules": [
                    {
                        "host": "a.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                },
                            ],
                        },
                    },
                ],
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "in", "namespace": "default", "generation": 1},
            "spec": {
                "rules": [
                    {
                        "host": "a.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                },
                            ],
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
        ("spec=null", &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]),
        ("spec.rules=null;spec.defaultBackend={}", &[r#"spec.defaultBackend: Invalid value: "": resource or service backend is required"#]),
        (r#"spec.rules=null;spec.defaultBackend={"service":{"name":"s","port":{"number":80}}}"#, &[]),
        (r#"spec.defaultBackend={"service":{"name":"s","port":{"number":80}},"resource":{"kind":"a","name":"b"}}"#, &[r#"spec.defaultBackend: Invalid value: "": cannot set both resource and service backends"#]),
        (r#"spec.defaultBackend={"service":{"name":"","port":{}}}"#, &["spec.defaultBackend.service.name: Required value", "spec.defaultBackend: Required value: port name or number is required"]),
        (r#"spec.defaultBackend={"service":{"name":"A","port":{"number":70000}}}"#, &[r#"spec.defaultBackend.service.name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#, "spec.defaultBackend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
        (r#"spec.defaultBackend={"service":{"name":"s","port":{"name":"A","number":1}}}"#, &[r#"spec.defaultBackend: Invalid value: "": cannot set both port name & port number"#]),
        (r#"spec.defaultBackend={"service":{"name":"s","port":{"name":"A"}}}"#, &[r#"spec.defaultBackend.service.port.name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"#, r#"spec.defaultBackend.service.port.name: Invalid value: "A": must contain at least one letter (a-z)"#]),
        (r#"spec.defaultBackend={"service":{"name":"1a","port":{"name":"http"}}}"#, &[]),
        (r#"spec.defaultBackend={"resource":{"kind":"","name":""}}"#, &["spec.defaultBackend.resource.kind: Required value", "spec.defaultBackend.resource.name: Required value"]),
        (r#"spec.defaultBackend={"resource":{"apiGroup":"A_","kind":"a/b","name":".."}}"#, &[r#"spec.defaultBackend.resource.apiGroup: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or …"#, r#"spec.defaultBackend.resource.kind: Invalid value: "a/b": may not contain '/'"#, r#"spec.defaultBackend.resource.name: Invalid value: "..": may not be '..'"#]),
        (r#"spec.defaultBackend={"resource":{"apiGroup":"a.b","kind":"K","name":"n"}}"#, &[]),
        (r#"spec.rules.0.host="1.2.3.4""#, &[r#"spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#]),
        (r#"spec.rules.0.host="A.com""#, &[r#"spec.rules[0].host: Invalid value: "A.com": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        (r#"spec.rules.0.host="*.a.com""#, &[]),
        (r#"spec.rules.0.host="*a.com""#, &[r#"spec.rules[0].host: Invalid value: "*a.com": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist…"#]),
        (r#"spec.rules.0.host="a.*.com""#, &[r#"spec.rules[0].host: Invalid value: "a.*.com": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consis…"#]),
        (r#"spec.rules.0.host="a.com:80""#, &[r#"spec.rules[0].host: Invalid value: "a.com:80": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must…"#]),
        ("spec.rules.0.http=null", &[]),
        (r#"spec.rules.0.http={"paths":[]}"#, &["spec.rules[0].http.paths: Required value"]),
        ("spec.rules.0.http.paths.0.pathType=null", &["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]),
        (r#"spec.rules.0.http.paths.0.pathType="X""#, &[r#"spec.rules[0].http.paths[0].pathType: Unsupported value: "X": supported values: "Exact", "ImplementationSpecific", "Prefix""#]),
        (r#"spec.rules.0.http.paths.0.pathType="""#, &[r#"spec.rules[0].http.paths[0].pathType: Unsupported value: "": supported values: "Exact", "ImplementationSpecific", "Prefix""#]),
        (r#"spec.rules.0.http.paths.0.path="a""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path"#]),
        (r#"spec.rules.0.http.paths.0.path="""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "": must be an absolute path"#]),
        (r#"spec.rules.0.http.paths.0.path="/a//b""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "/a//b": must not contain '//'"#]),
        (r#"spec.rules.0.http.paths.0.path="/a/../b/./c""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "/a/../b/./c": must not contain '/./'"#, r#"spec.rules[0].http.paths[0].path: Invalid value: "/a/../b/./c": must not contain '/../'"#]),
        (r#"spec.rules.0.http.paths.0.path="/a/..""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "/a/..": cannot end with '/..'"#]),
        (r#"spec.rules.0.http.paths.0.path="/a%2fb%2F""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "/a%2fb%2F": must not contain '%2f'"#, r#"spec.rules[0].http.paths[0].path: Invalid value: "/a%2fb%2F": must not contain '%2F'"#]),
        (r#"spec.rules.0.http.paths.0.pathType="ImplementationSpecific";spec.rules.0.http.paths.0.path="a""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path"#]),
        (r#"spec.rules.0.http.paths.0.pathType="ImplementationSpecific";spec.rules.0.http.paths.0.path=null"#, &[]),
        (r#"spec.rules.0.http.paths.0.pathType="Exact";spec.rules.0.http.paths.0.path="/a/.""#, &[r#"spec.rules[0].http.paths[0].path: Invalid value: "/a/.": cannot end with '/.'"#]),
        ("spec.rules.0.http.paths.0.backend={}", &[r#"spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required"#]),
        ("spec.rules.0.http.paths.0.backend.service.port={}", &["spec.rules[0].http.paths[0].backend: Required value: port name or number is required"]),
        (r#"spec.rules.0.http.paths.0.backend.service.port={"number":-1}"#, &["spec.rules[0].http.paths[0].backend.service.port.number: Invalid value: -1: must be between 1 and 65535, inclusive"]),
        (r#"spec.tls=[{"hosts":["A"],"secretName":"A_"}]"#, &[r#"spec.tls[0].hosts[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must star…"#, r#"spec.tls[0].secretName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must s…"#]),
        (r#"spec.tls=[{"hosts":["*"],"secretName":"a"}]"#, &[r#"spec.tls[0].hosts[0]: Invalid value: "*": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of…"#]),
        (r#"spec.tls=[{"hosts":["*.a.com"]}]"#, &[]),
        (r#"spec.ingressClassName="A""#, &[r#"spec.ingressClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must sta…"#]),
        (r#"spec.ingressClassName="""#, &[r#"spec.ingressClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must star…"#]),
        (r#"spec.ingressClassName="a";metadata.annotations={"kubernetes.io/ingress.class":"b"}"#, &[r#"annotations.kubernetes.io/ingress.class: Invalid value: "b": must match `ingressClassName` when both are specified"#]),
        (r#"spec.ingressClassName="a";metadata.annotations={"kubernetes.io/ingress.class":"a"}"#, &[]),
        (r#"metadata.annotations={"kubernetes.io/ingress.class":"b"}"#, &[]),
        (r#"status={"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.rules.0.host="A""#, &[r#"spec.rules[0].host: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start …"#]),
        (r#"spec.ingressClassName="a""#, &[]),
        (r#"spec.ingressClassName="A""#, &[r#"spec.ingressClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must sta…"#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#, r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"@status status={"loadBalancer":{"ingress":[{"ip":"x"}]}}"#, &[r#"status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]),
        (r#"@status status={"loadBalancer":{"ingress":[{"hostname":"A"}]}}"#, &[r#"status.loadBalancer.ingress[0].hostname: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or…"#]),
        (r#"@status status={"loadBalancer":{"ingress":[{"hostname":"1.2.3.4"}]}}"#, &[r#"status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#]),
        (r#"@status status={"loadBalancer":{"ingress":[{"ip":"1.2.3.4","hostname":"a.com"}]}}"#, &[]),
        (r#"@status status={"loadBalancer":{"ingress":[{"ip":"1.2.3.4","ports":[{"port":0,"protocol":"X"}]}]}}"#, &[]),
        (r#"@status status={"loadBalancer":{"ingress":[{"ip":"01.2.3.4"}]}}"#, &[r#"status.loadBalancer.ingress[0].ip: Invalid value: "01.2.3.4": must not have leading 0s"#]),
        ("@status spec.rules=[]", &[]),
        (r#"status={"loadBalancer":{"ingress":[{"ip":"x"}]}}"#, &[]),
    ]);
}
