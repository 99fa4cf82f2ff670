//! Objects in versions that a webhook makes, by ours and by kube-apiserver: the same requests, the same
//! webhook, the same answers.
//!
//! In: nothing. Out: every difference.

use forebay_clients::needs;
use forebay_conformance::normal::{Chosen, normal};
use forebay_conformance::pair::{RawAnswer, Request};
use forebay_conformance::{Answer, Pair, Peer};
use forebay_hook::{Hook, tabs};
use futures_util::StreamExt as _;
use http::Method;
use serde_json::{Value, json};

/// How often it is looked whether a definition is served; a look takes half a millisecond.
const LOOKS_MAX: usize = 20_000;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

struct World {
    pair: Pair,
    hook: Hook,
    different: Vec<String>,
    asked: usize,
}

impl World {
    fn answers(&self, how: &str) {
        self.hook.answers("answer", json!({ "convert": how }));
    }

    /// Asks both, and compares.
    ///
    /// - `path`: behind `/apis/example.com/`.
    async fn ask(&mut self, method: Method, path: &str, content_type: &'static str, body: Value) {
        self.ask_accepting(method, path, JSON, (content_type, body)).await;
    }

    async fn ask_accepting(
        &mut self,
        method: Method,
        path: &str,
        accept: &str,
        (content_type, body): (&'static str, Value),
    ) {
        let mut request = Request::new(method, format!("/apis/example.com/{path}"));
        request.content_type = content_type;
        if !body.is_null() {
            request.body = body.to_string().into_bytes();
        }
        let (ours, theirs) = (&self.pair.ours, &self.pair.theirs);
        let ours = normalized(ours.ask(&request, accept).await.expect("an answer"));
        let theirs = normalized(theirs.ask(&request, accept).await.expect("an answer"));
        self.asked += 1;
        if ours != theirs {
            let what = format!("{} {path} {body}", request.method);
            self.different.push(format!("{what}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }

    async fn get(&mut self, path: &str) {
        self.ask(Method::GET, path, JSON, Value::Null).await;
    }
}

fn normalized(RawAnswer { code, warnings, body }: RawAnswer) -> Answer {
    let mut body = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    // Each has its own second.
    if let Some(deleted) = body.pointer_mut("/metadata/deletionTimestamp") {
        *deleted = "<now>".into();
    }
    let chosen = Chosen::of(&body);
    normal(Answer { code, warnings, body }, &chosen)
}

/// Waits until both versions are served.
async fn served(peer: &Peer) {
    for version in ["v1", "v2"] {
        let path = format!("/apis/example.com/{version}/namespaces/default/tabs");
        for look in 0.. {
            assert!(look < LOOKS_MAX, "{version} is not served");
            if peer.send(Method::GET, &path, None).await.is_ok_and(|answer| answer.code == 200) {
                break;
            }
        }
    }
}

fn tab(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Tab", "metadata": { "name": name }, "spec": spec,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversions_are_as_by_kube_apiserver() {
    if !needs::peers_or_skip() {
        return;
    }
    let (pair, hook) = (Pair::start().await.expect("both servers"), Hook::start().await);
    let mut world = World { pair, hook, different: Vec::new(), asked: 0 };
    world.answers("rightly");
    let definition = tabs::definition(&format!("{}/c/answer", world.hook.url()), &world.hook.authority);
    for peer in [&world.pair.ours, &world.pair.theirs] {
        let made = peer.send(Method::POST, CRDS, Some(&definition)).await.expect("an answer");
        assert_eq!(made.code, 201, "{:?}", made.body);
        served(peer).await;
    }
    verbs(&mut world).await;
    owners(&mut world).await;
    faults(&mut world).await;
    ends(&mut world).await;
    let World { different, asked, .. } = world;
    println!("figure: conversions: {asked} answers, {} differ", different.len());
    assert!(different.is_empty(), "{} of {asked} answers differ:\n{}", different.len(), different.join("\n"));
}

async fn verbs(world: &mut World) {
    let (v1, v2) = ("v1/namespaces/default/tabs", "v2/namespaces/default/tabs");
    world.ask(Method::POST, v1, JSON, tab("v1", "a", json!({ "hostPort": "h:1" }))).await;
    world.get(&format!("{v2}/a")).await;
    world.ask(Method::POST, v2, JSON, tab("v2", "b", json!({ "host": "i", "port": "2", "extra": 1 }))).await;
    world.get(&format!("{v1}/b")).await;
    world.get(&format!("{v2}/b")).await;
    for path in [v2, v1] {
        world.get(path).await;
    }
    world.get(&format!("{v2}?fieldSelector=spec.host%3Di")).await;
    world.ask(Method::PUT, &format!("{v2}/b"), JSON, tab("v2", "b", json!({ "host": "j" }))).await;
    world.ask(Method::PATCH, &format!("{v2}/b"), MERGE, json!({ "spec": { "host": "j" } })).await;
    world.get(&format!("{v1}/b")).await;
    world.ask(Method::PATCH, &format!("{v2}/b"), MERGE, json!({ "spec": { "host": 5 } })).await;
    world
        .ask(Method::PATCH, &format!("{v2}/b"), MERGE, json!({ "metadata": { "labels": { "l": "m" } } }))
        .await;
    let status = json!({ "status": { "phase": "up", "replicas": 2 }, "spec": { "host": "ignored" } });
    world.ask(Method::PATCH, &format!("{v2}/b/status"), MERGE, status).await;
    world.get(&format!("{v1}/b/status")).await;
    world.get(&format!("{v2}/b/scale")).await;
    world.ask(Method::PATCH, &format!("{v2}/b/scale"), MERGE, json!({ "spec": { "replicas": 4 } })).await;
    world.get(&format!("{v1}/b/scale")).await;
    world.get(&format!("{v1}/b")).await;
    let dry = tab("v2", "c", json!({ "host": "k", "port": "4" }));
    world.ask(Method::POST, &format!("{v2}?dryRun=All"), JSON, dry).await;
    let strict = tab("v2", "c", json!({ "host": "k", "hostPort": "k:4" }));
    world.ask(Method::POST, &format!("{v2}?fieldValidation=Strict"), JSON, strict).await;
    world.ask(Method::POST, v2, JSON, tab("v2", "a", json!({}))).await;
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    world.ask_accepting(Method::GET, &format!("{v2}/b"), partial, (JSON, Value::Null)).await;
    world.answers("labels");
    world.ask(Method::PATCH, &format!("{v2}/a"), MERGE, json!({ "spec": { "port": "9" } })).await;
    world.get(&format!("{v1}/a")).await;
    world.get(&format!("{v2}/a")).await;
    world.answers("metadata");
    world.ask(Method::PATCH, &format!("{v2}/a"), MERGE, json!({ "spec": { "port": "8" } })).await;
    world.answers("rightly");
}

/// Whose fields are whose across versions.
async fn owners(world: &mut World) {
    let path = |version: &str, manager: &str, more: &str| {
        format!("{version}/namespaces/default/tabs/o?fieldManager={manager}{more}")
    };
    let v1 = |spec| tab("v1", "o", spec);
    let v2 = |spec| tab("v2", "o", spec);
    world.ask(Method::PATCH, &path("v1", "one", ""), APPLY, v1(json!({ "hostPort": "h:1" }))).await;
    let two = json!({ "host": "h", "port": "1", "replicas": 2 });
    world.ask(Method::PATCH, &path("v2", "two", ""), APPLY, v2(two)).await;
    let other = json!({ "host": "other", "port": "1" });
    world.ask(Method::PATCH, &path("v2", "two", ""), APPLY, v2(other.clone())).await;
    world.ask(Method::PATCH, &path("v2", "two", "&force=true"), APPLY, v2(other)).await;
    world.get("v1/namespaces/default/tabs/o").await;
    world.ask(Method::PATCH, &path("v2", "three", ""), MERGE, json!({ "spec": { "port": "7" } })).await;
    world.ask(Method::PATCH, &path("v1", "four", ""), MERGE, json!({ "spec": { "mode": "manual" } })).await;
    world.ask(Method::PATCH, &path("v2", "two", ""), APPLY, v2(json!({ "replicas": 3 }))).await;
    world.get("v1/namespaces/default/tabs/o").await;
    world.get("v2/namespaces/default/tabs/o").await;
}

/// Each with an object that nobody has converted yet.
async fn faults(world: &mut World) {
    let (v1, v2) = ("v1/namespaces/default/tabs", "v2/namespaces/default/tabs");
    for how in [
        "rename",
        "namespace",
        "uid",
        "kind",
        "version",
        "bare",
        "number",
        "label",
        "fewer",
        "more",
        "refuse",
        "silent",
    ] {
        world.answers(how);
        world.ask(Method::POST, v1, JSON, tab("v1", "f", json!({ "hostPort": "h:1" }))).await;
        world.get(&format!("{v2}/f")).await;
        world.ask(Method::POST, v2, JSON, tab("v2", "new", json!({ "host": "h", "port": "1" }))).await;
        world.ask(Method::PATCH, &format!("{v2}/f"), MERGE, json!({ "spec": { "port": "7" } })).await;
        world.ask(Method::DELETE, &format!("{v2}/f"), JSON, Value::Null).await;
        world.ask(Method::DELETE, &format!("{v1}/f"), JSON, Value::Null).await;
    }
    let review = |response: &str| {
        let head = r#""kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1""#;
        json!({ "raw": format!("{{{head},\"response\":{response}}}") })
    };
    let of_objects = |objects: &str| {
        review(&format!(r#"{{"uid":"$UID","result":{{"status":"Success"}},"convertedObjects":{objects}}}"#))
    };
    let later = |number: u64| json!({ "code": number, "raw": "later", "head": ["Retry-After: 0\r\n"], "then": "right" });
    world.hook.answers("right", json!({ "convert": "rightly" }));
    for answer in [
        json!({ "raw": "" }),
        json!({ "raw": "nope" }),
        json!({ "raw": "{\"response\":" }),
        json!({ "raw": "[]" }),
        json!({ "raw": r#"{"kind":"Odd","apiVersion":"apiextensions.k8s.io/v1"}"# }),
        json!({ "raw": r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1"}"# }),
        json!({ "raw": r#"{"kind":"ConversionReview","apiVersion":"example.com/v1"}"# }),
        json!({ "raw": r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m"}"# }),
        json!({ "code": 500, "raw": r#"{"kind":"Status","status":"Failure","message":"m","code":418}"# }),
        json!({ "code": 503, "raw": "" }),
        json!({ "code": 307, "location": "/c/right", "raw": "" }),
        json!({ "code": 302, "location": "/c/right", "raw": "" }),
        later(429),
        later(503),
        review("[]"),
        review(r#"{"uid":5}"#),
        review(r#"{"uid":"$UID","result":"Success"}"#),
        review(r#"{"uid":"$UID","result":{"status":"Success","code":"0"}}"#),
        of_objects("{}"),
        of_objects("null"),
        of_objects("[null]"),
        of_objects("[5]"),
        of_objects("[[]]"),
        of_objects(r#"[{"kind":5}]"#),
        of_objects(r#"[{"kind":"Tab","apiVersion":"example.com/v2","metadata":5}]"#),
        of_objects(r#"[{"kind":"Tab","apiVersion":"example.com/v2"}]"#),
        json!({ "convert": "rightly", "length": 20_000 }),
        json!({ "code": 500, "raw": "no" }),
        json!({ "code": 404, "raw": "{}" }),
        json!({ "raw": "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\"}" }),
    ] {
        world.hook.answers("answer", answer);
        world.ask(Method::POST, v1, JSON, tab("v1", "f", json!({ "hostPort": "h:1" }))).await;
        world.get(&format!("{v2}/f")).await;
        world.ask(Method::DELETE, &format!("{v1}/f"), JSON, Value::Null).await;
    }
    world.answers("rightly");
    world.get("v1/namespaces/default/tabs/a").await;
}

async fn ends(world: &mut World) {
    let v2 = "v2/namespaces/default/tabs";
    world.ask(Method::DELETE, &format!("{v2}/b"), JSON, Value::Null).await;
    world.ask(Method::DELETE, &format!("{v2}/b"), JSON, Value::Null).await;
    let held = json!({ "metadata": { "finalizers": ["example.com/held"] } });
    world.ask(Method::PATCH, &format!("{v2}/a"), MERGE, held).await;
    world.ask(Method::DELETE, &format!("{v2}/a"), JSON, Value::Null).await;
    world.ask(Method::PATCH, &format!("{v2}/a"), MERGE, json!({ "metadata": { "finalizers": null } })).await;
    world.get(&format!("{v2}/a")).await;
    world.ask(Method::DELETE, v2, JSON, Value::Null).await;
    world.get("v1/namespaces/default/tabs").await;
}

/// Objects of the figures in a run that nobody asked more of (`FOREBAY_CONVERSION_OBJECTS`).
const OBJECTS: usize = 200;

/// What a LIST in another version costs either server, cold and warm, and how often the webhook is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_in_another_version_is_the_same_and_asks_less() {
    if !needs::peers_or_skip() {
        return;
    }
    let asked = std::env::var("FOREBAY_CONVERSION_OBJECTS").unwrap_or_default();
    let count: usize = if asked.is_empty() { OBJECTS } else { asked.parse().expect("a number") };
    let pair = Pair::start().await.expect("both servers");
    let mut lists = Vec::new();
    for (name, peer) in [("ours", &pair.ours), ("theirs", &pair.theirs)] {
        let hook = Hook::start().await;
        hook.answers("answer", json!({ "convert": "rightly" }));
        let definition = tabs::definition(&format!("{}/c/answer", hook.url()), &hook.authority);
        let made = peer.send(Method::POST, CRDS, Some(&definition)).await.expect("an answer");
        assert_eq!(made.code, 201, "{:?}", made.body);
        served(peer).await;
        let (v1, v2) = (path("v1"), path("v2"));
        let objects = futures_util::stream::iter((0..count).map(|n| {
            let tab = tab("v1", &format!("t-{n:06}"), json!({ "hostPort": "h:1", "mode": "x".repeat(500) }));
            let v1 = &v1;
            async move { peer.send(Method::POST, v1, Some(&tab)).await.expect("an answer").code }
        }));
        let codes: Vec<u16> = objects.buffer_unordered(8).collect().await;
        assert!(codes.iter().all(|code| *code == 201));
        let calls_before = hook.asked().len();
        let mut calls = Vec::new();
        for _ in 0..3 {
            let before = used(peer);
            let list = peer.send(Method::GET, &v2, None).await.expect("an answer");
            let items = list.body["items"].as_array().map_or(0, Vec::len);
            assert_eq!((list.code, items), (200, count), "{name}");
            calls.push(hook.asked().len());
            let after = used(peer);
            println!(
                "figure: {name}: LIST of {count} in v2: {} calls, {} ms of CPU, {} KiB resident",
                calls[calls.len() - 1],
                after.0 - before.0,
                after.1
            );
            let items = list.body["items"].as_array().expect("items").iter();
            lists.push(items.map(|item| item["spec"].clone()).collect::<Vec<_>>());
        }
        println!("figure: {name}: {calls_before} calls before the first LIST");
        if name == "ours" {
            assert!(calls[0] <= count.div_ceil(100) && calls[1..] == [0, 0], "{calls:?}");
        }
    }
    assert!(lists.iter().all(|list| *list == lists[0]));
}

fn path(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/tabs")
}

/// What the processes of a server that are told its directory have used: milliseconds of CPU, KiB of
/// memory now; without the rival's etcd.
fn used(peer: &Peer) -> (u64, u64) {
    let dir = peer.server.dir().to_string_lossy().into_owned();
    let (mut cpu, mut resident) = (0, 0);
    for process in std::fs::read_dir("/proc").expect("processes").flatten() {
        let read = |name: &str| std::fs::read_to_string(process.path().join(name)).unwrap_or_default();
        let command = read("cmdline");
        let is_server = command.split('\0').next().is_some_and(|program| !program.ends_with("etcd"));
        if !is_server || !command.contains(&dir) {
            continue;
        }
        let stat = read("stat");
        // Behind the name, which may have spaces: user and system time in hundredths of a second.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        cpu += 10 * (ticks(11) + ticks(12));
        let line = read("status").lines().find(|line| line.starts_with("VmRSS")).map(String::from);
        let kib =
            line.and_then(|line| line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()));
        resident += kib.unwrap_or(0);
    }
    (cpu, resident)
}
