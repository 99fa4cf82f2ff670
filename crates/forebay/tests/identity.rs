//! Who somebody is and what they may do, as the server says it; and tokens of service accounts from issue to
//! end.

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use common::{Ask, Client, Identity, Protocol, Reply, Scratch, Server, causes, said, text};
use serde_json::{Value, json};

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1";
const NAMESPACE: &str = "/api/v1/namespaces/default";
const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/robot";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const USERS: &str = "root-token,eve,1,\"system:masters\"\nbob-token,bob,2,\"dev,ops\"\n";

/// Asks without a certificate of its own.
async fn nobody(server: &Server) -> Client {
    server.client(Protocol::Http2, Identity::Nobody).await
}

/// Who the server says that the bearer of `token` is.
async fn whoami(client: &Client, token: &str) -> Reply {
    client.ask(Ask::post(WHO, &json!({})).bearer(token)).await
}

async fn create_account(admin: &Client) -> Value {
    let account = json!({ "metadata": { "name": "robot" } });
    admin.post(&format!("{NAMESPACE}/serviceaccounts"), &account).await.expect(201)
}

/// A token for the service account `robot`.
async fn token(admin: &Client, spec: Value) -> String {
    let granted = admin.post(&format!("{ACCOUNT}/token"), &json!({ "spec": spec })).await.expect(201);
    text(&granted, "/status/token").to_owned()
}

/// What a token says of itself.
fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

/// The status that a review of `token` has.
async fn reviewed(admin: &Client, token: &str, audiences: &[&str]) -> Value {
    let spec = json!({ "token": token, "audiences": audiences });
    admin.post(TOKENS, &json!({ "spec": spec })).await.expect(201)["status"].clone()
}

#[tokio::test]
async fn everyone_learns_who_they_are() {
    let scratch = Scratch::new();
    let users = scratch.file("users.csv", USERS);
    let server = Server::start(&scratch, &["--token-auth-file", users.to_str().expect("UTF-8")]).await;
    let admin = server.admin().await;
    let me = admin.post(WHO, &json!({})).await.expect(201);
    assert_eq!(
        (&me["kind"], &me["apiVersion"]),
        (&"SelfSubjectReview".into(), &"authentication.k8s.io/v1".into())
    );
    let info = &me["status"]["userInfo"];
    assert_eq!(info["username"], "kubernetes-admin");
    assert_eq!(info["groups"], json!(["system:masters", "system:authenticated"]));
    assert_eq!(info.get("uid"), None);
    let id = text(info, "/extra/authentication.kubernetes.io~1credential-id/0");
    let digest = id.strip_prefix("X509SHA256=").expect("of a certificate");
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");

    let nobody = nobody(&server).await;
    let bob = whoami(&nobody, "bob-token").await.expect(201);
    let want = json!({ "username": "bob", "uid": "2", "groups": ["dev", "ops", "system:authenticated"] });
    assert_eq!(bob["status"]["userInfo"], want);
    assert_eq!(nobody.post(WHO, &json!({})).await.code, 403);

    // As somebody else, with what is said of them.
    let ask = Ask::post(WHO, &json!({}))
        .header("impersonate-user", "carol")
        .header("impersonate-group", "dev")
        .header("impersonate-uid", "7")
        .header("impersonate-extra-example.org%2fscope", "a");
    let carol = admin.ask(ask).await.expect(201);
    let want = json!({
        "username": "carol", "uid": "7", "groups": ["dev", "system:authenticated"],
        "extra": { "example.org/scope": ["a"] },
    });
    assert_eq!(carol["status"]["userInfo"], want);

    let yaml = admin.ask(Ask::post(WHO, &json!({})).accept("application/yaml")).await;
    assert_eq!((yaml.code, yaml.header("content-type")), (201, "application/yaml"));
    assert!(yaml.text().contains("    username: kubernetes-admin\n"), "{}", yaml.text());
    // There is no Table of it.
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let plain = admin.ask(Ask::post(WHO, &json!({})).accept(&format!("{TABLE},application/json"))).await;
    assert_eq!(plain.expect(201)["kind"], "SelfSubjectReview");
    let refused = admin.ask(Ask::post(WHO, &json!({})).accept(TABLE)).await;
    assert_eq!(refused.code, 406, "{}", refused.text());
}

#[tokio::test]
async fn a_review_says_what_a_request_would_meet() {
    let scratch = Scratch::new();
    let users = scratch.file("users.csv", USERS);
    let flags = ["--authorization-mode=RBAC", "--token-auth-file", users.to_str().expect("UTF-8")];
    let server = Server::start(&scratch, &flags).await;
    let client = nobody(&server).await;
    let rows = [
        ("list", "pods", "/api/v1/namespaces/default/pods"),
        ("get", "configmaps", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"),
        ("get", "", "/api"),
        ("get", "", "/apis/apps/v1"),
        ("get", "", "/version"),
        ("get", "", "/healthz"),
        ("get", "", "/metrics"),
        ("get", "", "/openid/v1/jwks"),
    ];
    for token in ["root-token", "bob-token"] {
        for (verb, resource, path) in rows {
            let spec = match resource {
                "" => json!({ "nonResourceAttributes": { "path": path, "verb": verb } }),
                _ => {
                    json!({ "resourceAttributes": { "namespace": "default", "verb": verb, "resource": resource } })
                }
            };
            let ask = Ask::post(format!("{ACCESS}/selfsubjectaccessreviews"), &json!({ "spec": spec }));
            let review = client.ask(ask.bearer(token)).await.expect(201);
            let met = client.ask(Ask::get(path).bearer(token)).await.code;
            assert_eq!(review["status"]["allowed"], json!(met != 403), "{token} {path}: {met} {review}");
            assert_eq!(review["spec"], spec);
        }
    }
    let refused =
        client.ask(Ask::post(TOKENS, &json!({ "spec": { "token": "x" } })).bearer("bob-token")).await;
    assert_eq!(
        said(&refused.expect(403)),
        r#"403 Forbidden: tokenreviews.authentication.k8s.io is forbidden: User "bob" cannot create resource "tokenreviews" in API group "authentication.k8s.io" at the cluster scope"#
    );
}

#[tokio::test]
async fn access_of_others_is_reviewed() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--authorization-mode=RBAC"]).await;
    let admin = server.admin().await;
    let pods = json!({ "verb": "get", "resource": "pods" });
    let by = r#"RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated""#;
    for (spec, want) in [
        (json!({ "user": "bob", "resourceAttributes": pods }), json!({ "allowed": false })),
        (
            json!({ "user": "bob", "groups": ["system:masters"], "resourceAttributes": pods }),
            json!({ "allowed": true }),
        ),
        (
            json!({ "groups": ["system:authenticated"], "nonResourceAttributes": { "path": "/api", "verb": "get" } }),
            json!({ "allowed": true, "reason": by }),
        ),
        (
            json!({ "user": "bob", "resourceAttributes": { "verb": "get", "labelSelector": { "rawSelector": "a in in" } } }),
            json!({
                "allowed": false,
                "evaluationError": "spec.resourceAttributes.labelSelector ignored due to parse error",
            }),
        ),
    ] {
        let review = admin.post(&format!("{ACCESS}/subjectaccessreviews"), &json!({ "spec": spec })).await;
        assert_eq!(review.expect(201)["status"], want, "{spec}");
    }
    let local = format!("{ACCESS}/namespaces/default/localsubjectaccessreviews");
    let inside = json!({ "namespace": "default", "verb": "get", "resource": "pods" });
    let review =
        admin.post(&local, &json!({ "spec": { "user": "bob", "resourceAttributes": inside } })).await;
    let review = review.expect(201);
    assert_eq!(
        (&review["status"], &review["metadata"]["namespace"]),
        (&json!({ "allowed": false }), &json!("default"))
    );

    let refused = admin.post(&local, &json!({ "spec": { "user": "bob", "resourceAttributes": pods } })).await;
    assert_eq!(
        causes(&refused.expect(422)),
        "FieldValueInvalid spec.resourceAttributes.namespace: Invalid value: \"\": must match metadata.namespace\n"
    );
    let refused = admin.post(&format!("{ACCESS}/selfsubjectaccessreviews"), &json!({})).await;
    assert_eq!(
        said(&refused.expect(422)),
        r#"422 Invalid: .authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#
    );
}

#[tokio::test]
async fn modes_are_reviewed_as_they_are() {
    for (mode, who, want) in [
        ("AlwaysAllow", "bob", json!({ "allowed": true })),
        ("AlwaysDeny", "bob", json!({ "allowed": false, "reason": "Everything is forbidden." })),
        ("AlwaysDeny", "eve", json!({ "allowed": true })),
    ] {
        let scratch = Scratch::new();
        let server = Server::start(&scratch, &[&format!("--authorization-mode={mode}")]).await;
        let groups = if who == "eve" { vec!["system:masters"] } else { Vec::new() };
        let spec = json!({ "user": who, "groups": groups, "resourceAttributes": { "verb": "get", "resource": "pods" } });
        let admin = server.admin().await;
        let review =
            admin.post(&format!("{ACCESS}/subjectaccessreviews"), &json!({ "spec": spec })).await.expect(201);
        assert_eq!(review["status"], want, "{mode} {who}");
    }
}

#[tokio::test]
async fn rules_are_listed() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let path = format!("{ACCESS}/selfsubjectrulesreviews");
    let refused = admin.post(&path, &json!({})).await.expect(400);
    assert_eq!(said(&refused), "400 BadRequest: no namespace on request");
    let rules = admin.post(&path, &json!({ "spec": { "namespace": "default" } })).await.expect(201);
    let want = json!({
        "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    });
    let status = &rules["status"];
    for (list, of_masters) in
        [("resourceRules", &want["resourceRules"][0]), ("nonResourceRules", &want["nonResourceRules"][0])]
    {
        let told = status[list].as_array().expect("rules");
        assert!(told.contains(of_masters) && told.len() > 1, "{list}: {status}");
    }
    assert_eq!((&status["incomplete"], status.get("evaluationError")), (&json!(false), None));
    // Whoever is bound to a role that is not there is told so.
    let binding = json!({
        "metadata": { "name": "lost" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gone" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:masters" }],
    });
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.expect(201);
    let rules = admin.post(&path, &json!({ "spec": { "namespace": "default" } })).await.expect(201);
    assert_eq!(
        rules["status"]["evaluationError"],
        r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#
    );
    server.kill().await;

    let server = Server::start(&scratch, &["--authorization-mode=AlwaysAllow"]).await;
    let rules =
        server.admin().await.post(&path, &json!({ "spec": { "namespace": "default" } })).await.expect(201);
    assert_eq!((&rules["status"], &rules["spec"]), (&want, &json!({})));
}

#[tokio::test]
async fn a_token_lives_as_long_as_its_service_account() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--authorization-mode=AlwaysAllow"]).await;
    let (admin, nobody) = (server.admin().await, nobody(&server).await);
    let account = create_account(&admin).await;
    let uid = text(&account, "/metadata/uid");
    let asked = json!({ "metadata": {}, "spec": { "expirationSeconds": 600 } });
    let granted = admin.post(&format!("{ACCOUNT}/token"), &asked).await.expect(201);
    assert_eq!(
        granted["spec"],
        json!({ "audiences": [ISSUER], "expirationSeconds": 600, "boundObjectRef": null })
    );
    assert_eq!((text(&granted, "/metadata/name"), text(&granted, "/metadata/uid")), ("robot", uid));
    let token = text(&granted, "/status/token");
    let said = claims(token);
    assert_eq!((&said["iss"], &said["aud"]), (&ISSUER.into(), &json!([ISSUER])));
    assert_eq!(said["sub"], "system:serviceaccount:default:robot");
    assert_eq!(
        said["kubernetes.io"],
        json!({ "namespace": "default", "serviceaccount": { "name": "robot", "uid": uid } })
    );
    assert_eq!(said["exp"].as_i64().zip(said["iat"].as_i64()).map(|(exp, iat)| exp - iat), Some(600));

    let groups = json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    let want = json!({
        "username": "system:serviceaccount:default:robot", "uid": uid, "groups": groups,
        "extra": { "authentication.kubernetes.io/credential-id": [format!("JTI={}", text(&said, "/jti"))] },
    });
    assert_eq!(whoami(&nobody, token).await.expect(201)["status"]["userInfo"], want);
    assert_eq!(
        reviewed(&admin, token, &[]).await,
        json!({ "authenticated": true, "user": want, "audiences": [ISSUER] })
    );
    nobody.ask(Ask::get(format!("{NAMESPACE}/pods")).bearer(token)).await.expect(200);

    // Another one of the same name is not the same.
    admin.delete(ACCOUNT).await.expect(200);
    assert_eq!(whoami(&nobody, token).await.code, 401);
    assert_eq!(
        reviewed(&admin, token, &[]).await,
        json!({ "user": {}, "error": "[invalid bearer token, serviceaccounts \"robot\" not found]" })
    );
    create_account(&admin).await;
    assert_eq!(whoami(&nobody, token).await.code, 401);
}

#[tokio::test]
async fn a_token_is_for_its_audience() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--api-audiences=api,old-api"]).await;
    let (admin, nobody) = (server.admin().await, nobody(&server).await);
    create_account(&admin).await;
    let plain = token(&admin, json!({})).await;
    assert_eq!(claims(&plain)["aud"], json!(["api", "old-api"]));
    assert_eq!(whoami(&nobody, &plain).await.code, 201);
    let vault = token(&admin, json!({ "audiences": ["vault"] })).await;
    assert_eq!(whoami(&nobody, &vault).await.code, 401);
    let good = reviewed(&admin, &vault, &["other", "vault"]).await;
    assert_eq!((&good["authenticated"], &good["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(
        reviewed(&admin, &vault, &["other"]).await["error"],
        r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["other"]]"#
    );
    assert_eq!(
        reviewed(&admin, "no-token", &[]).await,
        json!({ "user": {}, "error": "invalid bearer token" })
    );
}

#[tokio::test]
async fn a_token_ends_with_what_it_is_bound_to() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, nobody) = (server.admin().await, nobody(&server).await);
    create_account(&admin).await;
    let spec = json!({ "serviceAccountName": "robot", "nodeName": "ghost", "containers": [{ "name": "c", "image": "i" }] });
    let pod = json!({ "metadata": { "name": "web" }, "spec": spec });
    let pod = admin.post(&format!("{NAMESPACE}/pods"), &pod).await.expect(201);
    admin.post(&format!("{NAMESPACE}/secrets"), &json!({ "metadata": { "name": "web" } })).await.expect(201);
    admin.post("/api/v1/nodes", &json!({ "metadata": { "name": "web" } })).await.expect(201);
    for (kind, path) in [
        ("Pod", format!("{NAMESPACE}/pods/web?gracePeriodSeconds=0")),
        ("Secret", format!("{NAMESPACE}/secrets/web")),
        ("Node", "/api/v1/nodes/web".to_owned()),
    ] {
        let bound = json!({ "boundObjectRef": { "kind": kind, "apiVersion": "v1", "name": "web" } });
        let token = token(&admin, bound).await;
        let me = whoami(&nobody, &token).await.expect(201);
        if kind == "Pod" {
            let extra = &me["status"]["userInfo"]["extra"];
            assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["web"]));
            assert_eq!(extra["authentication.kubernetes.io/pod-uid"], json!([text(&pod, "/metadata/uid")]));
            assert_eq!(extra["authentication.kubernetes.io/node-name"], json!(["ghost"]));
        }
        admin.delete(&path).await.expect(200);
        assert_eq!(whoami(&nobody, &token).await.code, 401, "{kind}");
        assert_eq!(
            reviewed(&admin, &token, &[]).await["error"],
            "[invalid bearer token, service account token has been invalidated]"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_granted_is_refused() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--service-account-max-token-expiration=2h"]).await;
    let admin = server.admin().await;
    let account = create_account(&admin).await;
    let uid = text(&account, "/metadata/uid");
    let bound = |kind: &str, version: &str| json!({ "spec": { "boundObjectRef": { "kind": kind, "apiVersion": version, "name": "x" } } });
    for (body, want) in [
        (
            json!({ "spec": { "expirationSeconds": 599 } }),
            r#"422 Invalid: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#.to_owned(),
        ),
        (
            json!({ "spec": { "expirationSeconds": 4294967297_i64 } }),
            r#"422 Invalid: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"#.to_owned(),
        ),
        (
            json!({ "metadata": { "name": "other" } }),
            r#"422 Invalid: TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified"#.to_owned(),
        ),
        (
            json!({ "metadata": { "uid": "x" } }),
            format!(
                r#"409 Conflict: Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token request (x) does not match the UID of the service account ({uid})"#
            ),
        ),
        (bound("Pod", "v1"), r#"404 NotFound: pods "x" not found"#.to_owned()),
        (bound("Node", "v1"), r#"404 NotFound: nodes "x" not found"#.to_owned()),
        (
            bound("Deployment", "apps/v1"),
            "400 BadRequest: cannot bind token to object of type apps/v1, Kind=Deployment".to_owned(),
        ),
    ] {
        let reply = admin.post(&format!("{ACCOUNT}/token"), &body).await;
        assert_eq!(said(&reply.json()), want, "{body}");
    }
    let reply = admin.post(&format!("{NAMESPACE}/serviceaccounts/none/token"), &json!({})).await;
    assert_eq!(said(&reply.expect(404)), r#"404 NotFound: serviceaccounts "none" not found"#);
    let long =
        admin.post(&format!("{ACCOUNT}/token"), &json!({ "spec": { "expirationSeconds": 7201 } })).await;
    assert_eq!(long.expect(201)["spec"]["expirationSeconds"], 7200);
    assert_eq!(
        long.warnings(),
        [r#"299 - "requested expiration of 7201 seconds shortened to 7200 seconds""#]
    );
}

/// A policy in force that asks `validations` of what `rules` are about.
async fn enforce(admin: &Client, rules: &[(&str, &str)], validations: Value) {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
    let rule = |(group, resource): &(&str, &str)| json!({ "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource] });
    let rules: Vec<Value> = rules.iter().map(rule).collect();
    let spec = json!({ "matchConstraints": { "resourceRules": rules }, "validations": validations });
    let policy = json!({ "metadata": { "name": "own" }, "spec": spec });
    admin.post(&format!("{POLICIES}/validatingadmissionpolicies"), &policy).await.expect(201);
    let spec = json!({ "policyName": "own", "validationActions": ["Deny"] });
    let binding = json!({ "metadata": { "name": "own" }, "spec": spec });
    admin.post(&format!("{POLICIES}/validatingadmissionpolicybindings"), &binding).await.expect(201);
}

/// With what there is by default, and filled in.
#[tokio::test]
async fn policies_judge_requests_for_tokens_that_are_complete() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    create_account(&admin).await;
    let validations = json!([
        { "expression": "object.spec.expirationSeconds <= 3600", "message": "too long" },
        { "expression": format!("object.spec.audiences.all(one, one == '{ISSUER}')"), "message": "for another" },
        { "expression": "object.metadata.name == 'robot' && object.metadata.uid != ''", "message": "nobody's" },
    ]);
    enforce(&admin, &[("", "serviceaccounts/token")], validations).await;
    assert_eq!(claims(&token(&admin, json!({})).await)["aud"], json!([ISSUER]));
    let denied = |why: &str| {
        format!(
            "422 Invalid: serviceaccounts \"robot\" is forbidden: ValidatingAdmissionPolicy 'own' with binding 'own' denied request: {why}"
        )
    };
    let invalid = |why: &str| format!("422 Invalid: TokenRequest.authentication.k8s.io {why}");
    let missing = "404 NotFound: serviceaccounts \"none\" not found".to_owned();
    for (account, body, want) in [
        ("robot", json!({ "spec": { "expirationSeconds": 7200 } }), denied("too long")),
        ("robot", json!({ "spec": { "audiences": ["vault"] } }), denied("for another")),
        // What makes no sense is said before what may not be.
        ("none", json!({ "spec": { "expirationSeconds": 7200 } }), missing),
        (
            "robot",
            json!({ "spec": { "expirationSeconds": 599, "audiences": ["vault"] } }),
            invalid(
                r#""" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#,
            ),
        ),
        (
            "robot",
            json!({ "metadata": { "name": "other" }, "spec": { "audiences": ["vault"] } }),
            invalid(
                r#""robot" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified"#,
            ),
        ),
    ] {
        let reply = admin.post(&format!("{NAMESPACE}/serviceaccounts/{account}/token"), &body).await;
        assert_eq!(said(&reply.json()), want, "{body}");
    }
}

/// Policies are not asked about them; webhooks are.
#[tokio::test]
async fn what_no_review_can_answer_is_said_before_what_may_not_be() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let groups = ["authentication.k8s.io", "authorization.k8s.io"];
    let rule =
        json!({ "apiGroups": groups, "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"] });
    let hook = json!({
        "name": "nobody.example.com", "rules": [rule], "clientConfig": { "url": "https://127.0.0.1:1/" },
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
    });
    let hooks = json!({ "metadata": { "name": "nobody" }, "webhooks": [hook] });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    admin.post(path, &hooks).await.expect(201);
    let rules = format!("{ACCESS}/selfsubjectrulesreviews");
    for (path, spec, code) in [
        (TOKENS, json!({}), 400),
        (TOKENS, json!({ "token": "t" }), 500),
        (&rules, json!({}), 400),
        (&rules, json!({ "namespace": "default" }), 500),
    ] {
        assert_eq!(admin.post(path, &json!({ "spec": spec })).await.code, code, "{path} {spec}");
    }
}

#[tokio::test]
async fn keys_outlive_the_server_and_issuers_may_change() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    create_account(&admin).await;
    let first = token(&admin, json!({})).await;
    let keys = admin.get("/openid/v1/jwks").await;
    assert_eq!((keys.code, keys.header("content-type")), (200, "application/jwk-set+json"));
    assert_eq!(keys.header("cache-control"), "public, max-age=3600");
    let keys = keys.json();
    assert_eq!((&keys["keys"][0]["alg"], &keys["keys"][0]["use"]), (&"ES256".into(), &"sig".into()));
    drop(admin);
    server.terminate();
    server.ended().await;

    let issuer = "--service-account-issuer=https://new.example.org";
    let old = format!("--service-account-issuer={ISSUER}");
    let server = Server::start(&scratch, &[issuer, &old]).await;
    let (admin, nobody) = (server.admin().await, nobody(&server).await);
    assert_eq!(admin.get("/openid/v1/jwks").await.expect(200), keys);
    let known = admin.get("/.well-known/openid-configuration").await.expect(200);
    assert_eq!(known["issuer"], "https://new.example.org");
    assert_eq!(known["jwks_uri"], format!("https://127.0.0.1:{}/openid/v1/jwks", server.port));
    let second = token(&admin, json!({})).await;
    assert_eq!(claims(&second)["iss"], "https://new.example.org");
    for token in [&first, &second] {
        assert_eq!(whoami(&nobody, token).await.code, 201);
    }
    drop((admin, nobody));
    server.terminate();
    server.ended().await;

    // What is no longer named is no longer believed.
    let server = Server::start(&scratch, &[issuer]).await;
    let nobody = self::nobody(&server).await;
    assert_eq!(whoami(&nobody, &first).await.code, 401);
    assert_eq!(whoami(&nobody, &second).await.code, 201);
}

#[tokio::test]
async fn reviews_are_posted_and_nothing_else() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    for path in [WHO, TOKENS, &format!("{ACCOUNT}/token"), &format!("{ACCESS}/subjectaccessreviews")] {
        assert_eq!(admin.get(path).await.code, 405, "{path}");
    }
    assert_eq!(admin.get(&format!("{TOKENS}/x")).await.code, 404);
    let refused = admin.post(TOKENS, &json!({ "spec": {} })).await.expect(400);
    assert_eq!(said(&refused), "400 BadRequest: token is required for TokenReview in authentication");
    let resources = admin.get("/apis/authentication.k8s.io/v1").await.expect(200);
    let listed: Vec<&str> =
        resources["resources"].as_array().expect("a list").iter().map(|one| text(one, "/name")).collect();
    assert_eq!(listed, ["selfsubjectreviews", "tokenreviews"]);
}

#[tokio::test]
async fn pods_run_as_a_service_account_unless_that_is_turned_off() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--enable-admission-plugins=ServiceAccount"]).await;
    let admin = server.admin().await;
    let pods = format!("{NAMESPACE}/pods");
    let accounts = format!("{NAMESPACE}/serviceaccounts");
    let pod = |name: &str, spec: Value| {
        let mut spec = spec;
        spec["containers"] = json!([{ "name": "c", "image": "i" }]);
        json!({ "metadata": { "name": name }, "spec": spec })
    };
    let refused = admin.post(&pods, &pod("lost", json!({ "serviceAccountName": "none" }))).await;
    assert_eq!(
        said(&refused.expect(403)),
        r#"403 Forbidden: pods "lost" is forbidden: error looking up service account default/none: serviceaccount "none" not found"#
    );
    assert_eq!(admin.get(&format!("{pods}/lost")).await.code, 404);

    // The account of a namespace may come a moment later than its first pod.
    let (first, account) = (pod("first", json!({})), json!({ "metadata": { "name": "default" } }));
    let (first, account) = tokio::join!(admin.post(&pods, &first), admin.post(&accounts, &account));
    assert!(matches!(account.code, 201 | 409), "{}", account.text());
    let first = first.expect(201);
    assert_eq!(text(&first, "/spec/serviceAccountName"), "default");
    assert_eq!(text(&first, "/spec/serviceAccount"), "default");
    let volume = text(&first, "/spec/volumes/0/name");
    assert!(
        volume.starts_with("kube-api-access-") && volume.len() == "kube-api-access-".len() + 5,
        "{volume}"
    );
    let namespace = json!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    let projected = json!({
        "sources": [
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": namespace }] } },
        ],
        "defaultMode": 420,
    });
    assert_eq!(first["spec"]["volumes"], json!([{ "name": volume, "projected": projected }]));
    let mount = json!({ "name": volume, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" });
    assert_eq!(first["spec"]["containers"][0]["volumeMounts"], json!([mount]));

    let quiet = json!({ "metadata": { "name": "quiet" }, "automountServiceAccountToken": false, "imagePullSecrets": [{ "name": "pull" }] });
    admin.post(&accounts, &quiet).await.expect(201);
    let second = admin.post(&pods, &pod("second", json!({ "serviceAccount": "quiet" }))).await.expect(201);
    assert_eq!(
        (text(&second, "/spec/serviceAccountName"), &second["spec"]["volumes"]),
        ("quiet", &Value::Null)
    );
    assert_eq!(second["spec"]["imagePullSecrets"], json!([{ "name": "pull" }]));
}
