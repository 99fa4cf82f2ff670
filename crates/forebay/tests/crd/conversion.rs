//! Objects in versions that a webhook makes: each verb, how often it is asked, and what comes of its faults.

use serde_json::{Value, json};

use crate::common::{Ask, Client, Hook, Scratch, Server, Watch, names, rv, said, tabs, text};
use crate::{CRDS, MERGE};

const V1: &str = "/apis/example.com/v1/namespaces/default/tabs";
const V2: &str = "/apis/example.com/v2/namespaces/default/tabs";
const TABS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tabs.example.com";
const APPLY: &str = "application/apply-patch+yaml";

/// A server with the definition of tabs, and their webhook, which answers rightly.
struct World {
    _scratch: Scratch,
    _server: Server,
    client: Client,
    hook: Hook,
}

impl World {
    async fn new() -> World {
        let scratch = Scratch::new();
        let server = Server::start(&scratch, &[]).await;
        let (client, hook) = (server.admin().await, Hook::start().await);
        hook.answers("answer", json!({ "convert": "rightly" }));
        let definition = tabs::definition(&format!("{}/c/answer", hook.url()), &hook.authority);
        client.post(CRDS, &definition).await.expect(201);
        World { _scratch: scratch, _server: server, client, hook }
    }

    fn answers(&self, how: &str) {
        self.hook.answers("answer", json!({ "convert": how }));
    }

    /// How many objects it was asked about, request by request, since somebody looked last.
    fn asked(&self) -> Vec<usize> {
        let all = self.hook.asked().into_iter();
        all.map(|asked| asked.review["request"]["objects"].as_array().map_or(0, Vec::len)).collect()
    }

    async fn make(&self, name: &str, host_port: &str) -> Value {
        self.client.post(V1, &tab("v1", name, json!({ "hostPort": host_port }))).await.expect(201)
    }
}

fn tab(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Tab", "metadata": { "name": name }, "spec": spec,
    })
}

#[tokio::test]
async fn every_verb_answers_in_the_version_that_is_asked_for() {
    let world = World::new().await;
    let client = &world.client;
    let first = world.make("a", "h:1").await;
    let shown = client.get(&format!("{V2}/a")).await.expect(200);
    assert_eq!(shown["apiVersion"], "example.com/v2");
    assert_eq!(shown["spec"], json!({ "host": "h", "port": "1", "mode": "auto" }));
    assert_eq!(shown["metadata"], first["metadata"]);
    let made = client.post(V2, &tab("v2", "b", json!({ "host": "i", "port": "2" }))).await.expect(201);
    assert_eq!(made["spec"], json!({ "host": "i", "port": "2", "mode": "auto" }));
    assert_eq!(made["apiVersion"], "example.com/v2");
    let stored = client.get(&format!("{V1}/b")).await.expect(200);
    assert_eq!(stored["spec"], json!({ "hostPort": "i:2", "mode": "auto" }));
    let list = client.get(V2).await.expect(200);
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!((&list["items"][0], &list["items"][1]), (&shown, &made));

    let mut changed = made.clone();
    changed["spec"]["port"] = "3".into();
    let put = client.put(&format!("{V2}/b"), &changed).await.expect(200);
    assert_eq!(put["spec"]["port"], "3");
    let patch = Ask::patch(format!("{V2}/b"), MERGE, r#"{"spec":{"host":"j"}}"#);
    assert_eq!(client.ask(patch).await.expect(200)["spec"]["host"], "j");
    assert_eq!(client.get(&format!("{V1}/b")).await.expect(200)["spec"]["hostPort"], "j:3");
    let same = client.get(&format!("{V2}/b")).await.expect(200);
    let again = client.put(&format!("{V2}/b"), &same).await.expect(200);
    assert_eq!(rv(&again), rv(&same), "what stays as it is writes nothing");

    let status = Ask::patch(format!("{V2}/b/status"), MERGE, r#"{"status":{"phase":"up","replicas":2}}"#);
    assert_eq!(client.ask(status).await.expect(200)["status"]["phase"], "up");
    let scale = Ask::patch(format!("{V2}/b/scale"), MERGE, r#"{"spec":{"replicas":4}}"#);
    assert_eq!(client.ask(scale).await.expect(200)["spec"]["replicas"], 4);
    let stored = client.get(&format!("{V1}/b")).await.expect(200);
    assert_eq!((&stored["spec"]["replicas"], &stored["status"]["phase"]), (&json!(4), &json!("up")));
    let another = tab("v2", "c", json!({ "host": "k", "port": "4" }));
    let dry = client.post(&format!("{V2}?dryRun=All"), &another).await.expect(201);
    assert_eq!(dry["spec"]["host"], "k");
    let bad = client.post(V2, &tab("v2", "c", json!({ "host": 5 }))).await;
    assert!(said(&bad.expect(422)).contains("spec.host: Invalid value: \"integer\""));
    client.delete(&format!("{V2}/a")).await.expect(200);
    client.delete(V2).await.expect(200);
    assert!(names(&client.get(V1).await.expect(200)).is_empty());
}

#[tokio::test]
async fn fields_are_owned_across_versions() {
    let world = World::new().await;
    let client = &world.client;
    let apply = async |version: &str, manager: &str, spec: Value| {
        let path = format!("/apis/example.com/{version}/namespaces/default/tabs/a?fieldManager={manager}");
        client.ask(Ask::patch(path, APPLY, tab(version, "a", spec).to_string())).await
    };
    apply("v1", "one", json!({ "hostPort": "h:1" })).await.expect(201);
    apply("v2", "two", json!({ "host": "h", "port": "1", "replicas": 2 })).await.expect(200);
    let conflict = apply("v2", "two", json!({ "host": "other", "port": "1", "replicas": 2 })).await;
    let conflict = said(&conflict.expect(409));
    assert!(conflict.ends_with("conflict with \"one\": .spec.hostPort"), "{conflict}");
    let shown = apply("v2", "two", json!({ "replicas": 3 })).await.expect(200);
    assert_eq!(shown["spec"], json!({ "host": "h", "port": "1", "mode": "auto", "replicas": 3 }));
}

#[tokio::test]
async fn lists_and_watches_select_by_what_is_shown() {
    let world = World::new().await;
    let client = &world.client;
    world.answers("labels");
    world.make("a", "h:1").await;
    world.make("b", "i:1").await;
    let by = async |query: &str| names(&client.get(&format!("{V2}?{query}")).await.expect(200));
    assert_eq!(by("labelSelector=converted%3Dexample.com-v2").await, ["a", "b"]);
    assert!(by("labelSelector=!converted").await.is_empty());
    assert_eq!(by("fieldSelector=spec.host%3Di").await, ["b"]);
    let page = client.get(&format!("{V2}?limit=1")).await.expect(200);
    let next = format!("limit=1&continue={}", text(&page, "/metadata/continue"));
    assert_eq!((names(&page), by(&next).await), (vec!["a".to_owned()], vec!["b".to_owned()]));
    let mut watch = client.watch(&format!("{V2}?watch=true&fieldSelector=spec.host%3Di")).await;
    assert_eq!(text(&watch.event().await.object, "/metadata/name"), "b");
    let patch = Ask::patch(format!("{V1}/a"), MERGE, r#"{"spec":{"hostPort":"i:2"}}"#);
    client.ask(patch).await.expect(200);
    let event = watch.event().await;
    assert_eq!((event.kind.as_str(), &event.object["spec"]["port"]), ("ADDED", &json!("2")));
    client.delete(&format!("{V1}/b")).await.expect(200);
    let event = watch.event().await;
    assert_eq!((event.kind.as_str(), &event.object["spec"]["host"]), ("DELETED", &json!("i")));
    let table = Ask::get(V2).accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = client.ask(table).await.expect(200);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "i"]));
}

#[tokio::test]
async fn an_event_is_converted_once_for_a_hundred_watches() {
    let world = World::new().await;
    let client = &world.client;
    let list = client.get(V2).await.expect(200);
    let mut watches: Vec<Watch> = Vec::new();
    for _ in 0..100 {
        let path = format!("{V2}?watch=true&resourceVersion={}", rv(&list));
        watches.push(client.watch(&path).await);
    }
    assert_eq!(world.asked(), [0_usize; 0]);
    for n in 0..5 {
        world.make(&format!("t-{n}"), "h:1").await;
        for watch in &mut watches {
            let event = watch.event().await;
            assert_eq!(event.object["spec"]["host"], "h");
            assert_eq!(text(&event.object, "/metadata/name"), format!("t-{n}"));
        }
    }
    assert_eq!(world.asked(), [1; 5]);
    // Who begins now finds what was made.
    assert_eq!(names(&client.get(V2).await.expect(200)).len(), 5);
    client.get(&format!("{V2}/t-3")).await.expect(200);
    assert_eq!(world.asked(), [0_usize; 0]);
}

#[tokio::test]
async fn a_list_is_converted_in_batches_and_then_not_again() {
    let world = World::new().await;
    let client = &world.client;
    for n in 0..1_000 {
        world.make(&format!("t-{n:04}"), "h:1").await;
    }
    let list = client.get(V2).await.expect(200);
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1_000));
    assert!(list["items"].as_array().expect("items").iter().all(|tab| tab["spec"]["host"] == "h"));
    let asked = world.asked();
    assert_eq!(asked.iter().sum::<usize>(), 1_000);
    assert!(asked.len() <= 4, "{asked:?}");
    assert_eq!(names(&client.get(V2).await.expect(200)).len(), 1_000);
    assert_eq!(world.asked(), [0_usize; 0]);
}

#[tokio::test]
async fn what_fails_to_convert_fails_lists_and_ends_watches_until_it_is_mended() {
    let world = World::new().await;
    let client = &world.client;
    world.make("a", "h:1").await;
    let list = client.get(V2).await.expect(200);
    let mut watch = client.watch(&format!("{V2}?watch=true&resourceVersion={}", rv(&list))).await;
    world.make("b", "bad").await;
    let why = "conversion webhook for example.com/v1, Kind=Tab failed: \"b\" has a bad hostPort";
    let event = watch.event().await;
    assert_eq!(event.kind, "ERROR");
    assert_eq!((&event.object["code"], text(&event.object, "/message")), (&json!(500), why));
    watch.end().await;
    for path in
        [V2.to_owned(), format!("{V2}?resourceVersion=0"), format!("{V2}/b"), format!("{V2}?watch=true")]
    {
        assert_eq!(text(&client.get(&path).await.expect(500), "/message"), why, "{path}");
    }
    // What is well by itself is well, and so is the version that is stored.
    client.get(&format!("{V2}/a")).await.expect(200);
    assert_eq!(names(&client.get(V1).await.expect(200)), ["a", "b"]);
    let patch = Ask::patch(format!("{V1}/b"), MERGE, r#"{"spec":{"hostPort":"i:2"}}"#);
    client.ask(patch).await.expect(200);
    let list = client.get(V2).await.expect(200);
    assert_eq!(names(&list), ["a", "b"]);
    let mut watch = client.watch(&format!("{V2}?watch=true&resourceVersion={}", rv(&list))).await;
    client.delete(&format!("{V1}/b")).await.expect(200);
    assert_eq!(watch.event().await.kind, "DELETED");
}

#[tokio::test]
async fn watches_of_a_version_end_when_a_webhook_makes_it_from_now_on() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (client, hook) = (server.admin().await, Hook::start().await);
    hook.answers("answer", json!({ "convert": "rightly" }));
    let with_webhook = tabs::definition(&format!("{}/c/answer", hook.url()), &hook.authority);
    let mut without = with_webhook.clone();
    without["spec"].as_object_mut().expect("a spec").remove("conversion");
    client.post(CRDS, &without).await.expect(201);
    let mut watch = client.watch(&format!("{V2}?watch=true")).await;
    let conversion = json!({ "spec": { "conversion": with_webhook["spec"]["conversion"] } });
    client.ask(Ask::patch(TABS, MERGE, conversion.to_string())).await.expect(200);
    // It sent what is stored, in which v2 has no fields.
    watch.end().await;
    client.post(V1, &tab("v1", "a", json!({ "hostPort": "h:1" }))).await.expect(201);
    let mut watch = client.watch(&format!("{V2}?watch=true")).await;
    assert_eq!(watch.event().await.object["spec"], json!({ "host": "h", "port": "1", "mode": "auto" }));
}

#[tokio::test]
async fn an_answer_that_is_wrong_is_refused_by_every_verb() {
    let world = World::new().await;
    let client = &world.client;
    world.make("a", "h:1").await;
    let of = "conversion webhook for example.com/v1, Kind=Tab";
    let same = |word: &str, from: &str| {
        format!("{of} returned invalid object: must have the same {word}: {from} != other")
    };
    for (how, why) in [
        ("rename", same("name", "a")),
        ("namespace", same("namespace", "default")),
        ("fewer", format!("{of} returned 0 objects, expected 1")),
        ("more", format!("{of} returned 2 objects, expected 1")),
        ("refuse", format!("{of} failed: not today")),
        ("silent", format!("{of} failed: response.result.status was 'Failed', not 'Success'")),
        ("bare", same("name", "a").replace("a != other", "a != ")),
        (
            "number",
            format!(
                "{of} returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object"
            ),
        ),
        (
            "large",
            format!(
                "{of} failed: Post \"{}/c/answer\": the answer is longer than 16777216 bytes",
                world.hook.url()
            ),
        ),
    ] {
        world.answers(how);
        for path in [format!("{V2}/a"), V2.to_owned()] {
            assert_eq!(text(&client.get(&path).await.expect(500), "/message"), why, "{how} {path}");
        }
    }
    let of_v2 = of.replace("v1", "v2");
    let reply = client.post(V2, &tab("v2", "b", json!({ "host": "h", "port": "1" }))).await;
    assert!(text(&reply.expect(500), "/message").starts_with(&of_v2));
    world.answers("other");
    assert!(
        text(&client.get(&format!("{V2}/a")).await.expect(500), "/message")
            .contains("expected response.uid=")
    );
    // What only the server writes stays as it was.
    world.answers("metadata");
    let shown = client.get(&format!("{V2}/a")).await.expect(200);
    assert!(shown["metadata"].get("finalizers").is_none());
    assert_eq!(names(&client.get(V1).await.expect(200)), ["a"], "nothing was stored");
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_its_version_alone() {
    let world = World::new().await;
    let client = &world.client;
    world.make("a", "h:1").await;
    world.hook.answers("answer", json!({ "hang": true }));
    let asks = [Ask::get(V2), Ask::get(format!("{V2}/a")), Ask::get(format!("{V2}?watch=true"))];
    let stuck = asks.map(|ask| {
        let client = client.clone();
        tokio::spawn(async move { client.try_ask(ask).await.map(|reply| reply.code) })
    });
    world.hook.was_asked(2).await;
    let made = world.make("b", "i:2").await;
    assert_eq!(names(&client.get(V1).await.expect(200)), ["a", "b"]);
    client.put(&format!("{V1}/b"), &made).await.expect(200);
    client.delete(&format!("{V1}/b")).await.expect(200);
    assert!(stuck.iter().all(|stuck| !stuck.is_finished()));
    stuck.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn what_is_stored_in_another_version_is_migrated_when_it_is_written() {
    let world = World::new().await;
    let client = &world.client;
    world.make("a", "h:1").await;
    let storage = json!([
        { "op": "replace", "path": "/spec/versions/0/storage", "value": false },
        { "op": "replace", "path": "/spec/versions/1/storage", "value": true },
    ]);
    let patch = Ask::patch(TABS, "application/json-patch+json", storage.to_string());
    let definition = client.ask(patch).await.expect(200);
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    let shown = client.get(&format!("{V2}/a")).await.expect(200);
    assert_eq!(shown["spec"]["host"], "h");
    assert_eq!(client.get(V2).await.expect(200)["items"][0], shown);
    assert!(!world.asked().is_empty(), "it is stored in v1 yet");
    // The same, written again, is stored in the version that is stored now.
    let moved = client.put(&format!("{V2}/a"), &shown).await.expect(200);
    assert!(rv(&moved) > rv(&shown) && moved["spec"] == shown["spec"]);
    let patch = Ask::patch(format!("{TABS}/status"), MERGE, r#"{"status":{"storedVersions":["v2"]}}"#);
    client.ask(patch).await.expect(200);
    world.hook.asked();
    assert_eq!(client.get(&format!("{V2}/a")).await.expect(200), moved);
    assert_eq!(client.get(V2).await.expect(200)["items"][0], moved);
    assert_eq!(world.asked(), [0_usize; 0], "all is in v2");
    assert_eq!(client.get(&format!("{V1}/a")).await.expect(200)["spec"]["hostPort"], "h:1");
}
