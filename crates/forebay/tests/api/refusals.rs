//! What is refused, and the words for it.

use http::Method;
use serde_json::{Value, json};

use crate::common::{Ask, Protocol, Scratch, Server, said, text};
use crate::protobuf::PROTOBUF;
use crate::{CONFIG_MAPS, config_map, create};

const BODY_MAX: usize = 3 << 20;

#[tokio::test]
async fn what_is_not_there_or_not_possible_is_said_in_kube_apiservers_words() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let post = |path: &str, kind: &str| Ask::new(Method::POST, path).body(kind, "x");
    let no_resource = "404 NotFound: the server could not find the requested resource";
    let no_method = "405 MethodNotAllowed: the server does not allow this method on the requested resource";
    let patch = |kind: &str| Ask::patch(format!("{CONFIG_MAPS}/c"), kind, "{}");
    let rows = [
        (Ask::get("/api/v2"), no_resource),
        (Ask::get("/api/v1/things"), no_resource),
        (Ask::get(format!("{CONFIG_MAPS}/c/status")), no_resource),
        (Ask::get(format!("{CONFIG_MAPS}/c")), r#"404 NotFound: configmaps "c" not found"#),
        (Ask::delete(format!("{CONFIG_MAPS}/c")), r#"404 NotFound: configmaps "c" not found"#),
        (
            Ask::post("/api/v1/namespaces/none/configmaps", &config_map("c", "v")),
            r#"404 NotFound: namespaces "none" not found"#,
        ),
        (Ask::put(CONFIG_MAPS, &json!({})), no_method),
        (Ask::post("/api/v1/configmaps", &json!({})), no_method),
        (Ask::delete("/api/v1/namespaces"), no_method),
        (
            Ask::get(CONFIG_MAPS).accept("text/html"),
            "406 NotAcceptable: 406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        ),
        (
            post(CONFIG_MAPS, "text/plain"),
            "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
    ];
    for (ask, want) in rows {
        let reply = client.ask(ask.clone()).await;
        assert_eq!(said(&reply.json()), want, "{ask:?}");
        assert_eq!(reply.code, want[..3].parse::<u16>().expect("a code"), "{ask:?}");
    }
    let said = said(&client.ask(patch("application/apply-patch+cbor")).await.expect(415));
    assert!(said.ends_with("application/strategic-merge-patch+json, application/apply-patch+yaml"), "{said}");
    assert_eq!(client.ask(Ask::new(Method::HEAD, CONFIG_MAPS)).await.code, 405);
}

#[tokio::test]
async fn details_name_what_it_is_about() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let reply = client.get("/apis/apps/v1/namespaces/default/deployments/d").await;
    let want = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"d\" not found","reason":"NotFound","details":{"name":"d","group":"apps","kind":"deployments"},"code":404}"#;
    assert_eq!(reply.text(), format!("{want}\n"));
}

#[tokio::test]
async fn a_body_of_three_mebibytes_is_the_largest() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    for protocol in Protocol::BOTH {
        let client = server.admin_over(protocol).await;
        let body = |bytes: usize| {
            let mut body = config_map("c", "v").to_string().into_bytes();
            body.resize(bytes, b' ');
            Ask::new(Method::POST, format!("{CONFIG_MAPS}?dryRun=All")).body("application/json", body)
        };
        client.ask(body(BODY_MAX)).await.expect(201);
        let refused = client.ask(body(BODY_MAX + 1)).await.expect(413);
        assert_eq!(
            said(&refused),
            "413 RequestEntityTooLarge: Request entity too large: limit is 3145728",
            "{protocol:?}"
        );
    }
}

#[tokio::test]
async fn what_conflicts_changes_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let path = format!("{CONFIG_MAPS}/c");
    let first = create(&client, "c").await;
    let again = client.post(CONFIG_MAPS, &config_map("c", "w")).await.expect(409);
    assert_eq!(said(&again), r#"409 AlreadyExists: configmaps "c" already exists"#);
    let mut changed = first.clone();
    changed["data"]["k"] = "w".into();
    let second = client.put(&path, &changed).await.expect(200);

    let modified = r#"409 Conflict: Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to the latest version and try again"#;
    changed["data"]["k"] = "x".into();
    let stale = client.put(&path, &changed).await.expect(409);
    assert_eq!(said(&stale), modified);
    assert_eq!(stale["details"], json!({"name": "c", "kind": "configmaps"}));
    let patch = json!({"metadata": {"resourceVersion": text(&first, "/metadata/resourceVersion")}, "data": {"k": "x"}});
    let patched = client.ask(Ask::patch(&path, "application/merge-patch+json", patch.to_string())).await;
    assert_eq!(said(&patched.expect(409)), modified);

    let uid = text(&first, "/metadata/uid");
    let version = text(&second, "/metadata/resourceVersion");
    let preconditions = [
        (
            json!({"uid": "other"}),
            format!(
                "the UID in the precondition (other) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            ),
        ),
        (
            json!({"uid": uid, "resourceVersion": "1"}),
            format!(
                "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({version}). The object might have been modified"
            ),
        ),
    ];
    for (preconditions, why) in preconditions {
        let reply = client.ask(delete(&path, &preconditions)).await;
        let want = format!(r#"409 Conflict: Operation cannot be fulfilled on ConfigMap "c": {why}"#);
        assert_eq!(said(&reply.expect(409)), want);
    }
    assert_eq!(client.get(&path).await.expect(200), second);
    client.ask(delete(&path, &json!({"uid": uid, "resourceVersion": version}))).await.expect(200);
    assert_eq!(client.get(&path).await.code, 404);
}

fn delete(path: &str, preconditions: &Value) -> Ask {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
    Ask::delete(path).body("application/json", options.to_string())
}

#[tokio::test]
async fn protobuf_that_cannot_be_read_is_refused_in_kube_apiservers_words() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let scheme = r#"in scheme "pkg/runtime/scheme.go:111""#;
    for (body, why) in [
        (
            &b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Foo"[..],
            format!(r#"Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" {scheme}"#),
        ),
        (
            &b"k8s\0\x0a\x0e\x0a\x07apps/v1\x12\x03Foo"[..],
            format!(r#"Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "apps/v1" {scheme}"#),
        ),
        (
            &b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\xff\xff"[..],
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF"#.to_owned(),
        ),
        (
            &b"--"[..],
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (2d2d)".to_owned(),
        ),
        (
            &b""[..],
            "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)".to_owned(),
        ),
    ] {
        let refused = client.ask(Ask::new(Method::POST, CONFIG_MAPS).body(PROTOBUF, body)).await.expect(400);
        assert_eq!(text(&refused, "/message"), why);
    }
}
