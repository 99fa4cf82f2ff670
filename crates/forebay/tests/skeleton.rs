//! One PUT and one WATCH through every room, from the socket to the disk and back.

mod common;

use common::{Client, Protocol, Scratch, Server, blanked, rv, text};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn what_is_written_is_watched_over_http1() {
    check(Protocol::Http1).await;
}

#[tokio::test]
async fn what_is_written_is_watched_over_http2() {
    check(Protocol::Http2).await;
}

async fn check(protocol: Protocol) {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin_over(protocol).await;
    let start = list(&client).await;
    let mut watch = client.watch(&format!("{PATH}?watch=true&resourceVersion={start}")).await;

    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}});
    let created = client.post(PATH, &new).await;
    let object = created.expect(201);
    assert_eq!(created.header("content-type"), "application/json");
    assert_eq!(blanked(created.text(), &object), shape("v"));
    assert!(rv(&object) > start);
    assert_eq!(watch.event().await.line, event("ADDED", created.text()));

    let mut changed = object.clone();
    changed["data"]["k"] = "w".into();
    let updated = client.put(&format!("{PATH}/c"), &changed).await;
    let after = updated.expect(200);
    assert_eq!(blanked(updated.text(), &after), shape("w"));
    assert!(rv(&after) > rv(&object));
    assert_eq!(after["metadata"]["uid"], object["metadata"]["uid"]);
    assert_eq!(after["metadata"]["creationTimestamp"], object["metadata"]["creationTimestamp"]);
    assert_eq!(client.get(&format!("{PATH}/c")).await.text(), updated.text());
    assert_eq!(watch.event().await.line, event("MODIFIED", updated.text()));

    let deleted = client.delete(&format!("{PATH}/c")).await.expect(200);
    let details = json!({"name": "c", "kind": "configmaps", "uid": text(&object, "/metadata/uid")});
    let want = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    assert_eq!(deleted, want);
    // The object as it was, at the revision at which it went.
    let last = watch.event().await;
    assert_eq!(rv(&last.object), list(&client).await);
    assert!(rv(&last.object) > rv(&after));
    let was = updated.text().replace(&quoted_rv(&after), &quoted_rv(&last.object));
    assert_eq!(last.line, event("DELETED", &was));
}

/// Lists nothing, and says at which revision.
async fn list(client: &Client) -> u64 {
    let reply = client.get(PATH).await;
    let list = reply.expect(200);
    let want = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"RV"},"items":[]}"#;
    assert_eq!(blanked(reply.text(), &list), format!("{want}\n"));
    rv(&list)
}

/// What the object looks like on the wire.
fn shape(data: &str) -> String {
    let managed = r#"[{"manager":"unknown","operation":"Update","apiVersion":"v1","time":"TIME","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]"#;
    let metadata = format!(
        r#"{{"name":"c","namespace":"default","uid":"UID","resourceVersion":"RV","creationTimestamp":"TIME","managedFields":{managed}}}"#
    );
    format!(
        "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{metadata},\"data\":{{\"k\":\"{data}\"}}}}\n"
    )
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{}}}", object.trim_end())
}

fn quoted_rv(object: &Value) -> String {
    format!("\"{}\"", rv(object))
}
