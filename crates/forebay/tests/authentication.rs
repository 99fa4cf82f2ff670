//! Who is let in by tokens that others vouch for, and who is without any: the real binary.

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Ask, Client, Hook, Identity, Protocol, Scratch, Server, WAIT, text};
use forebay_hook::tokens::{Signer, discovery};
use serde_json::{Value, json};

const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Whom a token stands for, and its groups; the code, if nobody.
async fn who(client: &Client, token: &str) -> String {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let reply = client.ask(Ask::post(SELF, &review).bearer(token)).await;
    if reply.code != 201 {
        return reply.code.to_string();
    }
    let info = reply.json()["status"]["userInfo"].clone();
    let groups: Vec<&str> =
        info["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("{} {}", text(&info, "/username"), groups.join(","))
}

#[tokio::test]
async fn a_machine_joins_by_a_bootstrap_token() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--enable-bootstrap-token-auth"]).await;
    let (admin, machine) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    let token = "abcdef.0123456789abcdef";
    assert_eq!(who(&machine, token).await, "401");
    let secret = json!({
        "metadata": { "name": "bootstrap-token-abcdef" }, "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef", "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    });
    admin.post(SECRETS, &secret).await.expect(201);
    let groups = "system:bootstrappers,system:bootstrappers:kubeadm:default-node-token,system:authenticated";
    assert_eq!(who(&machine, token).await, format!("system:bootstrap:abcdef {groups}"));
    for wrong in ["abcdef.0123456789abcdee", "abcdeg.0123456789abcdef", "abcdef.0123456789abcdef0"] {
        assert_eq!(who(&machine, wrong).await, "401", "{wrong}");
    }
    // As kubeadm binds it: who joins may ask for a certificate, and nothing else.
    let key = rcgen::KeyPair::generate().expect("a key");
    let request = rcgen::CertificateParams::default().serialize_request(&key).expect("a request");
    let request = json!({
        "metadata": { "generateName": "node-csr-" },
        "spec": {
            "request": STANDARD.encode(request.pem().expect("PEM")), "usages": ["digital signature", "client auth"],
            "signerName": "example.com/nodes",
        },
    });
    let asks = async || machine.ask(Ask::post(REQUESTS, &request).bearer(token)).await;
    assert_eq!(asks().await.code, 403);
    let binding = json!({
        "metadata": { "name": "kubeadm:kubelet-bootstrap" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
            "name": "system:bootstrappers:kubeadm:default-node-token" }],
    });
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.expect(201);
    let made = asks().await.expect(201);
    assert_eq!(text(&made, "/spec/username"), "system:bootstrap:abcdef");
    let refused = machine.ask(Ask::get(SECRETS).bearer(token)).await;
    assert_eq!(refused.code, 403);
    // It ends with its Secret, at once.
    admin.delete(&format!("{SECRETS}/bootstrap-token-abcdef")).await.expect(200);
    assert_eq!(who(&machine, token).await, "401");
}

#[tokio::test]
async fn bootstrap_tokens_are_nobodys_unless_that_is_asked_for() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, machine) = (server.admin().await, server.client(Protocol::Http1, Identity::Nobody).await);
    let secret = json!({
        "metadata": { "name": "bootstrap-token-abcdef" }, "type": "bootstrap.kubernetes.io/token",
        "stringData": { "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true" },
    });
    admin.post(SECRETS, &secret).await.expect(201);
    assert_eq!(who(&machine, "abcdef.0123456789abcdef").await, "401");
}

fn configuration(more: Value) -> String {
    let mut configuration =
        json!({ "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration" });
    for (name, value) in more.as_object().expect("members") {
        configuration[name] = value.clone();
    }
    configuration.to_string()
}

#[tokio::test]
async fn who_shows_nothing_is_answered_at_the_paths_that_are_named() {
    let scratch = Scratch::new();
    let named = json!({ "enabled": true, "conditions": [{ "path": "/livez" }, { "path": "/api" }] });
    let file = scratch.file("authentication.json", &configuration(json!({ "anonymous": named })));
    let flag = format!("--authentication-config={}", file.display());
    let server = Server::start(&scratch, &[&flag]).await;
    let nobody = server.client(Protocol::Http2, Identity::Nobody).await;
    let paths = [
        ("/livez", 200),
        ("/api", 403),
        ("/readyz", 401),
        ("/livez/ping", 401),
        ("/version", 401),
        ("/apis", 401),
    ];
    for (path, code) in paths {
        assert_eq!(nobody.get(path).await.code, code, "{path}");
    }
    server.admin().await.get("/apis").await.expect(200);
    let both = Server::try_start(&Scratch::new(), &[&flag, "--anonymous-auth=true"]).await;
    let why = format!("{:?}", both.map(drop).expect_err("refused"));
    assert!(why.contains("--anonymous-auth flag cannot be set when anonymous field is configured"), "{why}");
}

#[tokio::test]
async fn a_configuration_is_taken_in_when_its_file_changes_and_stays_what_it_was_otherwise() {
    let (scratch, hook, signer) = (Scratch::new(), Hook::start().await, Signer::new("own"));
    let url = format!("{}/idp", hook.url());
    hook.answers(
        ".well-known/openid-configuration",
        json!({ "raw": discovery(&url, &format!("{url}/keys")) }),
    );
    hook.answers("keys", json!({ "raw": signer.keys() }));
    let authority = STANDARD.decode(&hook.authority).expect("base64");
    let of = |prefix: &str| {
        configuration(json!({ "jwt": [{
            "issuer": { "url": url, "audiences": ["kube"],
                "certificateAuthority": String::from_utf8(authority.clone()).expect("PEM") },
            "claimMappings": { "username": { "claim": "sub", "prefix": prefix } },
        }] }))
    };
    let file = scratch.file("authentication.json", &of("a:"));
    let flag = format!("--authentication-config={}", file.display());
    let server = Server::start(&scratch, &[&flag]).await;
    let client = server.client(Protocol::Http2, Identity::Nobody).await;
    let claims = json!({ "iss": url, "aud": "kube", "sub": "ann", "exp": 99_999_999_999_u64 });
    let token = signer.token("ES256", &claims);
    let becomes = async |want: &str| {
        let until = async { while who(&client, &token).await != format!("{want} system:authenticated") {} };
        tokio::time::timeout(WAIT, until).await.unwrap_or_else(|_| panic!("never {want}"));
    };
    becomes("a:ann").await;
    let admin = server.admin().await;
    std::fs::write(&file, "kind: Nothing").expect("written");
    let said = async {
        let name = "apiserver_authentication_config_controller_automatic_reloads_total";
        while !admin
            .get("/metrics")
            .await
            .text()
            .lines()
            .any(|line| line.starts_with(name) && line.contains("failure"))
        {}
    };
    tokio::time::timeout(WAIT, said).await.expect("it is told of");
    assert_eq!(who(&client, &token).await, "a:ann system:authenticated");
    std::fs::write(&file, of("b:")).expect("written");
    becomes("b:ann").await;
}
