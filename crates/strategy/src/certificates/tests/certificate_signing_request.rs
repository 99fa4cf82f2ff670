//! CertificateSigningRequests: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        json!({
            "metadata": {
                "name": "csr"
            },
            "spec": {
                "request": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVFQXd3RFlXNXVNUTB3Q3dZRFZRUUtEQVJrWlhaek1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUV5VVkrNmpEV0JRY0NLM1U0UzBhdkxXQlRYazBkdVJqUU5kc3NpZlpnClAxbE01WmtFQXJsMEZIdXJkdGV1bEZTa0JkL1JwTTZSelV0bXhmZng4UjBxaEtBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJRW1KN09mcklka3I3NitXdy9BeEhHdC9vQ2p2NVFjTVhsWFh6M20wbzduZUFpRUFyNjh4YXk2cwozUlczY0o4dFhBMDA4ejdCMFJUSDhtRms1cDZ6bnBQRXIrOD0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==",
                "signerName": "example.com/signer",
                "usages": [
                    "client auth"
                ]
            }
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {
                "name": "csr"
            },
            "spec": {
                "groups": [
                    "system:masters",
                    "system:authenticated"
                ],
                "request": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVFQXd3RFlXNXVNUTB3Q3dZRFZRUUtEQVJrWlhaek1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUV5VVkrNmpEV0JRY0NLM1U0UzBhdkxXQlRYazBkdVJqUU5kc3NpZlpnClAxbE01WmtFQXJsMEZIdXJkdGV1bEZTa0JkL1JwTTZSelV0bXhmZng4UjBxaEtBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJRW1KN09mcklka3I3NitXdy9BeEhHdC9vQ2p2NVFjTVhsWFh6M20wbzduZUFpRUFyNjh4YXk2cwozUlczY0o4dFhBMDA4ejdCMFJUSDhtRms1cDZ6bnBQRXIrOD0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==",
                "signerName": "example.com/signer",
                "uid": "uid1",
                "usages": [
                    "client auth"
                ],
                "username": "admin"
            },
            "status": {}
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.expirationSeconds=600", &[]),
        ("spec.expirationSeconds=599", &["spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"]),
        ("spec.expirationSeconds=-1", &["spec.expirationSeconds: Invalid value: -1: may not specify a duration less than 600 seconds (10 minutes)"]),
        ("spec.usages=[]", &["spec.usages: Required value"]),
        (r#"spec.usages=["x"]"#, &[r#"spec.usages[0]: Unsupported value: "x": supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decip…"#]),
        (r#"spec.usages=["client auth","client auth"]"#, &[r#"spec.usages[1]: Duplicate value: "client auth""#]),
        (r#"spec.usages=["any","signing","netscape sgc"]"#, &[]),
        (r#"spec.signerName="""#, &["spec.signerName: Required value"]),
        (r#"spec.signerName="x""#, &[r#"spec.signerName: Invalid value: "x": must be a fully qualified domain and path of the form 'example.com/signer-name'"#]),
        (r#"spec.signerName="a/b/c""#, &[r#"spec.signerName: Invalid value: "a/b/c": must be a fully qualified domain and path of the form 'example.com/signer-name'"#]),
        (r#"spec.signerName="kubernetes.io/legacy-unknown""#, &[r#"spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version"#]),
        (r#"spec.signerName="Example.com/a""#, &[r#"spec.signerName: Invalid value: "Example.com": validating label "Example": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must …"#]),
        (r#"spec.signerName="example.com/A""#, &[r#"spec.signerName: Invalid value: "A": validating label "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start a…"#]),
        (r#"spec.signerName="example/a_b""#, &[r#"spec.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots"#, r#"spec.signerName: Invalid value: "a_b": validating label "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must sta…"#]),
        (r#"spec.signerName="example.com/""#, &[r#"spec.signerName: Invalid value: "": validating label "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        (r#"spec.signerName="/a""#, &[r#"spec.signerName: Invalid value: "": validating label "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with…"#, r#"spec.signerName: Invalid value: "": should be a domain with at least two segments separated by dots"#]),
        (r#"spec.signerName="com/a""#, &[r#"spec.signerName: Invalid value: "com": should be a domain with at least two segments separated by dots"#]),
        ("spec.request=null", &["spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST"]),
        (r#"spec.request="""#, &[r#"spec.request: Invalid value: "": PEM block type must be CERTIFICATE REQUEST"#]),
        (r#"spec.request="YWJj""#, &[r#"spec.request: Invalid value: "YWJj": PEM block type must be CERTIFICATE REQUEST"#]),
        ("spec=null", &["spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST", "spec.usages: Required value", "spec.signerName: Required value"]),
        (r#"spec.username="x";spec.groups=["y"];spec.uid="z""#, &[]),
        (r#"metadata.name="A B""#, &[]),
        (r#"metadata.name="a/b""#, &[r#"metadata.name: Invalid value: "a/b": may not contain '/'"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"status.conditions=[{"type":"Approved","status":"True"}]"#, &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.signerName="a.b/c""#, &[]),
        (r#"spec.request="YWJj""#, &[]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#, r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"status.certificate="YWJj""#, &[]),
        (r#"@approval status.conditions=[{"type":"Approved","status":"True"}]"#, &[]),
        (r#"@approval status.conditions=[{"type":"Approved","status":"False"}]"#, &[r#"status.conditions[0].status: Unsupported value: "False": supported values: "True""#]),
        (r#"@approval status.conditions=[{"type":"Approved"}]"#, &["status.conditions[0].status: Required value"]),
        (r#"@approval status.conditions=[{"type":"Denied","status":"True"},{"type":"Approved","status":"True"}]"#, &[r#"status.conditions: Invalid value: "Approved": Approved and Denied conditions are mutually exclusive"#]),
        (r#"@approval status.conditions=[{"type":"Approved","status":"True"},{"type":"Denied","status":"True"}]"#, &[r#"status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive"#]),
        (r#"@approval status.conditions=[{"type":"","status":"True"}]"#, &["status.conditions[0].type: Required value"]),
        (r#"@approval status.conditions=[{"type":"x","status":"X"}]"#, &[r#"status.conditions[0].status: Unsupported value: "X": supported values: "False", "True", "Unknown""#]),
        (r#"@approval status.conditions=[{"type":"x","status":"True"},{"type":"x","status":"True"}]"#, &[r#"status.conditions[1].type: Duplicate value: "x""#]),
        (r#"@approval spec.signerName="b.c/d""#, &[]),
        (r#"@approval metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        (r#"@approval metadata.labels={"a":"c"}"#, &[]),
        (r#"@status status.conditions=[{"type":"Approved","status":"True"}]"#, &[r#"status.conditions: Forbidden: updates may not add a condition of type "Approved""#]),
        (r#"@status status.conditions=[{"type":"Denied","status":"True"}]"#, &[r#"status.conditions: Forbidden: updates may not add a condition of type "Denied""#]),
        (r#"@status status.conditions=[{"type":"Failed","status":"True"}]"#, &[]),
        (r#"@status status.conditions=[{"type":"Failed","status":"False"}]"#, &[r#"status.conditions[0].status: Unsupported value: "False": supported values: "True""#]),
        (r#"@status status.certificate="YWJj""#, &[r#"status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block"#]),
        (r#"@status spec.request="YWJj""#, &[]),
    ]);
}
