//! What Go tells apart in memory and not in what it stores, and the reverse.

use forebay_api::{Api, Body, PatchKind};
use forebay_apimachinery::Reason;
use forebay_apimachinery::options::{DeleteOptions, PatchOptions};
use serde_json::json;

use crate::{CM, World, configmap, object, rv};

#[tokio::test]
async fn an_empty_list_has_an_owner_though_it_is_stored_as_none() {
    let world = World::new().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "r" }, "rules": [],
    });
    let created = world.create("rbac.authorization.k8s.io@v1/roles/default", role).await.expect("creates");
    assert_eq!(created["rules"], json!(null));
    assert_eq!(created["metadata"]["managedFields"][0]["fieldsV1"], json!({ "f:rules": {} }));
}

#[tokio::test]
async fn what_is_the_same_once_it_is_written_writes_nothing() {
    let world = World::new().await;
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "l" }, "spec": { "limits": null },
    });
    let created = world.create("@v1/limitranges/default", range).await.expect("creates");
    let path = "@v1/limitranges/default/l";
    assert_eq!(world.patch(path, PatchKind::Json, json!([])).await.expect("patches"), created);
    let mut said_apart = created.clone();
    said_apart["spec"] = json!({});
    assert_eq!(world.update(path, said_apart).await.expect("updates"), created);
}

#[tokio::test]
async fn a_deletion_that_waits_already_writes_nothing() {
    let world = World::new().await;
    let mut held = configmap("a", json!({}));
    held["metadata"]["finalizers"] = json!(["a.b/c"]);
    let created = world.create(CM, held).await.expect("creates");
    let path = "@v1/configmaps/default/a";
    let begun = world.delete(path).await.expect("begins");
    assert_ne!(rv(&begun), rv(&created));
    assert_eq!(world.delete(path).await.expect("waits"), begun);
}

#[tokio::test]
async fn a_put_that_creates_is_not_asked_for_a_version_but_for_the_object_that_it_means() {
    let world = World::new().await;
    let path = "@v1/limitranges/default/l";
    let mut range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "spec": { "limits": [] },
        "metadata": { "name": "l", "resourceVersion": "1", "uid": "11111111-1111-1111-8111-111111111111" },
    });
    let refused = world.update(path, range.clone()).await.expect_err("means another one");
    assert_eq!(refused.reason, Reason::Conflict);
    assert_eq!(
        refused.message,
        "Operation cannot be fulfilled on limitranges \"l\": StorageError: invalid object, Code: 4, Key: \
         /registry/limitranges/default/l, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
         11111111-1111-1111-8111-111111111111, UID in object meta: "
    );
    range["metadata"]["uid"] = "".into();
    world.update(path, range).await.expect("creates");
}

#[tokio::test]
async fn of_puts_that_come_together_one_creates_and_the_others_change() {
    let world = World::new().await;
    let put = |of: &str| {
        let range = json!({
            "apiVersion": "v1", "kind": "LimitRange", "spec": { "limits": [] },
            "metadata": { "name": "l", "labels": { "of": of } },
        });
        world.update("@v1/limitranges/default/l", range)
    };
    let (one, other) = tokio::join!(put("one"), put("other"));
    let (one, other) = (one.expect("is taken"), other.expect("is taken"));
    assert_eq!(one["metadata"]["uid"], other["metadata"]["uid"]);
    assert_ne!(one["metadata"]["resourceVersion"], other["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn bytes_that_are_none_are_refused_in_the_words_of_what_reads_a_tree() {
    let world = World::new().await;
    let options = PatchOptions { field_manager: "me".into(), ..PatchOptions::default() };
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "binaryData": { "x": "?" },
    })
    .to_string();
    let (target, config) = (world.target("@v1/configmaps/default/a"), Body::Json(config.into()));
    let applied = Api::apply(&world.registry, &target, &config, &options, None);
    let refused = applied.wait().await.map(object).expect_err("is no base64");
    let words = "to /v1, Kind=ConfigMap: error decoding from json: illegal base64 data at input byte 0";
    assert!(refused.message.ends_with(words), "{}", refused.message);
}

#[tokio::test]
async fn a_deletion_that_is_not_carried_out_shows_the_version_that_the_object_has() {
    let world = World::new().await;
    let template = json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "t" },
        "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } },
    });
    let created = world.create("@v1/podtemplates/default", template).await.expect("creates");
    world.create(CM, configmap("later", json!({}))).await.expect("creates");
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    let target = world.target("@v1/podtemplates/default/t");
    let deleted = world.registry.delete(&target, &options).await.map(object).expect("would delete");
    assert_eq!((rv(&deleted), &deleted["kind"]), (rv(&created), &created["kind"]));
}
