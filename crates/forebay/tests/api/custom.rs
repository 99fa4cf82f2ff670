//! Custom resources as writes leave them: what their schemas do not know, nulls, and several versions.

use serde_json::{Value, json};

use crate::common::{Ask, Client, Scratch, Server, causes, rv, text};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Things of `v1`, which is stored and knows `first`, and of `v2`, which knows `second` and has a default for
/// it.
async fn define(client: &Client) {
    let version = |name: &str, field: &str, of_field: Value| {
        let spec = json!({"type": "object", "properties": {
            "n": {"type": "number"},
            "free": {"type": "object", "additionalProperties": {"type": "string"}},
            field: of_field,
        }});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
    };
    let versions = [
        version("v1", "first", json!({"type": "string"})),
        version("v2", "second", json!({"type": "string", "default": "d"})),
    ];
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": versions,
            "names": {"plural": "things", "kind": "Thing"}},
    });
    client.ask(apply(&format!("{CRDS}/things.example.com"), "definer", &definition)).await.expect(201);
}

fn apply(path: &str, manager: &str, config: &Value) -> Ask {
    Ask::patch(format!("{path}?fieldManager={manager}"), APPLY, config.to_string())
}

fn path(version: &str, name: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/things/{name}")
}

fn thing(version: &str, name: &str, spec: Value) -> Value {
    let mut thing =
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": {"name": name}});
    if !spec.is_null() {
        thing["spec"] = spec;
    }
    thing
}

#[tokio::test]
async fn what_is_applied_is_judged_with_its_nulls() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let null = thing("v1", "a", json!({"free": {"k": null}}));
    let refused = client.ask(apply(&path("v1", "a"), "m", &null)).await.expect(422);
    assert_eq!(
        causes(&refused),
        "FieldValueTypeInvalid spec.free.k: Invalid value: \"null\": spec.free.k in body must be of type string: \"null\"\n"
    );
    let created = client.post("/apis/example.com/v1/namespaces/default/things", &null).await.expect(201);
    assert_eq!(created["spec"], json!({"free": {}}), "a create leaves them out");
    // What has nothing left in it is null.
    client.ask(apply(&path("v1", "b"), "m", &thing("v1", "b", json!({"n": 1})))).await.expect(201);
    let emptied = client.ask(apply(&path("v1", "b"), "m", &thing("v1", "b", json!({})))).await.expect(422);
    assert!(causes(&emptied).contains("spec in body must be of type object"), "{emptied}");
}

#[tokio::test]
async fn what_only_the_version_that_is_written_knows_is_not_kept() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let made =
        client.ask(apply(&path("v2", "a"), "m", &thing("v2", "a", json!({"second": "x", "n": 1})))).await;
    assert_eq!(made.expect(201)["spec"], json!({"n": 1}));
    let patched = client.ask(Ask::patch(path("v1", "a"), MERGE, r#"{"spec":{"n":2}}"#)).await;
    assert_eq!(patched.warnings(), [""; 0]);
    let patched = patched.expect(200);
    assert_eq!(patched["spec"], json!({"n": 2}));
    assert!(patched["metadata"]["managedFields"].is_array(), "its owners are known still: {patched}");
}

#[tokio::test]
async fn an_apply_that_changes_nothing_sets_no_default_of_its_version() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let made = client.ask(apply(&path("v1", "a"), "m", &thing("v1", "a", json!({"n": 1})))).await.expect(201);
    let same = client.ask(apply(&path("v2", "a"), "other", &thing("v2", "a", Value::Null))).await.expect(200);
    assert_eq!((rv(&same), &same["metadata"]["generation"]), (rv(&made), &json!(1)));
    // What kubectl notes of itself is no change of the object.
    let mut noted = thing("v1", "b", json!({"n": 1}));
    noted["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    client.post("/apis/example.com/v1/namespaces/default/things", &noted).await.expect(201);
    let same =
        client.ask(apply(&path("v2", "b"), "kubectl", &thing("v2", "b", Value::Null))).await.expect(200);
    assert_eq!(same["metadata"]["generation"], 1, "{same}");
}

#[tokio::test]
async fn a_zero_that_has_a_sign_has_none_once_it_is_stored() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    client.ask(apply(&path("v1", "a"), "m", &thing("v1", "a", json!({"n": 1})))).await.expect(201);
    let patched = client.ask(Ask::patch(path("v1", "a"), MERGE, r#"{"spec":{"n":-0.0}}"#)).await.expect(200);
    assert_eq!(patched["spec"].to_string(), r#"{"n":0}"#);
}

#[tokio::test]
async fn what_is_being_deleted_has_its_name_still_and_is_not_deleted_again() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let mut kept = thing("v1", "a", json!({}));
    kept["metadata"]["finalizers"] = json!(["example.com/f"]);
    let things = "/apis/example.com/v1/namespaces/default/things";
    client.post(things, &kept).await.expect(201);
    let going = client.ask(Ask::delete(path("v1", "a"))).await.expect(200);
    let again = client.ask(Ask::delete(path("v1", "a"))).await.expect(200);
    assert_eq!(again, going, "nothing is written a second time");
    let refused = client.post(things, &kept).await.expect(409);
    assert_eq!(
        text(&refused, "/message"),
        r#"object is being deleted: things.example.com "a" already exists"#
    );
}
