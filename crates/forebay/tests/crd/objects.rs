//! Custom objects: pruned, defaulted, judged; their subresources, columns and fields.

use serde_json::json;

use crate::common::{Ask, Scratch, Server, causes, names, rv, said, text};
use crate::{MERGE, WIDGETS, create, define, widget};

#[tokio::test]
async fn objects_are_pruned_and_defaulted() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let spec = json!({"color": "red", "bogus": {"a": 1}, "free": {"any": [1, {"b": "c"}]}});
    let mut new = widget("a", spec);
    new["status"] = json!({"replicas": 3});
    let reply = client.post(WIDGETS, &new).await;
    let object = reply.expect(201);
    let want =
        json!({"color": "red", "free": {"any": [1, {"b": "c"}]}, "inner": {"mode": "auto"}, "replicas": 1});
    assert_eq!(object["spec"], want);
    assert!(object.get("status").is_none(), "status is written through its subresource");
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(reply.warnings(), [r#"299 - "unknown field \"spec.bogus\"""#]);
    let strict = client
        .post(&format!("{WIDGETS}?fieldValidation=Strict"), &widget("b", json!({"color": "red", "bogus": 1})))
        .await;
    assert_eq!(
        said(&strict.expect(400)),
        r#"400 BadRequest: Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.bogus""#
    );
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.expect(200), object);
    assert_eq!(client.get(&format!("{WIDGETS}/b")).await.code, 404);
}

#[tokio::test]
async fn every_violation_of_the_schema_is_a_cause() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let bad = widget("b", json!({"color": "green", "replicas": 10, "inner": {"mode": "manual"}}));
    let status = client.post(WIDGETS, &bad).await.expect(422);
    assert!(said(&status).starts_with(r#"422 Invalid: Widget.example.com "b" is invalid: ["#));
    let text = causes(&status);
    let mut got: Vec<&str> = text.lines().collect();
    got.sort_unstable();
    let want = [
        "FieldValueInvalid spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9",
        r#"FieldValueNotSupported spec.color: Unsupported value: "green": supported values: "red", "blue""#,
        "FieldValueTooLong spec.inner.mode: Too long: may not be more than 5 bytes",
    ];
    assert_eq!(got, want);
    let status = client.post(WIDGETS, &widget("b", json!({}))).await.expect(422);
    assert_eq!(causes(&status), "FieldValueRequired spec.color: Required value\n");
    let status = client.post(WIDGETS, &widget("b", json!({"color": "red", "inner": 3}))).await.expect(422);
    assert_eq!(
        causes(&status),
        "FieldValueTypeInvalid spec.inner: Invalid value: \"integer\": spec.inner in body must be of type object: \"integer\"\n"
    );
    // What is judged is the object as it would be stored, whichever way it comes.
    create(&client, "a", "red").await;
    let patch = Ask::patch(format!("{WIDGETS}/a"), MERGE, r#"{"spec":{"replicas":11}}"#);
    let status = client.ask(patch).await.expect(422);
    assert_eq!(
        causes(&status),
        "FieldValueInvalid spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 9\n"
    );
    assert_eq!(names(&client.get(WIDGETS).await.expect(200)), ["a"]);
}

#[tokio::test]
async fn spec_and_status_are_written_apart() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    create(&client, "a", "red").await;
    let (path, status) = (format!("{WIDGETS}/a"), format!("{WIDGETS}/a/status"));
    let both = r#"{"spec":{"color":"blue"},"status":{"replicas":4}}"#;
    let main = client.ask(Ask::patch(&path, MERGE, both)).await.expect(200);
    assert_eq!((&main["spec"]["color"], main.get("status")), (&json!("blue"), None));
    assert_eq!(main["metadata"]["generation"], 2);
    let both = r#"{"spec":{"color":"red"},"status":{"replicas":4}}"#;
    let sub = client.ask(Ask::patch(&status, MERGE, both)).await.expect(200);
    assert_eq!((&sub["spec"]["color"], &sub["status"]), (&json!("blue"), &json!({"replicas": 4})));
    assert_eq!(sub["metadata"]["generation"], 2, "a status is no new generation");
    assert!(rv(&sub) > rv(&main));
    let mut replaced = sub.clone();
    replaced["status"] = json!({"selector": "app=w"});
    let replaced = client.put(&status, &replaced).await.expect(200);
    assert_eq!(replaced["status"], json!({"selector": "app=w"}));
    for path in [&path, &status] {
        assert_eq!(client.get(path).await.expect(200), replaced);
    }
    let stale = client.put(&status, &sub).await.expect(409);
    assert!(said(&stale).starts_with(r#"409 Conflict: Operation cannot be fulfilled on widgets.example.com "a": the object has been modified"#));
}

#[tokio::test]
async fn scale_is_a_view_of_the_object() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    create(&client, "a", "red").await;
    let status = r#"{"status":{"replicas":2,"selector":"app=w"}}"#;
    client.ask(Ask::patch(format!("{WIDGETS}/a/status"), MERGE, status)).await.expect(200);
    let path = format!("{WIDGETS}/a/scale");
    let scale = client.get(&path).await.expect(200);
    assert_eq!((text(&scale, "/apiVersion"), text(&scale, "/kind")), ("autoscaling/v1", "Scale"));
    assert_eq!(scale["spec"], json!({"replicas": 1}));
    assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=w"}));
    let mut more = scale.clone();
    more["spec"]["replicas"] = 5.into();
    let scaled = client.put(&path, &more).await.expect(200);
    assert_eq!(scaled["spec"], json!({"replicas": 5}));
    let object = client.get(&format!("{WIDGETS}/a")).await.expect(200);
    assert_eq!((&object["spec"]["replicas"], rv(&object)), (&json!(5), rv(&scaled)));
    assert_eq!(text(&client.put(&path, &more).await.expect(409), "/reason"), "Conflict");
    let much = client.ask(Ask::patch(&path, MERGE, r#"{"spec":{"replicas":50}}"#)).await.expect(422);
    assert_eq!(
        causes(&much),
        "FieldValueInvalid spec.replicas: Invalid value: 50: spec.replicas in body should be less than or equal to 9\n"
    );
    assert_eq!(
        said(&client.get(&format!("{WIDGETS}/none/scale")).await.expect(404)),
        r#"404 NotFound: widgets.example.com "none" not found"#
    );
}

#[tokio::test]
async fn a_table_has_the_columns_of_the_definition() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    create(&client, "a", "red").await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = client.ask(Ask::get(WIDGETS).accept(accept)).await.expect(200);
    let columns: Vec<String> = table["columnDefinitions"]
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| format!("{} {} {}", text(column, "/name"), text(column, "/type"), column["priority"]))
        .collect();
    assert_eq!(columns, ["Name string 0", "Color string 0", "Mode string 1"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "red", "auto"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn selectable_fields_select_lists_and_watches() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        create(&client, name, color).await;
    }
    for (selector, want) in
        [("spec.color=red", "a c"), ("spec.color!=red", "b"), ("spec.color=red,metadata.name=c", "c")]
    {
        let list = client.get(&format!("{WIDGETS}?fieldSelector={selector}")).await.expect(200);
        assert_eq!(names(&list).join(" "), want, "{selector}");
    }
    let refused = client.get(&format!("{WIDGETS}?fieldSelector=spec.replicas=1")).await.expect(400);
    assert_eq!(said(&refused), "400 BadRequest: field label not supported: spec.replicas");

    let start = rv(&client.get(WIDGETS).await.expect(200));
    let path = format!("{WIDGETS}?watch=true&fieldSelector=spec.color=blue&resourceVersion={start}");
    let mut watch = client.watch(&path).await;
    for (name, color) in [("a", "blue"), ("b", "red"), ("a", "red")] {
        let patch = json!({"spec": {"color": color}}).to_string();
        client.ask(Ask::patch(format!("{WIDGETS}/{name}"), MERGE, patch)).await.expect(200);
    }
    let seen: Vec<String> = watch.events(3).await.iter().map(|event| event.short()).collect();
    assert_eq!(seen, ["ADDED a", "DELETED b", "DELETED a"]);
}
