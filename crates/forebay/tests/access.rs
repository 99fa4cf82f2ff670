//! Who is let in, who is not, and what they are told.

mod common;

use common::{Ask, Client, Identity, Protocol, Scratch, Server, said};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use serde_json::{Value, json};

const ALLOW: &str = "--authorization-mode=AlwaysAllow";
const PODS: &str = "/api/v1/namespaces/default/pods";
const UNAUTHORIZED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
const TOKENS: &str = "root-token,eve,1,\"system:masters\"\nbob-token,bob,2,\"dev,ops\"\n";

#[tokio::test]
async fn nobody_gets_health_and_version_only_where_whoever_is_known_may_do_everything() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[ALLOW]).await;
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
            ALLOW,
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
async fn who_has_no_role_is_told_so_in_kube_apiservers_words() {
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

/// The roles and bindings of a namespace, or of the cluster.
fn rbac(namespace: &str, resource: &str) -> String {
    match namespace {
        "" => format!("/apis/rbac.authorization.k8s.io/v1/{resource}"),
        namespace => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{resource}"),
    }
}

fn role(name: &str, verbs: &[&str], resources: &[&str]) -> Value {
    json!({ "metadata": { "name": name }, "rules": [{ "verbs": verbs, "apiGroups": [""], "resources": resources }] })
}

/// A binding of the user to a role of a kind.
fn binding(name: &str, (kind, role): (&str, &str), user: &str) -> Value {
    const GROUP: &str = "rbac.authorization.k8s.io";
    json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": GROUP, "kind": kind, "name": role },
        "subjects": [{ "apiGroup": GROUP, "kind": "User", "name": user }],
    })
}

#[tokio::test]
async fn a_right_is_there_with_the_answer_that_gives_it_and_gone_with_the_one_that_takes_it() {
    let scratch = Scratch::new();
    let tokens = scratch.file("tokens.csv", TOKENS);
    let server = Server::start(&scratch, &["--token-auth-file", tokens.to_str().expect("UTF-8")]).await;
    let (admin, client) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    let code = async || client.ask(Ask::get(PODS).bearer("bob-token")).await.code;
    let (roles, bindings) = (rbac("default", "roles"), rbac("default", "rolebindings"));
    for _ in 0..20 {
        assert_eq!(code().await, 403);
        admin.post(&roles, &role("reader", &["list"], &["pods"])).await.expect(201);
        assert_eq!(code().await, 403);
        admin.post(&bindings, &binding("reader", ("Role", "reader"), "bob")).await.expect(201);
        assert_eq!(code().await, 200);
        admin.put(&format!("{roles}/reader"), &role("reader", &["get"], &["pods"])).await.expect(200);
        assert_eq!(code().await, 403);
        admin.put(&format!("{roles}/reader"), &role("reader", &["*"], &["*"])).await.expect(200);
        assert_eq!(code().await, 200);
        // Nowhere else, and nothing of the cluster.
        let elsewhere = client.ask(Ask::get("/api/v1/namespaces/kube-system/pods").bearer("bob-token")).await;
        assert_eq!(elsewhere.code, 403);
        admin.delete(&format!("{bindings}/reader")).await.expect(200);
        assert_eq!(code().await, 403);
        admin.post(&bindings, &binding("reader", ("Role", "reader"), "bob")).await.expect(201);
        admin.delete(&format!("{roles}/reader")).await.expect(200);
        let refused = client.ask(Ask::get(PODS).bearer("bob-token")).await.expect(403);
        assert_eq!(
            said(&refused),
            r#"403 Forbidden: pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default": RBAC: role.rbac.authorization.k8s.io "reader" not found"#
        );
        admin.delete(&format!("{bindings}/reader")).await.expect(200);
    }
    // What a start finds is in force before it answers.
    admin.post(&rbac("", "clusterroles"), &role("reader", &["list"], &["pods"])).await.expect(201);
    admin.post(&bindings, &binding("reader", ("ClusterRole", "reader"), "bob")).await.expect(201);
    server.kill().await;
    let server = Server::start(&scratch, &["--token-auth-file", tokens.to_str().expect("UTF-8")]).await;
    let client = server.client(Protocol::Http2, Identity::Nobody).await;
    assert_eq!(client.ask(Ask::get(PODS).bearer("bob-token")).await.code, 200);
}

#[tokio::test]
async fn nobody_gives_what_they_have_not() {
    let scratch = Scratch::new();
    let tokens = scratch.file("tokens.csv", TOKENS);
    let server = Server::start(&scratch, &["--token-auth-file", tokens.to_str().expect("UTF-8")]).await;
    let (admin, client) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    let (roles, bindings) = (rbac("default", "roles"), rbac("default", "rolebindings"));
    let clusters = rbac("", "clusterroles");
    // Bob looks after roles and bindings, and may get pods.
    let mut manager = role("manager", &["get"], &["pods"]);
    manager["rules"].as_array_mut().expect("rules").push(json!({
        "verbs": ["create", "update", "patch", "get"], "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    }));
    admin.post(&clusters, &manager).await.expect(201);
    admin
        .post(&rbac("", "clusterrolebindings"), &binding("manager", ("ClusterRole", "manager"), "bob"))
        .await
        .expect(201);
    let bob = async |ask: Ask| {
        let reply = client.ask(ask.bearer("bob-token")).await;
        if reply.code < 300 { reply.code.to_string() } else { said(&reply.expect(reply.code)) }
    };
    let held = "user \"bob\" (groups=[\"dev\" \"ops\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n";
    let missing = r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#;
    let refused = |resource: &str, name: &str, missing: &str| {
        format!(
            "403 Forbidden: {resource}.rbac.authorization.k8s.io \"{name}\" is forbidden: {held}{missing}"
        )
    };

    assert_eq!(bob(Ask::post(&roles, &role("ok", &["get"], &["pods"]))).await, "201");
    let more = role("more", &["get", "delete"], &["pods"]);
    assert_eq!(bob(Ask::post(&roles, &more)).await, refused("roles", "more", missing));
    assert_eq!(bob(Ask::put(format!("{roles}/more"), &more)).await, refused("roles", "more", missing));
    assert_eq!(
        bob(Ask::put(format!("{roles}/ok"), &role("ok", &["get", "delete"], &["pods"]))).await,
        refused("roles", "ok", missing)
    );
    let patch = r#"{"rules":[{"verbs":["delete"],"apiGroups":[""],"resources":["pods"]}]}"#;
    assert_eq!(
        bob(Ask::patch(format!("{roles}/ok"), "application/merge-patch+json", patch)).await,
        refused("roles", "ok", missing)
    );
    let applied = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"made"},"rules":[{"verbs":["delete"],"apiGroups":[""],"resources":["pods"]}]}"#;
    assert_eq!(
        bob(Ask::patch(format!("{roles}/made?fieldManager=m"), "application/apply-patch+yaml", applied))
            .await,
        refused("roles", "made", missing)
    );
    // What gathers rules gathers any.
    let mut gathering = role("gathering", &["get"], &["pods"]);
    gathering["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    assert_eq!(
        bob(Ask::post(&clusters, &gathering)).await,
        r#"403 Forbidden: clusterroles.rbac.authorization.k8s.io "gathering" is forbidden: must have cluster-admin privileges to use the aggregationRule"#
    );

    // Bindings: what the role has that is bound, be it there or not.
    assert_eq!(bob(Ask::post(&bindings, &binding("b", ("Role", "ok"), "ann"))).await, "201");
    admin.post(&roles, &more).await.expect(201);
    assert_eq!(
        bob(Ask::post(&bindings, &binding("c", ("Role", "more"), "ann"))).await,
        refused("rolebindings", "c", missing)
    );
    assert_eq!(
        bob(Ask::put(format!("{bindings}/c"), &binding("c", ("Role", "more"), "ann"))).await,
        refused("rolebindings", "c", missing)
    );
    assert_eq!(
        bob(Ask::post(&bindings, &binding("d", ("ClusterRole", "none"), "ann"))).await,
        r#"404 NotFound: rolebindings.rbac.authorization.k8s.io "none" not found"#
    );
    let all =
        "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
    assert_eq!(
        bob(Ask::post(
            rbac("", "clusterrolebindings"),
            &binding("e", ("ClusterRole", "cluster-admin"), "bob")
        ))
        .await,
        refused("clusterrolebindings", "e", all)
    );

    // Unless that itself is a right that they have.
    manager["rules"].as_array_mut().expect("rules").push(json!({
        "verbs": ["escalate", "bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"],
    }));
    admin.put(&format!("{clusters}/manager"), &manager).await.expect(200);
    assert_eq!(bob(Ask::put(format!("{roles}/ok"), &role("ok", &["delete"], &["pods"]))).await, "200");
    assert_eq!(bob(Ask::post(&bindings, &binding("c", ("Role", "more"), "ann"))).await, "201");
    assert_eq!(bob(Ask::post(&clusters, &more)).await, refused("clusterroles", "more", missing));
}

#[tokio::test]
async fn roles_of_kubernetes_own_are_looked_after_by_each_start() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let discovery = format!("{}/system:discovery", rbac("", "clusterroles"));
    let made = admin.get(&discovery).await.expect(200);
    let change = async |path: &str, patch: &str| {
        admin.ask(Ask::patch(path, "application/merge-patch+json", patch.to_owned())).await.expect(200);
    };
    // A right is taken, and another one given.
    change(&discovery, r#"{"rules":[{"nonResourceURLs":["/api","/own"],"verbs":["get","post"]}]}"#).await;
    let basic = format!("{}/system:basic-user", rbac("", "clusterroles"));
    change(
        &basic,
        r#"{"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]}"#,
    )
    .await;
    let viewer = format!("{}/system:public-info-viewer", rbac("", "clusterrolebindings"));
    change(&viewer, r#"{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]}"#)
        .await;
    let bound = format!("{}/system:discovery", rbac("", "clusterrolebindings"));
    admin.delete(&bound).await.expect(200);
    let other = json!({
        "metadata": { "name": "system:discovery" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
    });
    admin.post(&rbac("", "clusterrolebindings"), &other).await.expect(201);
    server.kill().await;

    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let now = admin.get(&discovery).await.expect(200);
    let rules = now["rules"].as_array().expect("rules");
    assert_eq!(rules[0], json!({ "nonResourceURLs": ["/api", "/own"], "verbs": ["get", "post"] }));
    let paths = made["rules"][0]["nonResourceURLs"].as_array().expect("paths").len();
    assert_eq!(rules.len(), paths, "one for each path that is missing, as upstream adds them: {now}");
    assert_eq!(admin.get(&basic).await.expect(200)["rules"], Value::Null, "it is let be");
    let subjects = &admin.get(&viewer).await.expect(200)["subjects"];
    assert_eq!(subjects.as_array().map(Vec::len), Some(3), "{subjects}");
    assert_eq!(admin.get(&bound).await.expect(200)["roleRef"]["name"], "system:discovery");
    let check = admin.get("/livez/poststarthook/rbac/bootstrap-roles").await;
    assert_eq!((check.code, check.text()), (200, "ok"));
    server.kill().await;

    // Nothing to change: nothing is written.
    let server = Server::start(&scratch, &[]).await;
    let again = server.admin().await.get(&discovery).await.expect(200);
    assert_eq!(again["metadata"], now["metadata"]);
}

#[tokio::test]
async fn nobody_is_a_user_whom_roles_can_be_given() {
    const ANONYMOUS: &str = "system:anonymous";
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, nobody) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    assert_eq!(
        said(&nobody.get(PODS).await.expect(403)),
        r#"403 Forbidden: pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default""#
    );
    admin.post(&rbac("default", "roles"), &role("r", &["list"], &["pods"])).await.expect(201);
    admin.post(&rbac("default", "rolebindings"), &binding("r", ("Role", "r"), ANONYMOUS)).await.expect(201);
    nobody.get(PODS).await.expect(200);
    // Who says who they are and is not believed is not nobody.
    is_unauthorized(&nobody, Ask::get(PODS).bearer("bad-token")).await;
}

#[tokio::test]
async fn every_answer_has_an_audit_id() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let nobody = server.client(Protocol::Http1, Identity::Nobody).await;
    let mut seen = Vec::new();
    for (client, path, code) in
        [(&admin, PODS, 200), (&admin, "/api/v1/none", 404), (&nobody, PODS, 403), (&nobody, "/healthz", 200)]
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
    let server = Server::start(&scratch, &[&ca, "--requestheader-allowed-names=front", ALLOW]).await;
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
