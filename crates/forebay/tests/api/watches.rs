//! WATCH: lists that are streamed, selectors, where it begins and how it ends.

use serde_json::json;

use crate::common::{Event, Scratch, Server, rv};
use crate::{CONFIG_MAPS, config_map, create};

const WATCH_LIST: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

#[tokio::test]
async fn a_watch_list_ends_with_an_annotated_bookmark() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for name in ["b", "a", "c"] {
        create(&client, name).await;
    }
    let list = client.get(CONFIG_MAPS).await.expect(200);
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?{WATCH_LIST}")).await;
    let initial = watch.events(4).await;
    assert_eq!(shorts(&initial), "ADDED a, ADDED b, ADDED c, BOOKMARK ");
    let bookmark = format!(
        r#"{{"type":"BOOKMARK","object":{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#,
        rv(&list)
    );
    let bookmark: serde_json::Value = serde_json::from_str(&bookmark).expect("JSON");
    assert_eq!(initial[3].object, bookmark["object"]);
    for (event, mut item) in initial.iter().zip(list["items"].as_array().expect("items").clone()) {
        item["kind"] = "ConfigMap".into();
        item["apiVersion"] = "v1".into();
        assert_eq!(event.object, item);
    }
    let next = create(&client, "d").await;
    assert_eq!(watch.event().await.object, next);

    let newest = rv(&next);
    let mut at_least = client.watch(&format!("{CONFIG_MAPS}?{WATCH_LIST}&resourceVersion={newest}")).await;
    let events = at_least.events(5).await;
    assert_eq!(rv(&events[4].object), newest);
    let mut selected =
        client.watch(&format!("{CONFIG_MAPS}?{WATCH_LIST}&fieldSelector=metadata.name=b")).await;
    assert_eq!(shorts(&selected.events(2).await), "ADDED b, BOOKMARK ");
}

#[tokio::test]
async fn a_watch_of_a_selector_sees_objects_come_and_go() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&client.get(CONFIG_MAPS).await.expect(200));
    let path = format!("{CONFIG_MAPS}?watch=true&labelSelector=on=yes&resourceVersion={start}");
    let mut watch = client.watch(&path).await;
    create(&client, "other").await;
    create(&client, "c").await;
    let mut last = 0;
    for on in ["yes", "yes", "no", "yes"] {
        let mut object = config_map("c", &format!("{on}{last}"));
        object["metadata"]["labels"] = json!({"on": on});
        last = rv(&client.put(&format!("{CONFIG_MAPS}/c"), &object).await.expect(200));
    }
    client.delete(&format!("{CONFIG_MAPS}/c")).await.expect(200);
    let events = watch.events(5).await;
    assert_eq!(shorts(&events), "ADDED c, MODIFIED c, DELETED c, ADDED c, DELETED c");
    assert!(events.windows(2).all(|pair| rv(&pair[0].object) < rv(&pair[1].object)));
    // What leaves the selection is shown as it was in it.
    assert_eq!(events[2].object["metadata"]["labels"], json!({"on": "yes"}));
    assert_eq!(rv(&events[3].object), last);
}

#[tokio::test]
async fn a_watch_ends_when_it_was_asked_to() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let start = rv(&create(&client, "c").await);
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}");
    let mut plain = client.watch(&format!("{path}&timeoutSeconds=1")).await;
    let mut short = client.watch(&format!("{path}&timeoutSeconds=1&allowWatchBookmarks=true")).await;
    let mut bookmarked = client.watch(&format!("{path}&timeoutSeconds=3&allowWatchBookmarks=true")).await;
    plain.end().await;
    // The last bookmark is sent two seconds before the end; this one had no time for it.
    short.end().await;
    let bookmark = bookmarked.event().await;
    assert_eq!((bookmark.kind.as_str(), rv(&bookmark.object)), ("BOOKMARK", start));
    bookmarked.end().await;
}

fn shorts(events: &[Event]) -> String {
    events.iter().map(Event::short).collect::<Vec<_>>().join(", ")
}
