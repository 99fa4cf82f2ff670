//! Configurations, and what is wrong with them.

use serde_json::json;

use super::*;

fn read(authorizers: &Value) -> Result<AuthorizationConfiguration, String> {
    let tree = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": authorizers,
    });
    AuthorizationConfiguration::of(&tree, &is_file, &[])
}

fn is_file(path: &Path) -> Result<bool, String> {
    match path.to_str() {
        Some("/k") => Ok(true),
        Some("/dir") => Ok(false),
        _ => Err(format!("stat {}: no such file or directory", path.display())),
    }
}

fn webhook(other: &Value) -> Value {
    let mut webhook = json!({
        "timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": "/k" },
        "matchConditions": [{ "expression": "request.user != ''" }],
    });
    let all = webhook.as_object_mut().expect("an object");
    all.extend(other.as_object().cloned().expect("an object"));
    json!({ "type": "Webhook", "name": "w", "webhook": webhook })
}

#[test]
fn a_configuration_is_a_chain_with_defaults() {
    let node = json!({ "type": "Node", "name": "node" });
    let read = read(
        &json!([node, webhook(&json!({ "cacheUnauthorizedRequests": false })), { "type": "RBAC", "name": "rbac" }]),
    );
    let chain = read.expect("a chain");
    assert_eq!(chain.types(), ["Node", "RBAC"]);
    let kinds: Vec<&str> = chain.authorizers.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(kinds, ["Node", "Webhook", "RBAC"]);
    let AuthorizerKind::Webhook(webhook) = &chain.authorizers[1].kind else { panic!("a webhook") };
    let want = WebhookAuthorizerConfig {
        authorized_ttl: Some(Duration::from_secs(300)),
        unauthorized_ttl: None,
        timeout: Duration::from_secs(3),
        version: ReviewVersion::V1,
        on_error: OnWebhookError::Deny,
        kubeconfig: "/k".into(),
        conditions: vec!["request.user != ''".to_owned()],
    };
    assert_eq!(**webhook, want);
}

#[test]
fn what_is_wrong_is_told_in_upstreams_words() {
    let required = |way: &str| format!("authorizers[0].{way}: Required value");
    let types =
        "supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"";
    for (authorizers, want) in [
        (json!([]), "authorizers: Required value: at least one authorization mode must be defined".to_owned()),
        (json!([{}]), required("type")),
        (json!([{ "type": "X" }]), format!("authorizers[0].type: Unsupported value: \"X\": {types}")),
        (
            json!([{ "type": "Node", "name": "node" }, { "type": "Node", "name": "other" }]),
            "authorizers[1].type: Duplicate value: \"Node\"".to_owned(),
        ),
        (json!([{ "type": "Node", "name": "n" }]), "expected name node for authorizer Node instead of n".to_owned()),
        (json!([{ "type": "Node" }]), required("name")),
        (json!([{ "type": "Webhook", "name": "w" }]), format!("{}: required when type=Webhook", required("webhook"))),
        (
            json!([{ "type": "RBAC", "name": "rbac", "webhook": {} }]),
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook".to_owned(),
        ),
        (json!([webhook(&json!({ "timeout": "0s" }))]), required("timeout")),
        (
            json!([webhook(&json!({ "timeout": "1m30.5s" }))]),
            "authorizers[0].timeout: Invalid value: \"1m30.5s\": must be > 0s and <= 30s".to_owned(),
        ),
        (
            json!([webhook(&json!({ "authorizedTTL": "-2ms" }))]),
            "authorizers[0].authorizedTTL: Invalid value: \"-2ms\": must be > 0s".to_owned(),
        ),
        (
            json!([webhook(&json!({ "subjectAccessReviewVersion": "v2" }))]),
            "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\"".to_owned(),
        ),
        (
            json!([webhook(&json!({ "matchConditionSubjectAccessReviewVersion": "" }))]),
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified".to_owned(),
        ),
        (
            json!([webhook(&json!({ "failurePolicy": "Ignore" }))]),
            "authorizers[0].failurePolicy: Unsupported value: \"Ignore\": supported values: \"NoOpinion\", \"Deny\"".to_owned(),
        ),
        (
            json!([webhook(&json!({ "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": "k" } }))]),
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"k\": must be an absolute path".to_owned(),
        ),
        (
            json!([webhook(&json!({ "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": "/gone" } }))]),
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/gone\": error loading file: stat /gone: no such file or directory".to_owned(),
        ),
        (
            json!([webhook(&json!({ "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": "/dir" } }))]),
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/dir\": must be a regular file".to_owned(),
        ),
        (
            json!([webhook(&json!({ "connectionInfo": { "type": "X" } }))]),
            "authorizers[0].connectionInfo.type: Unsupported value: {\"Type\":\"X\",\"KubeConfigFile\":null}: supported values: \"InClusterConfig\", \"KubeConfigFile\"".to_owned(),
        ),
        (
            json!([{ "type": "Node", "name": "node", "other": 1 }]),
            "failed to load AuthorizationConfiguration from file: strict decoding error: unknown field \"authorizers[0].other\"".to_owned(),
        ),
        (
            json!({}),
            "failed to load AuthorizationConfiguration from file: json: cannot unmarshal object into Go struct field authorizers of type array".to_owned(),
        ),
        (json!([{ "type": "ABAC", "name": "abac" }]), ABAC_REFUSED.to_owned()),
        (
            json!([{ "type": "RBAC", "name": "a" }, { "type": "Node", "name": "b" }]),
            "[expected name rbac for authorizer RBAC instead of a, expected name node for authorizer Node instead of b]".to_owned(),
        ),
    ] {
        assert_eq!(read(&authorizers).expect_err("refused"), want, "{authorizers}");
    }
}

#[test]
fn another_kind_is_refused_and_who_was_there_stays() {
    let other = json!({ "apiVersion": "v1", "kind": "Pod" });
    assert_eq!(
        AuthorizationConfiguration::of(&other, &is_file, &[]).expect_err("refused"),
        "failed to load AuthorizationConfiguration from file: no kind \"Pod\" is registered for version \"v1\""
    );
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let tree = json!({
            "apiVersion": format!("apiserver.config.k8s.io/{version}"), "kind": "AuthorizationConfiguration",
            "authorizers": [{ "type": "RBAC", "name": "rbac" }],
        });
        assert!(AuthorizationConfiguration::of(&tree, &is_file, &["RBAC"]).is_ok());
        assert_eq!(
            AuthorizationConfiguration::of(&tree, &is_file, &["Node", "RBAC"]).expect_err("refused"),
            "missing required types: [Node]"
        );
    }
}
