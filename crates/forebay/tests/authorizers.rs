//! Who is asked whether somebody may: nodes by their pods, webhooks, a chain that a file says.

mod common;

use common::{Ask, Client, Hook, Identity, Protocol, Scratch, Server, said};
use serde_json::{Value, json};

const TOKENS: &str = "bob-token,bob,2,\"dev\"\nn1-token,system:node:n1,3,\"system:nodes\"\n\
                      n2-token,system:node:n2,4,\"system:nodes\"\n";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn code(client: &Client, token: &str, path: &str) -> u16 {
    client.ask(Ask::get(path).bearer(token)).await.code
}

/// Asks until it is answered so: what a node may is taken in a moment after its pod is.
async fn until(client: &Client, token: &str, path: &str, wanted: u16) {
    for _ in 0..5_000 {
        if code(client, token, path).await == wanted {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{token} {path} is never answered with {wanted}");
}

fn pod(name: &str, node: Option<&str>, secret: &str) -> Value {
    let mut pod = json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }], "terminationGracePeriodSeconds": 0,
                  "volumes": [{ "name": "v", "secret": { "secretName": secret } }] },
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

#[tokio::test]
async fn a_node_reads_what_its_pods_name_as_long_as_they_are_there() {
    let scratch = Scratch::new();
    let tokens = scratch.file("tokens.csv", TOKENS);
    let tokens = format!("--token-auth-file={}", tokens.display());
    let flags = [
        &*tokens,
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--disable-admission-plugins=ServiceAccount",
    ];
    let server = Server::start(&scratch, &flags).await;
    let (admin, client) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    for name in ["s", "t"] {
        admin.post(SECRETS, &json!({ "metadata": { "name": name } })).await.expect(201);
    }
    let (s, t) = (format!("{SECRETS}/s"), format!("{SECRETS}/t"));
    assert_eq!(code(&client, "n1-token", &s).await, 403);
    admin.post(PODS, &pod("p", None, "s")).await.expect(201);
    let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "n1" } });
    admin.post(&format!("{PODS}/p/binding"), &binding).await.expect(201);
    until(&client, "n1-token", &s, 200).await;
    assert_eq!((code(&client, "n1-token", &t).await, code(&client, "n2-token", &s).await), (403, 403));
    let refused = client.ask(Ask::get(&s).bearer("n2-token")).await.expect(403);
    assert_eq!(
        said(&refused),
        r#"403 Forbidden: secrets "s" is forbidden: User "system:node:n2" cannot get resource "secrets" in API group "" in the namespace "default": no relationship found between node 'n2' and this object"#
    );
    // What a LIST or a WATCH selects counts.
    let selected = |node: &str| format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
    assert_eq!(code(&client, "n1-token", &selected("n1")).await, 200);
    assert_eq!(code(&client, "n1-token", &selected("n2")).await, 403);
    assert_eq!(code(&client, "n1-token", "/api/v1/pods").await, 403);
    assert_eq!(code(&client, "n1-token", &format!("{SECRETS}?fieldSelector=metadata.name%3Ds")).await, 200);
    // What is written: its own.
    let node = json!({ "metadata": { "name": "n1", "labels": { "node-role.kubernetes.io/x": "" } } });
    let refused = client.ask(Ask::post("/api/v1/nodes", &node).bearer("n1-token")).await.expect(403);
    assert_eq!(
        said(&refused),
        r#"403 Forbidden: nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: node-role.kubernetes.io/x"#
    );
    let patch = |body: &str| {
        let path = format!("{PODS}/p/status");
        Ask::patch(path, "application/merge-patch+json", body.to_owned())
    };
    client.ask(patch(r#"{"status":{"phase":"Running"}}"#).bearer("n1-token")).await.expect(200);
    client.ask(patch(r#"{"status":{"phase":"Running"}}"#).bearer("n2-token")).await.expect(403);
    // A start finds it all again before anybody is answered.
    server.kill().await;
    let server = Server::start(&scratch, &flags).await;
    let (admin, client) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    assert_eq!(code(&client, "n1-token", &s).await, 200);
    admin.delete(&format!("{PODS}/p")).await.expect(200);
    until(&client, "n1-token", &s, 403).await;
    let review = json!({ "spec": { "namespace": "default" } });
    let rules = client
        .ask(Ask::post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review).bearer("n1-token"));
    let status = rules.await.expect(201)["status"].clone();
    assert_eq!(status["incomplete"], true);
    assert_eq!(status["evaluationError"], "node authorizer does not support user rule resolution");
}

/// The kubeconfig of a webhook that answers as `name`.
fn kubeconfig(hook: &Hook, name: &str) -> String {
    let cluster = json!({ "server": format!("{}/authorizer/{name}", hook.url()), "certificate-authority-data": hook.authority });
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
        "clusters": [{ "name": "k", "cluster": cluster }], "users": [{ "name": "u", "user": { "token": "t" } }],
    })
    .to_string()
}

/// It says so of everything from now on.
fn says(hook: &Hook, name: &str, status: &Value) {
    let review =
        json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status });
    hook.answers(name, json!({ "raw": review.to_string() }));
}

#[tokio::test]
async fn a_webhook_is_asked_in_its_place_of_the_chain_and_heard_for_a_while() {
    let (scratch, hook) = (Scratch::new(), Hook::start().await);
    let tokens = scratch.file("tokens.csv", TOKENS);
    let file = scratch.file("webhook", &kubeconfig(&hook, "it"));
    says(&hook, "it", &json!({ "allowed": true, "reason": "friend" }));
    let server = Server::start(
        &scratch,
        &[
            &format!("--token-auth-file={}", tokens.display()),
            "--authorization-mode=RBAC,Webhook",
            &format!("--authorization-webhook-config-file={}", file.display()),
            "--authorization-webhook-version=v1",
        ],
    )
    .await;
    let client = server.client(Protocol::Http2, Identity::Nobody).await;
    // What RBAC allows is not asked of it.
    assert_eq!(code(&client, "bob-token", "/api").await, 200);
    assert!(hook.asked().is_empty());
    assert_eq!(code(&client, "bob-token", &format!("{PODS}?labelSelector=a%3Db")).await, 200);
    let asked = hook.asked();
    assert_eq!(asked.len(), 1);
    let spec = &asked[0].review["spec"];
    assert_eq!((&spec["user"], &spec["groups"][0]), (&"bob".into(), &"dev".into()));
    let attributes = json!({
        "verb": "list", "version": "v1", "resource": "pods", "namespace": "default",
        "labelSelector": { "requirements": [{ "key": "a", "operator": "In", "values": ["b"] }] },
    });
    assert_eq!(spec["resourceAttributes"], attributes);
    says(&hook, "it", &json!({ "denied": true, "reason": "foe" }));
    assert_eq!(code(&client, "bob-token", &format!("{PODS}?labelSelector=a%3Db")).await, 200);
    assert!(hook.asked().is_empty(), "it is kept");
    let refused = client.ask(Ask::get(PODS).bearer("bob-token")).await.expect(403);
    assert!(said(&refused).ends_with("in the namespace \"default\": foe"), "{refused}");
    // Nobody says anything of it, and it cannot be asked.
    hook.answers("it", json!({ "code": 400, "raw": "no" }));
    let failed = client.ask(Ask::get(SECRETS).bearer("bob-token")).await.expect(500);
    assert!(said(&failed).contains("the server rejected our request for an unknown reason"), "{failed}");
    let review =
        json!({ "spec": { "user": "bob", "resourceAttributes": { "verb": "get", "resource": "secrets" } } });
    let admin = server.admin().await;
    let reviewed =
        admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.expect(201);
    assert_eq!(reviewed["status"]["allowed"], false);
    assert_eq!(
        reviewed["status"]["evaluationError"],
        "the server rejected our request for an unknown reason"
    );
    let rules = json!({ "spec": { "namespace": "default" } });
    let rules =
        Ask::post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &rules).bearer("bob-token");
    let status = client.ask(rules).await.expect(201)["status"].clone();
    assert_eq!(status["incomplete"], true, "{status}");
    let metrics = admin.get("/metrics").await.text().to_owned();
    for line in [
        "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"default\",type=\"Webhook\"} 2",
        "apiserver_authorization_decisions_total{decision=\"denied\",name=\"default\",type=\"Webhook\"} 1",
        "apiserver_authorization_webhook_evaluations_total{name=\"default\",result=\"success\"} 2",
        "apiserver_authorization_webhook_evaluations_fail_open_total{name=\"default\",result=\"error\"} 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
}

#[tokio::test]
async fn a_file_says_the_chain_with_conditions_and_policies_of_failure() {
    let (scratch, hook) = (Scratch::new(), Hook::start().await);
    let tokens = scratch.file("tokens.csv", TOKENS);
    let kube = scratch.file("webhook", &kubeconfig(&hook, "it"));
    let webhook = json!({
        "timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": kube.display().to_string() },
        "matchConditions": [{ "expression": "request.user == 'bob'" }, { "expression": "request.resourceAttributes.resource != 'pods'" }],
    });
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": [{ "type": "Webhook", "name": "gate", "webhook": webhook }, { "type": "RBAC", "name": "rbac" }],
    });
    let file = scratch.file("authorization.yaml", &config.to_string());
    let flags = [
        format!("--token-auth-file={}", tokens.display()),
        format!("--authorization-config={}", file.display()),
    ];
    let server = Server::start(&scratch, &flags.each_ref().map(String::as_str)).await;
    let client = server.client(Protocol::Http2, Identity::Nobody).await;
    says(&hook, "it", &json!({}));
    assert_eq!(code(&client, "bob-token", SECRETS).await, 403);
    assert_eq!(hook.asked().len(), 1);
    // The masters are never asked about; of pods and of others it is not.
    server.admin().await.get(SECRETS).await.expect(200);
    assert_eq!(code(&client, "bob-token", PODS).await, 403);
    assert_eq!(code(&client, "n1-token", SECRETS).await, 403);
    assert!(hook.asked().is_empty());
    // A condition that cannot be evaluated is as if it could not be asked: nobody else is, then.
    assert_eq!(code(&client, "bob-token", "/api").await, 500);
    hook.answers("it", json!({ "code": 400, "raw": "no" }));
    assert_eq!(code(&client, "bob-token", "/api/v1/nodes").await, 500);
    server.kill().await;
    // One that is wrong ends the start.
    let wrong = config.to_string().replace("\"gate\"", "\"\"");
    scratch.file("authorization.yaml", &wrong);
    let refused =
        Server::try_start(&scratch, &flags.each_ref().map(String::as_str)).await.err().expect("refused");
    assert!(refused.stderr.contains("authorizers[0].name: Required value"), "{}", refused.stderr);
}

#[tokio::test]
async fn who_gives_rights_is_judged_by_the_roles_that_are_stored_whoever_decides() {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let (scratch, hook) = (Scratch::new(), Hook::start().await);
    let tokens = scratch.file("tokens.csv", TOKENS);
    let kube = scratch.file("webhook", &kubeconfig(&hook, "it"));
    let condition = "!has(request.resourceAttributes) || request.resourceAttributes.verb != 'bind'";
    let webhook = json!({
        "timeout": "30s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": kube.display().to_string() },
        "matchConditions": [{ "expression": condition }],
    });
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": [{ "type": "Webhook", "name": "gate", "webhook": webhook }],
    });
    let file = scratch.file("authorization.yaml", &config.to_string());
    says(&hook, "it", &json!({ "allowed": true }));
    let server = Server::start(
        &scratch,
        &[
            &format!("--token-auth-file={}", tokens.display()),
            &format!("--authorization-config={}", file.display()),
        ],
    )
    .await;
    let (admin, client) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    let binding = |name: &str, role: &str| {
        let of = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role });
        let bob = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob" });
        json!({ "metadata": { "name": name }, "roleRef": of, "subjects": [bob] })
    };
    for (name, resource) in [("own", "pods"), ("more", "secrets")] {
        let rules = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": [resource] }]);
        admin.post(ROLES, &json!({ "metadata": { "name": name }, "rules": rules })).await.expect(201);
    }
    admin.post(BINDINGS, &binding("own", "own")).await.expect(201);
    client.ask(Ask::post(BINDINGS, &binding("again", "own")).bearer("bob-token")).await.expect(201);
    let refused =
        client.ask(Ask::post(BINDINGS, &binding("more", "more")).bearer("bob-token")).await.expect(403);
    assert_eq!(
        said(&refused),
        "403 Forbidden: rolebindings.rbac.authorization.k8s.io \"more\" is forbidden: user \"bob\" (groups=[\"dev\" \"system:authenticated\"]) \
         is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
    );
}
