//! Two users who try everything, and what roles allow them: no request is answered that RBAC does not let in.
//!
//! In: roles and bindings that are drawn, requests on every kind of path. Out: each answer held against the
//! rules, by who is asked and what the path was made for.

mod common;

use common::{Ask, Client, Identity, Protocol, Scratch, Server, said};
use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Verb};
use forebay_rbac::{Rights, Role, RoleBinding, RoleRef, Ruling};
use forebay_rt::Random;
use http::Method;
use serde_json::{Value, json};

const TOKENS: &str = "ann-token,ann,1,\"dev\"\nbob-token,bob,2,\"ops\"\n";
const GROUP: &str = "rbac.authorization.k8s.io";
const ROUNDS: u64 = 8;
const REQUESTS: usize = 400;

/// What a request is made for.
#[derive(Clone, Debug, Default)]
struct Tried {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    namespace: &'static str,
    name: &'static str,
    /// What is no resource.
    path: Option<&'static str>,
}

const NAMESPACES: [&str; 3] = ["a", "b", "kube-system"];
const NAMES: [&str; 4] = ["x", "y", "default", "admin"];
const RESOURCES: [(&str, &str, bool); 18] = [
    ("", "pods", true),
    ("", "secrets", true),
    ("", "configmaps", true),
    ("", "services", true),
    ("", "serviceaccounts", true),
    ("", "gizmos", true),
    ("apps", "deployments", true),
    ("batch", "jobs", true),
    ("coordination.k8s.io", "leases", true),
    (GROUP, "roles", true),
    (GROUP, "rolebindings", true),
    ("agg.example.com", "widgets", true),
    ("", "nodes", false),
    ("", "persistentvolumes", false),
    (GROUP, "clusterroles", false),
    (GROUP, "clusterrolebindings", false),
    ("apiextensions.k8s.io", "customresourcedefinitions", false),
    ("apiregistration.k8s.io", "apiservices", false),
];
const SUBRESOURCES: [&str; 11] =
    ["", "", "", "", "status", "log", "scale", "token", "eviction", "binding", "proxy"];
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const PATHS: [&str; 9] = [
    "/",
    "/api",
    "/apis",
    "/metrics",
    "/openapi/v3",
    "/logs",
    "/livez",
    "/version",
    "/debug/api_priority_and_fairness/x",
];

fn one<'t, T>(random: &Random, of: &'t [T]) -> &'t T {
    &of[random.below(of.len() as u64) as usize]
}

fn some(random: &Random, of: &[&str]) -> Vec<String> {
    (0..1 + random.below(3)).map(|_| (*one(random, of)).to_owned()).collect()
}

fn rule(random: &Random, of_cluster: bool) -> Value {
    if of_cluster && random.below(4) == 0 {
        let paths = some(random, &["/metrics", "/api*", "/openapi/*", "/logs"]);
        return json!({ "verbs": some(random, &["get", "post", "*"]), "nonResourceURLs": paths });
    }
    let groups: Vec<&str> = RESOURCES.iter().map(|(group, ..)| *group).chain(["*"]).collect();
    let parts = ["*", "*/status", "pods/log", "pods/eviction", "deployments/scale", "serviceaccounts/token"];
    let resources: Vec<&str> = RESOURCES.iter().map(|(_, resource, _)| *resource).chain(parts).collect();
    let verbs: Vec<&str> = VERBS.iter().copied().chain(["proxy"]).collect();
    let mut rule = json!({
        "verbs": some(random, &verbs), "apiGroups": some(random, &groups), "resources": some(random, &resources),
    });
    if random.below(3) == 0 {
        rule["resourceNames"] = json!(some(random, &NAMES));
    }
    rule
}

/// Roles and bindings of a round: path of the collection, object, namespace.
fn drawn(random: &Random, round: u64) -> Vec<(String, Value, &'static str)> {
    let path = |namespace: &str, resource: &str| match namespace {
        "" => format!("/apis/{GROUP}/v1/{resource}"),
        namespace => format!("/apis/{GROUP}/v1/namespaces/{namespace}/{resource}"),
    };
    let mut all = Vec::new();
    for at in 0..6 {
        let namespace = *one(random, &["", "a", "b"]);
        let of_cluster = namespace.is_empty();
        let (role, binding, kind) = match of_cluster {
            true => ("clusterroles", "clusterrolebindings", "ClusterRole"),
            false => ("roles", "rolebindings", "Role"),
        };
        let name = format!("round-{round}-{at}");
        let rules: Vec<Value> = (0..1 + random.below(3)).map(|_| rule(random, of_cluster)).collect();
        all.push((path(namespace, role), json!({ "metadata": { "name": name }, "rules": rules }), namespace));
        let (subject, of) =
            *one(random, &[("User", "ann"), ("User", "bob"), ("Group", "dev"), ("Group", "ops")]);
        let bound = json!({
            "metadata": { "name": name }, "roleRef": { "apiGroup": GROUP, "kind": kind, "name": name },
            "subjects": [{ "apiGroup": GROUP, "kind": subject, "name": of }],
        });
        all.push((path(namespace, binding), bound, namespace));
    }
    // Ann has a namespace, and bob may be ann, now and then.
    let admin = json!({
        "metadata": { "name": format!("round-{round}-admin") },
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": "admin" },
        "subjects": [{ "apiGroup": GROUP, "kind": "User", "name": "ann" }],
    });
    all.push((path("a", "rolebindings"), admin, "a"));
    if random.below(2) == 0 {
        let name = format!("round-{round}-acts");
        let rules = json!([{ "verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["ann"] }]);
        all.push((path("", "clusterroles"), json!({ "metadata": { "name": name }, "rules": rules }), ""));
        let bound = json!({
            "metadata": { "name": name }, "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": GROUP, "kind": "User", "name": "bob" }],
        });
        all.push((path("", "clusterrolebindings"), bound, ""));
    }
    all
}

/// What there is, as the rules see it.
async fn rights(admin: &Client) -> Rights {
    let mut rights = Rights::default();
    for (resource, are_bindings) in
        [("clusterroles", false), ("roles", false), ("clusterrolebindings", true), ("rolebindings", true)]
    {
        let list = admin.get(&format!("/apis/{GROUP}/v1/{resource}")).await.expect(200);
        for object in list["items"].as_array().expect("items") {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("");
            let name = object["metadata"]["name"].as_str().expect("a name");
            match are_bindings {
                true => {
                    RoleBinding::read(object, namespace).into_iter().for_each(|it| rights.put_binding(it))
                }
                false => {
                    let reference = RoleRef { namespace: namespace.into(), name: name.into() };
                    rights.put_role(&reference, Role::read(object));
                }
            }
        }
    }
    rights
}

fn caller(name: &str, groups: &[&str]) -> Caller {
    let groups = groups.iter().map(ToString::to_string).collect();
    Caller { name: name.to_owned(), groups, ..Caller::default() }.authenticated()
}

fn may(rights: &Rights, caller: &Caller, tried: &Tried) -> bool {
    let Tried { verb, group, resource, subresource, namespace, name, path } = *tried;
    if path.is_some_and(|path| path == "/livez" || path == "/version") {
        return true;
    }
    let of = ResourceAttributes {
        group,
        version: "v1",
        namespace,
        resource,
        subresource,
        name,
        ..Default::default()
    };
    let about = path.map_or(About::Resource(of), About::Path);
    matches!(rights.decide(&Attributes { caller, verb: &Verb::named(verb), about }), Ruling::Allowed(_))
}

/// A request, and what it is made for.
fn request(random: &Random) -> (Ask, Tried) {
    if random.below(8) == 0 {
        let path = *one(random, &PATHS);
        let (method, verb) = one(random, &[(Method::GET, "get"), (Method::POST, "post")]).clone();
        return (Ask::new(method, path), Tried { verb, path: Some(path), ..Tried::default() });
    }
    let (group, resource, is_namespaced) = *one(random, &RESOURCES);
    let everywhere = !is_namespaced || random.below(6) == 0;
    let mut tried = Tried {
        verb: one::<&str>(random, &VERBS),
        group,
        resource,
        namespace: if everywhere { "" } else { one::<&str>(random, &NAMESPACES) },
        ..Tried::default()
    };
    let is_named = matches!(tried.verb, "get" | "update" | "patch" | "delete");
    if is_named {
        tried.name = *one(random, &NAMES);
        tried.subresource = *one(random, &SUBRESOURCES);
    } else if tried.verb == "create" && random.below(2) == 0 {
        (tried.name, tried.subresource) =
            (*one(random, &NAMES), *one(random, &["token", "eviction", "binding", "proxy"]));
    }
    let prefix = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
    let namespace =
        if tried.namespace.is_empty() { String::new() } else { format!("/namespaces/{}", tried.namespace) };
    let segment = |text: &str| if text.is_empty() { String::new() } else { format!("/{text}") };
    let rest = |tried: &Tried| {
        format!("{namespace}/{resource}{}{}", segment(tried.name), segment(tried.subresource))
    };
    // A path may be spelled otherwise.
    let spelled = |path: String| match random.below(6) {
        0 => path.replacen("/namespaces/", "/%6eamespaces/", 1),
        1 => path.replace(resource, &resource.replacen('s', "%73", 1)),
        _ => path,
    };
    let (method, mut query) = match tried.verb {
        "get" | "list" => (Method::GET, "?dryRun=All".to_owned()),
        "watch" => (Method::GET, "?watch=true&timeoutSeconds=1".to_owned()),
        "create" => (Method::POST, "?dryRun=All".to_owned()),
        "update" => (Method::PUT, "?dryRun=All".to_owned()),
        "patch" => (Method::PATCH, "?dryRun=All".to_owned()),
        _ => (Method::DELETE, "?dryRun=All".to_owned()),
    };
    let mut path = format!("{prefix}{}", rest(&tried));
    if tried.verb == "watch" && random.below(2) == 0 {
        // The deprecated form, of one object or of all.
        if random.below(2) == 0 {
            tried.name = *one(random, &NAMES);
        }
        path = format!("{prefix}/watch{}", rest(&tried));
    } else if matches!(tried.verb, "list" | "watch") && random.below(3) == 0 {
        tried.name = *one(random, &NAMES);
        query = format!("{query}&fieldSelector=metadata.name%3D{}", tried.name);
    } else if tried.verb == "get" && tried.subresource.is_empty() && random.below(10) == 0 {
        tried.verb = "proxy";
        path = format!("{prefix}/proxy{}", rest(&tried));
    }
    let mut ask = Ask::new(method.clone(), format!("{}{query}", spelled(path)));
    if matches!(method, Method::POST | Method::PUT) {
        ask = ask.body("application/json", "{}");
    } else if method == Method::PATCH {
        ask = ask.body("application/merge-patch+json", "{}");
    }
    (ask, tried)
}

/// The code and what is said, of a watch as well, which is given up.
async fn answer(client: &Client, ask: Ask, tried: &Tried) -> (u16, String) {
    if tried.verb != "watch" {
        let reply = client.ask(ask).await;
        return (reply.code, String::from_utf8_lossy(&reply.body).into_owned());
    }
    let response = client.open_reply(ask.clone()).await.expect("an answer");
    match response.status().as_u16() {
        200 => (200, String::new()),
        code => (code, client.ask(ask).await.text().to_owned()),
    }
}

#[tokio::test]
async fn two_users_get_no_answer_that_rbac_does_not_give() {
    let scratch = Scratch::new();
    let tokens = scratch.file("tokens.csv", TOKENS);
    let server = Server::start(&scratch, &["--token-auth-file", tokens.to_str().expect("UTF-8")]).await;
    let (admin, client) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    for namespace in ["a", "b"] {
        admin.post("/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await.expect(201);
    }
    let api_service = json!({
        "metadata": { "name": "v1.agg.example.com" },
        "spec": { "group": "agg.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1,
                  "insecureSkipTLSVerify": true, "service": { "namespace": "a", "name": "none" } },
    });
    admin.post("/apis/apiregistration.k8s.io/v1/apiservices", &api_service).await.expect(201);
    let people =
        [("ann", "ann-token", caller("ann", &["dev"])), ("bob", "bob-token", caller("bob", &["ops"]))];
    let (mut allowed, mut refused, mut acted) = (0, 0, 0);
    for round in 0..ROUNDS {
        let random = Random::seeded(3_200 + round);
        let objects = drawn(&random, round);
        for (path, object, _) in &objects {
            admin.post(path, object).await.expect(201);
        }
        let rights = rights(&admin).await;
        for at in 0..REQUESTS {
            let (ask, tried) = request(&random);
            let (name, token, own) = one(&random, &people);
            let mut ask = ask.bearer(token);
            let (mut as_whom, mut may_act) = (own.clone(), true);
            if random.below(5) == 0 {
                let other = *one(&random, &["ann", "eve"]);
                ask = ask.header("impersonate-user", other);
                as_whom = caller(other, &[]);
                let act = Tried { verb: "impersonate", resource: "users", name: other, ..Tried::default() };
                may_act = may(&rights, own, &act);
                acted += usize::from(may_act);
            }
            let shown = format!("round {round}, {at}: {name} {as_whom:?} {tried:?} {ask:?}");
            let (code, text) = answer(&client, ask, &tried).await;
            if !may_act {
                assert!(code == 403 && text.contains("cannot impersonate"), "{shown}: {code} {text}");
                refused += 1;
                continue;
            }
            let cannot = format!("cannot {} ", tried.verb);
            if may(&rights, &as_whom, &tried) {
                assert!(!(code == 403 && text.contains(&cannot)) && code != 401, "{shown}: {code} {text}");
                allowed += 1;
            } else {
                assert!(code == 403 && text.contains(&cannot), "{shown}: {code} {text}");
                refused += 1;
            }
        }
        for (path, object, _) in objects.iter().rev() {
            let name = object["metadata"]["name"].as_str().expect("a name");
            admin.delete(&format!("{path}/{name}")).await.expect(200);
        }
    }
    println!("figure: {allowed} requests were allowed, {refused} refused, {acted} made as somebody else");
    assert!(allowed > 100 && refused > 1_000 && acted > 5, "{allowed} {refused} {acted}");
}

/// As upstream: a watch goes on with the rights that it was opened with, until it ends.
#[tokio::test]
async fn a_right_that_is_taken_ends_no_watch_and_lets_none_begin() {
    let scratch = Scratch::new();
    let tokens = scratch.file("tokens.csv", TOKENS);
    let server = Server::start(&scratch, &["--token-auth-file", tokens.to_str().expect("UTF-8")]).await;
    let (admin, client) = (server.admin().await, server.client(Protocol::Http2, Identity::Nobody).await);
    let (roles, bindings) = (
        format!("/apis/{GROUP}/v1/namespaces/default/roles"),
        format!("/apis/{GROUP}/v1/namespaces/default/rolebindings"),
    );
    let rules = json!([{ "verbs": ["watch"], "apiGroups": [""], "resources": ["configmaps"] }]);
    admin.post(&roles, &json!({ "metadata": { "name": "r" }, "rules": rules })).await.expect(201);
    let bound = json!({
        "metadata": { "name": "r" }, "roleRef": { "apiGroup": GROUP, "kind": "Role", "name": "r" },
        "subjects": [{ "apiGroup": GROUP, "kind": "User", "name": "bob" }],
    });
    admin.post(&bindings, &bound).await.expect(201);
    let maps = "/api/v1/namespaces/default/configmaps";
    let opened = || Ask::get(format!("{maps}?watch=true")).bearer("bob-token");
    let mut watch = client.watch_as(opened()).await;
    admin.delete(&format!("{bindings}/r")).await.expect(200);
    let refused = client.ask(opened()).await.expect(403);
    assert!(said(&refused).contains("cannot watch resource \"configmaps\""), "{refused}");
    admin.post(maps, &json!({ "metadata": { "name": "after" } })).await.expect(201);
    loop {
        let event = watch.event().await;
        if event.object["metadata"]["name"] == "after" {
            assert_eq!(event.kind, "ADDED");
            break;
        }
    }
}
