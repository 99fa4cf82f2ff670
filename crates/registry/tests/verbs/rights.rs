//! What a write asks besides what its path says: a right to create, and that the object is the one that is
//! meant.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_api::{Api, Body};
use forebay_api::{MayCreate, PatchKind};
use forebay_apimachinery::options::{PatchOptions, UpdateOptions};
use forebay_apimachinery::{Reason, Status};
use serde_json::{Value, json};

use crate::{World, configmap, object, rv, text};

#[tokio::test]
async fn a_put_that_would_create_asks_for_that_right_and_no_other_put_does() {
    const LEASE: &str = "coordination.k8s.io@v1/leases/default/l";
    let world = World::new().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let put = async |path: &str, body: &Value, dry_run: bool, allowed: bool| {
        let counted = asked.clone();
        let may_create: MayCreate = Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            if allowed { Ok(()) } else { Err(Status::new(Reason::Forbidden, "may not create")) }
        });
        let options = UpdateOptions { dry_run, ..UpdateOptions::default() };
        let (target, body) = (world.target(path), text(body.clone()));
        let done = Api::update(&world.registry, &target, &body, &options, Some(may_create)).wait().await;
        (done.map(object).map_err(|status| status.reason), asked.swap(0, Ordering::Relaxed))
    };
    let lease = |seconds: i64| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" },
            "spec": { "holderIdentity": "h", "leaseDurationSeconds": seconds },
        })
    };
    for dry_run in [true, false] {
        assert_eq!(put(LEASE, &lease(1), dry_run, false).await, (Err(Reason::Forbidden), 1));
    }
    assert_eq!(world.get(LEASE).await.expect_err("not made").reason, Reason::NotFound);
    // What is wrong with it is told first.
    assert_eq!(put(LEASE, &lease(-1), false, false).await, (Err(Reason::Invalid), 0));
    let elsewhere = "coordination.k8s.io@v1/leases/nowhere/l";
    assert_eq!(put(elsewhere, &lease(1), false, false).await, (Err(Reason::NotFound), 0));
    // A kind that no PUT creates.
    let map = configmap("m", json!({}));
    assert_eq!(put("@v1/configmaps/default/m", &map, false, false).await, (Err(Reason::NotFound), 0));
    let (made, times) = put(LEASE, &lease(1), false, true).await;
    assert_eq!((rv(&made.expect("made")).is_empty(), times), (false, 1));
    let mut known = world.get(LEASE).await.expect("made");
    known["spec"]["leaseDurationSeconds"] = json!(2);
    let (changed, times) = put(LEASE, &known, false, false).await;
    assert_eq!((&changed.expect("changed")["spec"]["leaseDurationSeconds"], times), (&json!(2), 0));
}

#[tokio::test]
async fn an_apply_that_would_create_asks_for_that_right_and_no_other_apply_does() {
    const MAP: &str = "@v1/configmaps/default/m";
    let world = World::new().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let apply = async |data: Value, allowed: bool| {
        let counted = asked.clone();
        let may_create: MayCreate = Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            if allowed { Ok(()) } else { Err(Status::new(Reason::Forbidden, "may not create")) }
        });
        let options = PatchOptions { field_manager: "me".into(), ..PatchOptions::default() };
        let (target, config) = (world.target(MAP), configmap("m", data).to_string());
        let config = Body::Json(config.into());
        let done = Api::apply(&world.registry, &target, &config, &options, Some(may_create)).wait().await;
        (done.map(object).map_err(|status| status.reason), asked.swap(0, Ordering::Relaxed))
    };
    assert_eq!(apply(json!({ "k": "v" }), false).await, (Err(Reason::Forbidden), 1));
    assert_eq!(world.get(MAP).await.expect_err("not made").reason, Reason::NotFound);
    let (made, times) = apply(json!({ "k": "v" }), true).await;
    assert_eq!((&made.expect("made")["data"]["k"], times), (&json!("v"), 1));
    let (changed, times) = apply(json!({ "k": "w" }), false).await;
    assert_eq!((&changed.expect("changed")["data"]["k"], times), (&json!("w"), 0));
}

#[tokio::test]
async fn a_uid_is_a_precondition_of_a_put_and_immutable_to_a_patch() {
    let world = World::new().await;
    let mut map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    world.create("@v1/configmaps/default", map.clone()).await.expect("creates");
    let patch = json!({ "metadata": { "uid": "other" } });
    let status = world.patch("@v1/configmaps/default/a", PatchKind::Merge, patch).await.unwrap_err();
    let message = r#"ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable"#;
    assert_eq!((status.reason, &*status.message), (Reason::Invalid, message));
    assert_eq!(status.causes[0].field, "metadata.uid");
    map["metadata"]["uid"] = json!("other");
    let status = world.update("@v1/configmaps/default/a", map).await.unwrap_err();
    assert_eq!(status.reason, Reason::Conflict);
}
