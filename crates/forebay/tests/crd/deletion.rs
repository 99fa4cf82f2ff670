//! The end of a definition: its objects go, their watchers are told, and the name is free again.

use serde_json::json;

use crate::common::{Ask, Protocol, Scratch, Server, names, rv, said, text};
use crate::{CRD, CRDS, MERGE, WIDGETS, condition, create, define, widget};

#[tokio::test]
async fn watchers_see_every_object_go_and_then_the_end() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let start = rv(&client.get(WIDGETS).await.expect(200));
    let mut watches = Vec::new();
    for protocol in Protocol::BOTH {
        let client = server.admin_over(protocol).await;
        watches.push(client.watch(&format!("{WIDGETS}?watch=true&resourceVersion={start}")).await);
    }
    for name in ["a", "b"] {
        create(&client, name, "red").await;
    }
    let definition = client.get(CRD).await.expect(200);
    let path = format!("{CRDS}?watch=true&resourceVersion={}", rv(&definition));
    let mut definitions = client.watch(&path).await;
    let terminating = client.delete(CRD).await.expect(200);
    assert!(!text(&terminating, "/metadata/deletionTimestamp").is_empty());
    for watch in &mut watches {
        let mut seen: Vec<String> = watch.events(4).await.iter().map(|event| event.short()).collect();
        seen[2..].sort();
        assert_eq!(seen, ["ADDED a", "ADDED b", "DELETED a", "DELETED b"]);
        watch.end().await;
    }
    while definitions.event().await.kind != "DELETED" {}
    assert_eq!(client.get(WIDGETS).await.code, 404);
    assert_eq!(client.get("/apis/example.com/v1").await.code, 404);
    assert_eq!(client.get(CRD).await.code, 404);

    let again = define(&client).await;
    assert_ne!(again["metadata"]["uid"], definition["metadata"]["uid"]);
    assert!(names(&client.get(WIDGETS).await.expect(200)).is_empty());
    let object = create(&client, "a", "blue").await;
    // The history of the former objects is not that of the new ones.
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.event().await.object, object);
}

#[tokio::test]
async fn a_finalizer_of_an_object_holds_its_definition() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let mut held = widget("held", json!({"color": "red"}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    client.post(WIDGETS, &held).await.expect(201);
    let free = widget("free", json!({"color": "red"}));
    // Other objects are written meanwhile, such as the APIService of the new version.
    let start = rv(&client.post(WIDGETS, &free).await.expect(201));
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true&resourceVersion={start}")).await;
    client.delete(CRD).await.expect(200);
    let mut seen: Vec<String> = watch.events(2).await.iter().map(|event| event.short()).collect();
    seen.sort();
    assert_eq!(seen, ["DELETED free", "MODIFIED held"]);
    let known = client.get(CRD).await.expect(200);
    assert_eq!(condition(&known, "Terminating"), "True");
    let refused = client.post(WIDGETS, &widget("new", json!({"color": "red"}))).await.expect(403);
    assert_eq!(
        said(&refused),
        "403 Forbidden: widgets.example.com \"new\" is forbidden: create not allowed while custom resource definition is terminating"
    );
    let mut definitions = client.watch(&format!("{CRDS}?watch=true&resourceVersion={}", rv(&known))).await;
    let patch = Ask::patch(format!("{WIDGETS}/held"), MERGE, r#"{"metadata":{"finalizers":null}}"#);
    client.ask(patch).await.expect(200);
    assert_eq!(watch.event().await.short(), "DELETED held");
    watch.end().await;
    while definitions.event().await.kind != "DELETED" {}
    define(&client).await;
    create(&client, "new", "red").await;
}
