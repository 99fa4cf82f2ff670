//! Secrets: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;
use crate::{GroupKind, warnings};

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "Secret",
        json!({"metadata": {"name": "s", "namespace": "default"}, "data": {"a": "YQ=="}}),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "data": {"a": "YQ=="},
            "metadata": {"name": "s", "namespace": "default"},
            "type": "Opaque",
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"data={"a/b":"YQ=="}"#, &[r#"data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'ke…"#]),
        (r#"type="kubernetes.io/tls""#, &["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        (r#"type="kubernetes.io/dockerconfigjson""#, &["data[.dockerconfigjson]: Required value"]),
        (r#"type="kubernetes.io/dockerconfigjson";data={".dockerconfigjson":"YQ=="}"#, &[r#"data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": invalid character 'a' looking for beginning of value"#]),
        (r#"type="kubernetes.io/dockercfg""#, &["data[.dockercfg]: Required value"]),
        (r#"type="kubernetes.io/basic-auth""#, &["data[username]: Required value", "data[password]: Required value"]),
        (r#"type="kubernetes.io/ssh-auth""#, &["data[ssh-privatekey]: Required value"]),
        (r#"type="kubernetes.io/service-account-token""#, &["metadata.annotations[kubernetes.io/service-account.name]: Required value"]),
        (r#"stringData={"x":"y"}"#, &[]),
        (r#"stringData={"a":"y"}"#, &[]),
        (r#"type="custom/x""#, &[]),
        ("immutable=true", &[]),
        ("data=null", &[]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"type="x""#, &[r#"type: Invalid value: "x": field is immutable"#]),
        (r#"data={"b":"YQ=="}"#, &[]),
        ("type=null", &[]),
        (
            r#"!immutable=true => data={"b":"YQ=="}"#,
            &["data: Forbidden: field is immutable when `immutable` is set"],
        ),
        (
            "!immutable=true => immutable=false",
            &["immutable: Forbidden: field is immutable when `immutable` is set"],
        ),
        (r#"stringData={"q":"z"}"#, &[]),
    ]);
}

#[test]
fn a_tls_secret_whose_parts_are_no_pair_is_taken_with_a_warning() {
    let kind = GroupKind::built_in("", "Secret");
    let of = |kind: &str| json!({"type": kind, "data": {"tls.crt": "YQ==", "tls.key": "YQ=="}});
    let want = ["tls: failed to find any PEM data in certificate input"];
    let secret = of("kubernetes.io/tls");
    assert_eq!(warnings(&kind, &secret, None), want);
    assert_eq!(warnings(&kind, &secret, Some((None, &secret))), want);
    assert!(warnings(&kind, &of("Opaque"), None).is_empty());
}
