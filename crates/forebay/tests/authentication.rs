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

/// kube-controller-manager ends tokens in Secrets that do not say so. One that is marked as no longer to be
/// used, and is used, says so as well.
#[tokio::test]
async fn a_secret_says_on_which_day_its_token_was_used_last() {
    const NAMESPACE: &str = "/api/v1/namespaces/default";
    const SECRET: &str = "/api/v1/namespaces/default/secrets/robot-token";
    const LAST_USED: &str = "/metadata/labels/kubernetes.io~1legacy-token-last-used";
    const TRACKING: &str =
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
    let scratch = Scratch::new();
    let key = scratch.file("sa.key", &Signer::rsa_pem());
    let flags =
        ["signing-key-file", "key-file"].map(|of| format!("--service-account-{of}={}", key.display()));
    let server = Server::start(&scratch, &flags.each_ref().map(String::as_str)).await;
    let (admin, nobody) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    let robot = json!({ "metadata": { "name": "robot" } });
    let robot = admin.post(&format!("{NAMESPACE}/serviceaccounts"), &robot).await.expect(201);
    let claims = json!({
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:default:robot",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "robot-token",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": text(&robot, "/metadata/uid"),
    });
    // Whoever signed it before there were names of keys named none.
    let token = Signer::new("own").token_under(json!({ "alg": "RS256" }), &claims);
    assert_eq!(who(&nobody, &token).await, "401", "no Secret has it");
    let secret = json!({
        "metadata": { "name": "robot-token", "annotations": { "kubernetes.io/service-account.name": "robot" } },
        "type": "kubernetes.io/service-account-token", "data": { "token": STANDARD.encode(&token) },
    });
    let made = admin.post(&format!("{NAMESPACE}/secrets"), &secret).await.expect(201);
    assert_eq!(made.pointer(LAST_USED), None);
    let version = text(&made, "/metadata/resourceVersion");
    let path = format!("{NAMESPACE}/secrets?watch=1&resourceVersion={version}");
    let mut watch = admin.watch(&path).await;

    assert!(who(&nobody, &token).await.starts_with("system:serviceaccount:default:robot "));
    let used = watch.event().await.object;
    let (day, since) = (text(&used, LAST_USED), admin.get(TRACKING).await.expect(200));
    // The same day, or the server was started just before midnight.
    assert!(day.len() == "2026-01-01".len() && *day >= *text(&since, "/data/since"), "{day}");
    assert_eq!(used["data"], made["data"]);
    let managers = used["metadata"]["managedFields"].as_array().expect("somebody's").iter();
    assert!(managers.into_iter().any(|entry| entry["manager"] == "kube-apiserver"), "{used}");
    assert_ne!(who(&nobody, &token).await, "401", "a second use, of which nothing is left to say");
    // Marked, it is refused; and as nothing says any more when it was used, that is said anew.
    let marks = json!({ "metadata": { "labels": {
        "kubernetes.io/legacy-token-last-used": null, "kubernetes.io/legacy-token-invalid-since": "2026-01-01",
    } } });
    let marks = Ask::patch(SECRET, "application/merge-patch+json", marks.to_string());
    admin.ask(marks).await.expect(200);
    assert_eq!(watch.event().await.object.pointer(LAST_USED), None, "nothing was written of a second use");
    assert_eq!(who(&nobody, &token).await, "401");
    assert!(*text(&watch.event().await.object, LAST_USED) >= *day);
}
