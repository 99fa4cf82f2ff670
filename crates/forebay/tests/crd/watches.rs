//! What a change of a definition does to the watches of its objects: those that can go on do, and what has to
//! end ends one after the other (kubernetes#74105, #123074).

use std::time::Duration;

use forebay_rt::Clock;
use serde_json::{Value, json};

use crate::common::{Ask, Client, Scratch, Server, rv};
use crate::{CRD, MERGE, WIDGETS, create, define};

/// Watches that end because of one definition, in a second.
const ENDS_PER_SECOND: u32 = 200;

async fn change(client: &Client, pointer: &str, value: Value) {
    let patch = json!([{"op": "add", "path": format!("/spec/versions/0/{pointer}"), "value": value}]);
    client.ask(Ask::patch(CRD, "application/json-patch+json", patch.to_string())).await.expect(200);
}

fn path(start: u64, more: &str) -> String {
    format!("{WIDGETS}?watch=true&resourceVersion={start}{more}")
}

#[tokio::test]
async fn another_selectable_field_ends_no_watch_and_selects_what_was_there() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&define(&client).await);
    let mut all = client.watch(&path(start, "")).await;
    let mut red = client.watch(&path(start, "&fieldSelector=spec.color%3Dred")).await;
    let before = create(&client, "a", "red").await;
    assert_eq!(all.event().await.object, before);
    assert_eq!(red.event().await.object, before);

    let fields = json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.inner.mode"}]);
    change(&client, "selectableFields", fields).await;
    let listed = client.get(&format!("{WIDGETS}?fieldSelector=spec.inner.mode%3Dauto")).await.expect(200);
    assert_eq!(listed["items"][0]["metadata"], before["metadata"]);
    // A client that comes back finds its place.
    let mut resumed = client.watch(&path(start, "&fieldSelector=spec.inner.mode%3Dauto")).await;
    assert_eq!(resumed.event().await.object["metadata"], before["metadata"]);
    let after = create(&client, "b", "red").await;
    for watch in [&mut all, &mut red, &mut resumed] {
        assert_eq!(watch.event().await.object, after);
    }
}

#[tokio::test]
async fn a_selectable_field_that_is_removed_ends_the_watches_that_select_by_it() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&define(&client).await);
    let mut all = client.watch(&path(start, "")).await;
    let mut named = client.watch(&path(start, "&fieldSelector=metadata.name%3Da")).await;
    let mut red = client.watch(&path(start, "&fieldSelector=spec.color%3Dred")).await;
    change(&client, "selectableFields", json!([])).await;
    red.end().await;
    assert_eq!(client.get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dred")).await.code, 400);
    let object = create(&client, "a", "red").await;
    for watch in [&mut all, &mut named] {
        assert_eq!(watch.event().await.object, object);
    }
}

#[tokio::test]
async fn other_columns_end_the_watches_that_show_tables() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&define(&client).await);
    let mut objects = client.watch(&path(start, "")).await;
    let table = Ask::get(path(start, "")).accept("application/json;as=Table;g=meta.k8s.io;v=v1");
    let mut tables = client.watch_as(table).await;
    let before = create(&client, "a", "red").await;
    assert_eq!(objects.event().await.object, before);
    assert_eq!(tables.event().await.object["rows"][0]["cells"][1], "red");
    change(
        &client,
        "additionalPrinterColumns",
        json!([{"name": "Free", "type": "string", "jsonPath": ".spec.free"}]),
    )
    .await;
    tables.end().await;
    let after = create(&client, "b", "red").await;
    assert_eq!(objects.event().await.object, after);
}

#[tokio::test]
async fn a_definition_that_is_deleted_and_made_again_ends_its_watches_at_a_limited_rate() {
    const WATCHES: u32 = 100;
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&define(&client).await);
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        watches.push(client.watch(&path(start, "")).await);
    }
    let object = create(&client, "a", "red").await;
    let patch = Ask::patch(format!("{WIDGETS}/a"), MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#);
    client.ask(patch).await.expect(200);
    let clock = Clock::system();
    let begun = clock.now();
    client.delete(CRD).await.expect(200);
    for watch in &mut watches {
        let seen: Vec<String> = watch.events(3).await.iter().map(|event| event.short()).collect();
        assert_eq!(seen, ["ADDED a", "MODIFIED a", "DELETED a"]);
    }
    for watch in &mut watches {
        watch.end().await;
    }
    let took = clock.now() - begun;
    let least = Duration::from_secs(1) * (WATCHES - 1) / ENDS_PER_SECOND;
    assert!(took >= least, "{took:?}");

    define(&client).await;
    let again = create(&client, "a", "blue").await;
    assert_ne!(again["metadata"]["uid"], object["metadata"]["uid"]);
}
