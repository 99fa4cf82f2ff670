//! Events are not kept for ever.

mod common;

use common::{Scratch, Server, rv, text};
use serde_json::json;

#[tokio::test]
async fn an_event_that_is_over_is_deleted_and_its_watchers_are_told() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--event-ttl=1s"]).await;
    let client = server.admin().await;
    let path = "/api/v1/namespaces/default/events";
    let new = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Started", "type": "Normal",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    });
    let start = rv(&client.get(path).await.expect(200));
    let mut watch = client.watch(&format!("{path}?watch=true&resourceVersion={start}")).await;
    let of_group = "/apis/events.k8s.io/v1/namespaces/default/events";
    let mut other = client.watch(&format!("{of_group}?watch=true&resourceVersion={start}")).await;
    let created = client.post(path, &new).await.expect(201);

    let seen = watch.events(2).await;
    assert_eq!((seen[0].short(), seen[1].short()), ("ADDED e".to_owned(), "DELETED e".to_owned()));
    assert_eq!(seen[0].object, created);
    // The object as it was, at the revision at which it went.
    assert!(rv(&seen[1].object) > rv(&created));
    assert_eq!(text(&seen[1].object, "/metadata/uid"), text(&created, "/metadata/uid"));
    assert_eq!(text(&seen[1].object, "/reason"), "Started");
    let seen = other.events(2).await;
    assert_eq!((seen[0].short(), seen[1].short()), ("ADDED e".to_owned(), "DELETED e".to_owned()));
    assert_eq!(text(&seen[1].object, "/apiVersion"), "events.k8s.io/v1");

    assert_eq!(client.get(&format!("{path}/e")).await.code, 404);
    // Others stay.
    client.get("/api/v1/namespaces/default").await.expect(200);
}
