//! Custom resources, and what defines them.

use forebay_apimachinery::options::CreateOptions;
use serde_json::{Value, json};

use crate::{World, object, text};

const CRD: &str = "apiextensions.k8s.io@v1/customresourcedefinitions";

fn definition() -> Value {
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": { "size": { "type": "integer", "default": 3 } } },
        "status": {
            "type": "object", "default": { "observedGeneration": -1 },
            "properties": { "observedGeneration": { "type": "integer" }, "phase": { "type": "string" } },
        },
    } });
    let names = json!({ "plural": "widgets", "singular": "widget", "kind": "Widget" });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": schema },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": names, "versions": [version] },
    })
}

/// The clock stands still: whoever waited for it to be served would wait for ever.
#[tokio::test]
async fn a_dry_run_of_a_definition_is_not_waited_for() {
    let world = World::new().await;
    let options = CreateOptions { dry_run: true, ..CreateOptions::default() };
    let answer = world.registry.create(&world.target(CRD), &text(definition()), &options).await;
    assert_eq!(object(answer.expect("would create"))["metadata"]["name"], "widgets.example.com");
}

#[tokio::test]
async fn a_new_custom_resource_has_the_status_of_its_schema() {
    let world = World::new().await;
    world.create(CRD, definition()).await.expect("creates");
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" },
        "spec": {}, "status": { "phase": "of the client" },
    });
    let created = world.create("example.com@v1/widgets/default", widget).await.expect("creates");
    assert_eq!(created["status"], json!({ "observedGeneration": -1 }));
    assert_eq!(created["spec"], json!({ "size": 3 }));
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert!(owned.get("f:status").is_none(), "nobody wrote it: {owned}");
    assert_eq!(
        world.get("example.com@v1/widgets/default/w").await.expect("is there")["status"],
        created["status"]
    );
}
