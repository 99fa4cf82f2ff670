//! What decides about the writes of others counts once its writer is answered.
//!
//! In: something that admission goes by, and right behind the answer a write that it decides about, many
//! times. Out: that it counted. Never: waits in between.

use serde_json::json;

use crate::common::{Scratch, Server};

/// A cache that is a moment behind shows itself once in some dozens.
const ROUNDS: usize = 100;

#[tokio::test]
async fn what_a_parameter_says_counts_once_its_writer_is_answered() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--authorization-mode=AlwaysAllow"]).await;
    let client = server.admin().await;
    let (group, api_version) = ("/apis/admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1");
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["secrets"] });
    let note = "Object{metadata: Object.metadata{annotations: {'said': params.data.said}}}";
    let policy = json!({ "apiVersion": api_version, "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": "says" }, "spec": {
            "matchConstraints": { "resourceRules": [rule] },
            "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" }, "reinvocationPolicy": "Never",
            "mutations": [{ "patchType": "ApplyConfiguration",
                "applyConfiguration": { "expression": note } }] } });
    client.post(&format!("{group}/mutatingadmissionpolicies"), &policy).await.expect(201);
    let binding = json!({ "apiVersion": api_version, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": { "name": "says" }, "spec": { "policyName": "says",
            "paramRef": { "selector": {}, "parameterNotFoundAction": "Deny" } } });
    client.post(&format!("{group}/mutatingadmissionpolicybindings"), &binding).await.expect(201);
    let (maps, secrets) = ("/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets");
    let map = |said: usize| json!({ "metadata": { "name": "p" }, "data": { "said": said.to_string() } });
    client.post(maps, &map(0)).await.expect(201);
    for said in 1..ROUNDS {
        client.put(&format!("{maps}/p"), &map(said)).await.expect(200);
        let secret = json!({ "metadata": { "name": format!("s-{said}") } });
        let made = client.post(secrets, &secret).await.expect(201);
        assert_eq!(made["metadata"]["annotations"]["said"], said.to_string());
    }
}

#[tokio::test]
async fn a_default_class_counts_once_its_writer_is_answered_and_no_longer_once_it_is_deleted() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--authorization-mode=AlwaysAllow"]).await;
    let client = server.admin().await;
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({ "metadata": { "generateName": "c-" }, "spec": { "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } });
    for round in 0..ROUNDS {
        let name = format!("class-{round}");
        let annotations = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
        let class = json!({ "metadata": { "name": name, "annotations": annotations }, "provisioner": "p" });
        client.post(classes, &class).await.expect(201);
        let made = client.post(claims, &claim).await.expect(201);
        assert_eq!(made["spec"]["storageClassName"], name.as_str());
        client.delete(&format!("{classes}/{name}")).await.expect(200);
        let made = client.post(claims, &claim).await.expect(201);
        assert!(made["spec"]["storageClassName"].is_null(), "{made}");
    }
}

#[tokio::test]
async fn a_limit_range_counts_once_its_writer_is_answered_and_no_longer_once_it_is_deleted() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--authorization-mode=AlwaysAllow"]).await;
    let client = server.admin().await;
    let ranges = "/api/v1/namespaces/default/limitranges";
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let limit = json!({ "type": "PersistentVolumeClaim", "max": { "storage": "1Mi" } });
    let range = json!({ "metadata": { "name": "small" }, "spec": { "limits": [limit] } });
    let claim = json!({ "metadata": { "generateName": "c-" }, "spec": { "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } });
    for _ in 0..ROUNDS {
        client.post(ranges, &range).await.expect(201);
        client.post(claims, &claim).await.expect(403);
        client.delete(&format!("{ranges}/small")).await.expect(200);
        client.post(claims, &claim).await.expect(201);
    }
}
