//! Who somebody is, by ours and by kube-apiserver under the same configuration: tokens of providers that are
//! good and bad in every way, and requests that are made as somebody else.
//!
//! In: tokens of a provider of the test, headers of impersonation. Out: every difference.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_clients::etcd::{Cluster, Security};
use forebay_clients::{ControlPlane, needs};
use forebay_conformance::Peer;
use forebay_conformance::pair::{RawAnswer, Request};
use forebay_hook::Hook;
use forebay_hook::tokens::{Signer, discovery};
use forebay_rt::Clock;
use http::Method;
use serde_json::{Value, json};

/// Anything that takes longer than this does not come.
const WAIT: Duration = Duration::from_secs(120);

/// Two providers at one hook: one whose claims are mapped by name, one whose are by expressions.
struct Providers {
    hook: Arc<Hook>,
    signer: Signer,
    now: u64,
}

impl Providers {
    async fn start() -> Providers {
        let hook = Arc::new(Hook::start().await);
        let signer = Signer::new("own");
        let keys = format!("{}/any/keys", hook.url());
        for who in ["plain", "cel"] {
            let document = discovery(&format!("{}/{who}", hook.url()), &keys);
            hook.answers(&format!("{who}.json"), json!({ "raw": document }));
        }
        hook.answers("keys", json!({ "raw": signer.keys() }));
        Providers { hook, signer, now: Clock::system().unix_ms() / 1000 }
    }

    fn issuer(&self, who: &str) -> Value {
        let authority = STANDARD.decode(&self.hook.authority).expect("base64");
        json!({
            "url": format!("{}/{who}", self.hook.url()),
            "discoveryURL": format!("{}/any/{who}.json", self.hook.url()),
            "certificateAuthority": String::from_utf8(authority).expect("PEM"),
            "audiences": ["kube", "other"], "audienceMatchPolicy": "MatchAny",
        })
    }

    fn configuration(&self) -> String {
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [
                {
                    "issuer": self.issuer("plain"),
                    "claimMappings": {
                        "username": { "claim": "sub", "prefix": "plain:" },
                        "groups": { "claim": "groups", "prefix": "g:" },
                        "uid": { "claim": "uid" },
                    },
                    "claimValidationRules": [{ "claim": "hd", "requiredValue": "example.com" }],
                },
                {
                    "issuer": self.issuer("cel"),
                    "claimMappings": {
                        "username": { "expression": "'cel:' + claims.sub" },
                        "groups": { "expression": "claims.?roles.orValue([])" },
                        "uid": { "expression": "string(claims.?uid.orValue(''))" },
                        "extra": [
                            { "key": "example.com/tenant", "valueExpression": "claims.?tenant.orValue('')" },
                            { "key": "example.com/deep", "valueExpression": "has(claims.o) ? claims.o.k : ''" },
                        ],
                    },
                    "claimValidationRules": [
                        { "expression": "claims.exp - claims.iat <= 86400.0", "message": "lives too long" },
                    ],
                    "userValidationRules": [
                        { "expression": "!user.username.contains('root')", "message": "no roots" },
                        { "expression": "user.groups.all(g, !g.startsWith('system:'))", "message": "no system" },
                    ],
                },
            ],
        })
        .to_string()
    }

    fn claims(&self, who: &str, more: &Value) -> Value {
        let mut claims = json!({
            "iss": format!("{}/{who}", self.hook.url()), "aud": "kube", "sub": "ann", "hd": "example.com", "uid": "7",
            "iat": self.now, "exp": self.now + 3600,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            match value.is_null() {
                true => drop(claims.as_object_mut().expect("members").remove(name)),
                false => claims[name] = value.clone(),
            }
        }
        claims
    }

    /// Tokens by what they are.
    fn tokens(&self) -> Vec<(String, String)> {
        let mut tokens = Vec::new();
        let mut add = |who: &str, algorithm: &str, more: Value| {
            let token = self.signer.token(algorithm, &self.claims(who, &more));
            tokens.push((format!("{who} {algorithm} {more}"), token));
        };
        for who in ["plain", "cel"] {
            for algorithm in ["RS256", "RS512", "PS256", "ES256", "ES512"] {
                add(who, algorithm, json!({}));
            }
            for more in [
                json!({ "aud": ["x", "other"] }),
                json!({ "aud": ["x"] }),
                json!({ "aud": null }),
                json!({ "exp": 1_000 }),
                json!({ "exp": null }),
                json!({ "nbf": self.now + 30 }),
                json!({ "jti": "j" }),
                json!({ "sub": 7 }),
                json!({ "hd": "x" }),
                json!({ "hd": null }),
                json!({ "hd": ["example.com"] }),
                json!({ "groups": ["a", "b"], "roles": ["a", "", "b"] }),
                json!({ "groups": "a", "roles": "a" }),
                json!({ "groups": [1], "roles": [1] }),
                json!({ "roles": ["system:masters"] }),
                json!({ "uid": null }),
                json!({ "uid": 7 }),
                json!({ "tenant": ["t", "s"], "o": { "k": "v" } }),
                json!({ "tenant": 7 }),
                json!({ "o": {} }),
                json!({ "sub": "root" }),
                json!({ "exp": self.now + 100_000 }),
                json!({ "iss": "https://elsewhere" }),
                json!({ "_claim_names": { "groups": "s" } }),
            ] {
                add(who, "ES256", more);
            }
        }
        let other = Signer::new("own");
        let claims = self.claims("plain", &Value::Null);
        tokens.push(("somebody else's key of the same name".to_owned(), other.token("ES256", &claims)));
        for id in [json!(null), json!(""), json!("unknown")] {
            let header = json!({ "alg": "ES256", "kid": id });
            tokens.push((format!("a key called {id}"), self.signer.token_under(header, &claims)));
        }
        for header in [
            json!({ "alg": "ES256", "kid": "own-rsa" }),
            json!({ "alg": "RS256", "kid": "own-ec" }),
            json!({ "alg": "ES256", "kid": "own-ec", "crit": ["exp"] }),
            json!({ "alg": "ES512", "kid": "own-ec" }),
            json!({ "alg": "ES256", "kid": "own-p521" }),
        ] {
            tokens.push((header.to_string(), self.signer.token_under(header, &claims)));
        }
        for text in ["x", "a.b.c", "e30.e30.", "abcdef.0123456789abcdef", "a b"] {
            tokens.push((text.to_owned(), text.to_owned()));
        }
        let good = self.signer.token("RS256", &claims);
        tokens.push(("more behind it".to_owned(), format!("{good}.x")));
        tokens.push(("less of it".to_owned(), good[..good.len() - 4].to_owned()));
        tokens
    }
}

struct Servers {
    ours: Peer,
    theirs: Peer,
    _cluster: Cluster,
}

impl Servers {
    async fn start(configuration: &str) -> Servers {
        let cluster = Cluster::start(1, Security::Plain).expect("an etcd");
        let file = cluster.dir().join("authentication.json");
        std::fs::write(&file, configuration).expect("the configuration");
        let flag = flag(&file);
        let flags = [
            flag.as_str(),
            "--enable-bootstrap-token-auth",
            "--authorization-mode=RBAC",
            "--api-audiences=api",
        ];
        let ours = ControlPlane::start_told(flags.map(str::to_owned).to_vec());
        let theirs = ControlPlane::start_rival_told(&cluster, &flags);
        Servers {
            ours: Peer::of(ours.expect("ours")).await.expect("a client"),
            theirs: Peer::of(theirs.expect("theirs")).await.expect("a client"),
            _cluster: cluster,
        }
    }

    /// Waits until both know where the keys of the providers are.
    async fn know(&self, providers: &Providers) {
        let ready = async {
            for who in ["plain", "cel"] {
                let token = providers.signer.token("RS256", &providers.claims(who, &Value::Null));
                while self.review(&token).await.iter().any(|one| one["status"]["authenticated"] != true) {
                    Clock::system().sleep(Duration::from_millis(200)).await;
                }
            }
        };
        tokio::time::timeout(WAIT, ready).await.expect("both know the providers");
    }

    /// Sends both the same, and returns what they answer.
    async fn ask(&self, request: &Request) -> [(u16, Value); 2] {
        [
            told(self.ours.ask(request, "application/json").await),
            told(self.theirs.ask(request, "application/json").await),
        ]
    }

    /// The same by somebody who shows nothing but what the request says.
    async fn ask_as_stranger(&self, request: &Request) -> [(u16, Value); 2] {
        [
            told(self.ours.ask_as_stranger(request, "application/json").await),
            told(self.theirs.ask_as_stranger(request, "application/json").await),
        ]
    }

    async fn review(&self, token: &str) -> [Value; 2] {
        let mut request =
            Request::new(Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews".to_owned());
        request.body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token },
        })
        .to_string()
        .into_bytes();
        self.ask(&request).await.map(|(code, body)| json!({ "code": code, "status": body["status"] }))
    }
}

fn told(answer: Result<RawAnswer, String>) -> (u16, Value) {
    let answer = answer.expect("an answer");
    let text = || Value::String(String::from_utf8_lossy(&answer.body).into_owned());
    (answer.code, serde_json::from_slice(&answer.body).unwrap_or_else(|_| text()))
}

fn flag(file: &Path) -> String {
    format!("--authentication-config={}", file.display())
}

/// What differs on purpose: each with its reason.
fn allowed(what: &str, ours: &Value, theirs: &Value) -> Option<&'static str> {
    let said = |of: &Value| of["status"]["error"].as_str().unwrap_or_default().to_owned();
    let (ours, theirs) = (said(ours), said(theirs));
    let is_both = |text: &str| ours.contains(text) && theirs.contains(text);
    if is_both("token is expired") {
        return Some("Go shows a time in the zone of the server");
    }
    if ours.contains("oidc: verify token") && theirs.contains("oidc: verify token: oidc: malformed jwt") {
        return Some("the library's words for what cannot be read");
    }
    if what.contains("malformed") || (is_both("oidc:") && theirs.contains("json: cannot unmarshal")) {
        return Some("Go's JSON names its own types");
    }
    if ours.contains("oidc: parse") && theirs.contains("oidc: parse") {
        return Some("Go's JSON names its own types");
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_providers_stand_for_the_same_users_and_are_refused_in_the_same_words() {
    if !needs::peers_or_skip() {
        return;
    }
    let providers = Providers::start().await;
    let servers = Servers::start(&providers.configuration()).await;
    servers.know(&providers).await;
    let (mut failure, mut different, mut known, mut allowed_of) = (String::new(), 0, 0, 0);
    let tokens = providers.tokens();
    for (what, token) in &tokens {
        let [ours, theirs] = servers.review(token).await;
        known += usize::from(ours["status"]["authenticated"] == true);
        if ours == theirs {
            continue;
        }
        let same_verdict = ours["status"]["user"] == theirs["status"]["user"];
        if same_verdict && allowed(what, &ours, &theirs).is_some() {
            allowed_of += 1;
            continue;
        }
        different += 1;
        let _ = writeln!(failure, "{what}\n  ours   {ours}\n  theirs {theirs}");
    }
    println!(
        "figure: {} tokens, {known} of somebody, {allowed_of} refused in other words, {different} differ",
        tokens.len()
    );
    assert!(known > 10, "most are refused: {known}");
    assert!(different == 0, "{different} of {} differ:\n{failure}", tokens.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_are_kept_elsewhere_are_the_same_and_what_is_wrong_with_them_makes_nobody_of_somebody() {
    if !needs::peers_or_skip() {
        return;
    }
    let providers = Providers::start().await;
    let servers = Servers::start(&providers.configuration()).await;
    servers.know(&providers).await;
    let token = |source: &str| {
        let endpoint = format!("{}/any/{source}", providers.hook.url());
        let sources = json!({ "s": { "endpoint": endpoint, "access_token": "t" } });
        let claims = json!({ "groups": null, "_claim_names": { "groups": "s" }, "_claim_sources": sources });
        providers.signer.token("ES256", &providers.claims("plain", &claims))
    };
    let says =
        |more: Value| json!({ "raw": providers.signer.token("RS256", &providers.claims("plain", &more)) });
    let sources = [
        ("several", says(json!({ "groups": ["a", "b"], "sub": "root", "uid": "8" })), true),
        ("one", says(json!({ "groups": "a" })), true),
        ("none", says(json!({})), false),
        ("numbers", says(json!({ "groups": [1] })), false),
        ("late", says(json!({ "groups": "a", "exp": 1_000 })), false),
        ("for-others", says(json!({ "groups": "a", "aud": "x" })), false),
        ("of-nobody", says(json!({ "groups": "a", "iss": "https://127.0.0.1:1" })), false),
        ("no-token", json!({ "raw": "a.b" }), false),
        ("unwell", json!({ "raw": "no", "code": 503 }), false),
    ];
    for (name, answer, _) in &sources {
        providers.hook.answers(name, answer.clone());
    }
    // Theirs begins to find out where the keys are when it needs them.
    let ready = async {
        while servers.review(&token("several")).await.iter().any(|one| one["status"]["authenticated"] != true)
        {
            Clock::system().sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(WAIT, ready).await.expect("both know the source's keys");
    for (name, _, is_known) in &sources {
        let [ours, theirs] = servers.review(&token(name)).await;
        assert_eq!(ours["status"]["user"], theirs["status"]["user"], "{name}: {ours} {theirs}");
        assert_eq!(ours["status"]["authenticated"] == true, *is_known, "{name}: {ours} {theirs}");
        let begins = |of: &Value| {
            let why = of["status"]["error"].as_str().unwrap_or_default();
            why.match_indices(':').nth(1).map_or(why, |(at, _)| &why[..at]).to_owned()
        };
        assert_eq!(begins(&ours), begins(&theirs), "{name}: {ours} {theirs}");
    }
}

/// Who may act as whom in this test, by rules of RBAC.
fn rules() -> Vec<(&'static str, Value)> {
    let on = |mode: &str| json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": [format!("impersonate-on:{mode}:list")] });
    let be = |mode: &str, resource: &str, names: &[&str]| {
        let verb = format!("impersonate:{mode}");
        json!({ "apiGroups": ["authentication.k8s.io"], "resources": [resource], "verbs": [verb],
            "resourceNames": names })
    };
    vec![
        (
            "user",
            json!([on("user-info"), be("user-info", "users", &["bob"]), be("user-info", "groups", &["g"])]),
        ),
        ("half", json!([on("user-info")])),
        ("other-half", json!([be("user-info", "users", &["bob"])])),
        ("account", json!([on("serviceaccount"), be("serviceaccount", "serviceaccounts", &["s"])])),
        ("node", json!([on("arbitrary-node"), be("arbitrary-node", "nodes", &["w1"])])),
        (
            "extra",
            json!([
                on("user-info"),
                be("user-info", "users", &["bob"]),
                be("user-info", "userextras/example.com/scope", &["read"]),
                be("user-info", "uids", &["7"]),
            ]),
        ),
        (
            "old",
            json!([{ "apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"],
            "verbs": ["impersonate"] }]),
        ),
        ("nothing", json!([])),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acting_as_somebody_else_is_allowed_and_refused_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let providers = Providers::start().await;
    let servers = Servers::start(&providers.configuration()).await;
    servers.know(&providers).await;
    let post = |path: &str, body: Value| {
        let mut request = Request::new(Method::POST, path.to_owned());
        request.body = body.to_string().into_bytes();
        request
    };
    for (name, rules) in rules() {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("plain:{name}") }],
        });
        for (path, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let made = servers.ask(&post(&format!("{rbac}/{path}"), body)).await;
            assert!(made.iter().all(|(code, _)| *code == 201), "{made:?}");
        }
    }
    let wanted: Vec<Vec<(&str, &str)>> = vec![
        vec![("Impersonate-User", "bob")],
        vec![("Impersonate-User", "eve")],
        vec![("Impersonate-User", "bob"), ("Impersonate-Group", "g")],
        vec![("Impersonate-User", "bob"), ("Impersonate-Group", "h")],
        vec![("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")],
        vec![("Impersonate-User", "bob"), ("Impersonate-Uid", "7")],
        vec![("Impersonate-User", "bob"), ("Impersonate-Extra-example.com%2fscope", "read")],
        vec![("Impersonate-User", "bob"), ("Impersonate-Extra-example.com%2fscope", "write")],
        vec![("Impersonate-User", "bob"), ("Impersonate-Extra-scopes", "read")],
        vec![("Impersonate-User", "system:serviceaccount:default:s")],
        vec![("Impersonate-User", "system:serviceaccount:default:t")],
        vec![("Impersonate-User", "system:serviceaccount:default:s"), ("Impersonate-Group", "g")],
        vec![("Impersonate-User", "system:node:w1")],
        vec![("Impersonate-User", "system:node:w2")],
        vec![("Impersonate-User", "system:node:W")],
        vec![("Impersonate-User", "system:anonymous")],
        vec![("Impersonate-Group", "g")],
        vec![("Impersonate-Uid", "7"), ("Impersonate-Extra-a", "b")],
    ];
    let (mut failure, mut different, mut all) = (String::new(), 0, 0);
    for (name, _) in rules() {
        let token = providers.signer.token("ES256", &providers.claims("plain", &json!({ "sub": name })));
        for headers in &wanted {
            for (method, path) in [
                (Method::GET, "/api/v1/namespaces/default/configmaps"),
                (Method::GET, "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"),
                (Method::GET, "/version"),
            ] {
                let mut request = Request::new(method.clone(), path.to_owned());
                request.headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
                request.headers.push(("Authorization", format!("Bearer {token}")));
                let [ours, theirs] = servers.ask_as_stranger(&request).await;
                all += 1;
                let shown = |(code, body): &(u16, Value)| match body["kind"] == "Status" {
                    true => format!("{code} {}", body["message"]),
                    false => code.to_string(),
                };
                let (ours, theirs) = (shown(&ours), shown(&theirs));
                if ours != theirs {
                    different += 1;
                    let _ =
                        writeln!(failure, "{name} {headers:?} {path}\n  ours   {ours}\n  theirs {theirs}");
                }
            }
        }
    }
    println!("figure: {all} requests as somebody else, {different} differ");
    assert!(different == 0, "{different} of {all} differ:\n{failure}");
}
