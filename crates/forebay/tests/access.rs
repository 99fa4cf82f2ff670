//! Who is let in, who is not, and what they are told.

mod common;

use common::{Ask, Client, Identity, Protocol, Scratch, Server, said};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

const PODS: &str = "/api/v1/namespaces/default/pods";
const UNAUTHORIZED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
const TOKENS: &str = "root-token,eve,1,\"system:masters\"\nbob-token,bob,2,\"dev,ops\"\n";

#[tokio::test]
async fn nobody_gets_health_and_version_only() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    for protocol in Protocol::BOTH {
        let nobody = server.client(protocol, Identity::Nobody).await;
        for path in ["/healthz", "/livez", "/readyz", "/livez/ping"] {
            let reply = nobody.get(path).await;
            assert_eq!((reply.code, reply.text()), (200, "ok"), "{path}");
            assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
        }
        let version = nobody.get("/version").await.expect(200);
        assert_eq!((&version["major"], &version["minor"]), (&"1".into(), &"36".into()));
        for path in ["/", "/api", "/apis", PODS, "/metrics", "/openapi/v3", "/no/such/path"] {
            is_unauthorized(&nobody, Ask::get(path)).await;
        }
        is_unauthorized(&nobody, Ask::delete("/api/v1/namespaces/kube-public")).await;
    }
    server.admin().await.get("/api/v1/namespaces/kube-public").await.expect(200);
}

#[tokio::test]
async fn whose_certificates_are_trusted_is_published_for_programs_beside_the_server() {
    const TRUST: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    const TRACKING: &str =
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let made = admin.get(TRUST).await.expect(200);
    let own = made["data"]["client-ca-file"].as_str().expect("a bundle").to_owned();
    assert_eq!(own.matches("-----BEGIN CERTIFICATE-----\n").count(), 1, "{own}");
    let since = admin.get(TRACKING).await.expect(200)["data"]["since"].clone();
    assert_eq!(since.as_str().map(str::len), Some("2000-01-01".len()), "{since}");
    let change = |patch: &'static str| Ask::patch(TRUST, "application/merge-patch+json", patch);
    admin.ask(change(r#"{"data":{"other":"kept"}}"#)).await.expect(200);
    let earlier = r#"{"data":{"since":"2020-02-29"}}"#;
    admin.ask(Ask::patch(TRACKING, "application/merge-patch+json", earlier)).await.expect(200);
    server.kill().await;

    // Another authority joins; what others put there and what is older stays.
    let authority = Authority::new("clients");
    let ca = scratch.file("clients.crt", &authority.pem);
    let flags = ["--client-ca-file", ca.to_str().expect("UTF-8")];
    let server = Server::start(&scratch, &flags).await;
    let admin = server.admin().await;
    let now = admin.get(TRUST).await.expect(200);
    let bundle = format!("{own}{}", authority.pem.replace("\r\n", "\n"));
    assert_eq!((&now["data"]["client-ca-file"], &now["data"]["other"]), (&bundle.into(), &"kept".into()));
    assert_eq!(admin.get(TRACKING).await.expect(200)["data"]["since"], "2020-02-29");
    server.kill().await;

    // Nothing to change: nothing is written.
    let server = Server::start(&scratch, &flags).await;
    let again = server.admin().await.get(TRUST).await.expect(200);
    assert_eq!(again["metadata"], now["metadata"]);
}

#[tokio::test]
async fn bad_credentials_are_worse_than_none() {
    let scratch = Scratch::new();
    let tokens = scratch.file("tokens.csv", TOKENS);
    let authority = Authority::new("clients");
    let ca = scratch.file("clients.crt", &authority.pem);
    let server = Server::start(
        &scratch,
        &[
            "--token-auth-file",
            tokens.to_str().expect("UTF-8"),
            "--client-ca-file",
            ca.to_str().expect("UTF-8"),
        ],
    )
    .await;
    let nobody = server.client(Protocol::Http2, Identity::Nobody).await;
    for path in ["/healthz", "/version", PODS] {
        is_unauthorized(&nobody, Ask::get(path).bearer("bad-token")).await;
    }
    nobody.ask(Ask::get(PODS).bearer("bob-token")).await.expect(200);

    let stranger = Authority::new("clients");
    let rows = [
        ("of an authority that is trusted", authority.client("alice", false), 200),
        ("of a namesake of that authority", stranger.client("alice", false), 401),
        ("no longer valid", authority.client("alice", true), 401),
    ];
    for (what, (chain, key), code) in &rows {
        for protocol in Protocol::BOTH {
            let client = server.client(protocol, Identity::Certificate { chain, key }).await;
            if *code == 200 {
                client.get(PODS).await.expect(200);
                continue;
            }
            is_unauthorized(&client, Ask::get(PODS)).await;
            is_unauthorized(&client, Ask::get("/healthz")).await;
            // A good token makes up for a certificate.
            let reply = client.ask(Ask::get(PODS).bearer("bob-token")).await;
            assert_eq!(reply.code, 200, "{what}");
        }
    }
}

#[tokio::test]
async fn without_anonymous_auth_nobody_gets_anything() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--anonymous-auth=false"]).await;
    let nobody = server.client(Protocol::Http2, Identity::Nobody).await;
    for path in ["/healthz", "/version", PODS] {
        is_unauthorized(&nobody, Ask::get(path)).await;
    }
    server.admin().await.get(PODS).await.expect(200);
}

#[tokio::test]
async fn rbac_lets_only_masters_in() {
    let scratch = Scratch::new();
    let tokens = scratch.file("tokens.csv", TOKENS);
    let flags = ["--authorization-mode=Node,RBAC", "--token-auth-file", tokens.to_str().expect("UTF-8")];
    let server = Server::start(&scratch, &flags).await;
    let client = server.client(Protocol::Http2, Identity::Nobody).await;
    client.ask(Ask::get(PODS).bearer("root-token")).await.expect(200);
    server.admin().await.get(PODS).await.expect(200);
    assert_eq!(client.ask(Ask::get("/readyz").bearer("bob-token")).await.code, 200);
    let apps = "/apis/apps/v1/namespaces/default/deployments";
    let rows = [
        (
            Ask::get(PODS),
            r#"pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Ask::get(format!("{PODS}?watch=true")),
            r#"pods is forbidden: User "bob" cannot watch resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Ask::get("/api/v1/nodes/n"),
            r#"nodes "n" is forbidden: User "bob" cannot get resource "nodes" in API group "" at the cluster scope"#,
        ),
        (
            Ask::delete(format!("{apps}/d")),
            r#"deployments.apps "d" is forbidden: User "bob" cannot delete resource "deployments" in API group "apps" in the namespace "default""#,
        ),
        (
            Ask::delete(apps),
            r#"deployments.apps is forbidden: User "bob" cannot deletecollection resource "deployments" in API group "apps" in the namespace "default""#,
        ),
        (
            Ask::get(format!("{apps}/d/scale")),
            r#"deployments.apps "d" is forbidden: User "bob" cannot get resource "deployments/scale" in API group "apps" in the namespace "default""#,
        ),
        (Ask::get("/metrics"), r#"forbidden: User "bob" cannot get path "/metrics""#),
    ];
    for (ask, message) in rows {
        let reply = client.ask(ask.bearer("bob-token")).await;
        assert_eq!(said(&reply.expect(403)), format!("403 Forbidden: {message}"));
    }
    let reply = client.ask(Ask::delete(format!("{apps}/d")).bearer("bob-token")).await;
    assert!(
        reply.text().ends_with(
            r#","reason":"Forbidden","details":{"name":"d","group":"apps","kind":"deployments"},"code":403}
"#
        ),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn every_answer_has_an_audit_id() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let nobody = server.client(Protocol::Http1, Identity::Nobody).await;
    let mut seen = Vec::new();
    for (client, path, code) in
        [(&admin, PODS, 200), (&admin, "/api/v1/none", 404), (&nobody, PODS, 401), (&nobody, "/healthz", 200)]
    {
        let reply = client.get(path).await;
        assert_eq!(reply.code, code, "{path}");
        let id = reply.header("audit-id").to_owned();
        assert_eq!(id.len(), 36, "a UUID: {id}");
        assert!(!seen.contains(&id), "{id}");
        seen.push(id);
        let given = client.ask(Ask::get(path).header("audit-id", "from-the-client")).await;
        assert_eq!(given.header("audit-id"), "from-the-client", "{path}");
    }
}

async fn is_unauthorized(client: &Client, ask: Ask) {
    let reply = client.ask(ask.clone()).await;
    assert_eq!((reply.code, reply.text().trim_end()), (401, UNAUTHORIZED), "{ask:?}");
    assert_eq!(reply.header("content-type"), "application/json", "{ask:?}");
}

/// Signs certificates of clients.
#[tokio::test]
async fn a_proxy_that_is_believed_says_whom_a_request_is_from_and_nobody_else_does() {
    let (scratch, proxies) = (Scratch::new(), Authority::new("proxies"));
    let ca = scratch.file("proxies.crt", &proxies.pem);
    let ca = format!("--requestheader-client-ca-file={}", ca.display());
    let server = Server::start(&scratch, &[&ca, "--requestheader-allowed-names=front"]).await;
    let review = serde_json::json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let asked = |user: &str| {
        let ask = Ask::post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review);
        let ask = ask.header("x-remote-group", "dev").header("x-remote-extra-example.org%2fscope", "a");
        ask.header("x-remote-uid", "7").header("x-remote-user", user)
    };
    for protocol in Protocol::BOTH {
        let (chain, key) = proxies.client("front", false);
        let front = Identity::Certificate { chain: &chain, key: &key };
        let front = server.client(protocol, front).await;
        let info = front.ask(asked("bob")).await.expect(201)["status"]["userInfo"].clone();
        let groups = serde_json::json!(["dev", "system:authenticated"]);
        let extra = serde_json::json!({ "example.org/scope": ["a"] });
        assert_eq!((&info["username"], &info["uid"]), (&"bob".into(), &"7".into()));
        assert_eq!((&info["groups"], &info["extra"]), (&groups, &extra));
        // It is nobody itself.
        is_unauthorized(&front, asked("")).await;
        for (name, is_expired) in [("other", false), ("front", true)] {
            let (chain, key) = proxies.client(name, is_expired);
            let other = Identity::Certificate { chain: &chain, key: &key };
            is_unauthorized(&server.client(protocol, other).await, asked("bob")).await;
        }
        let admin = server.admin_over(protocol).await;
        let info = admin.ask(asked("bob")).await.expect(201)["status"]["userInfo"].clone();
        assert_eq!(info["username"], "kubernetes-admin");
        is_unauthorized(&server.client(protocol, Identity::Nobody).await, asked("bob")).await;
    }
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key of a master, in PEM.
    fn client(&self, name: &str, expired: bool) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut params = named(name);
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2100, 1, 1);
    params
}
