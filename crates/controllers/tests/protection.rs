//! What stores data stays while it is used.

mod world;

use serde_json::{Value, json};
use world::World;

const ALL: &str = "persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,\
                   volumeattributesclass-protection-controller";
const CLAIM: &str = "@v1/persistentvolumeclaims/default/c";

fn claim() -> Value {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "volumeAttributesClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    });
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec})
}

fn pod() -> Value {
    let spec = json!({
        "nodeName": "n", "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    });
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

async fn is_deleted(world: &World, path: &str) {
    world
        .until(path, |found| found.is_some_and(|found| !found["metadata"]["deletionTimestamp"].is_null()))
        .await;
}

#[tokio::test]
async fn a_claim_that_a_pod_uses_goes_with_the_pod() {
    let world = World::with(ALL).await;
    let created = world.create("@v1/persistentvolumeclaims/default", claim()).await;
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    world.create("@v1/pods/default", pod()).await;
    world.delete(CLAIM, None).await;
    is_deleted(&world, CLAIM).await;
    world.merge("@v1/pods/default/p/status", json!({"status": {"phase": "Running"}})).await;
    assert!(world.find(CLAIM).await.is_some(), "it is used");
    world.delete_now("@v1/pods/default/p").await;
    world.until_gone(CLAIM).await;
}

#[tokio::test]
async fn a_claim_that_nobody_uses_goes_at_once_and_one_without_protection_gets_it() {
    let world = World::with("-*").await;
    world.create("@v1/persistentvolumeclaims/default", claim()).await;
    world.merge(CLAIM, json!({"metadata": {"finalizers": null}})).await;
    let world = world.restart(ALL).await;
    world
        .until(CLAIM, |found| {
            found.is_some_and(|found| {
                found["metadata"]["finalizers"] == json!(["kubernetes.io/pvc-protection"])
            })
        })
        .await;
    world.delete(CLAIM, None).await;
    world.until_gone(CLAIM).await;
}

#[tokio::test]
async fn a_volume_stays_while_it_is_bound_and_a_class_while_a_claim_has_it() {
    let world = World::with(ALL).await;
    let spec = json!({
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"},
    });
    let volume =
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec});
    world.create("@v1/persistentvolumes", volume).await;
    world.merge("@v1/persistentvolumes/v/status", json!({"status": {"phase": "Bound"}})).await;
    world.delete("@v1/persistentvolumes/v", None).await;
    is_deleted(&world, "@v1/persistentvolumes/v").await;
    world.merge("@v1/persistentvolumes/v/status", json!({"status": {"phase": "Released"}})).await;
    world.until_gone("@v1/persistentvolumes/v").await;

    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": "fast"},
        "driverName": "a.b", "parameters": {"iops": "1"},
    });
    world.create("storage.k8s.io@v1/volumeattributesclasses", class).await;
    world.create("@v1/persistentvolumeclaims/default", claim()).await;
    world.delete("storage.k8s.io@v1/volumeattributesclasses/fast", None).await;
    is_deleted(&world, "storage.k8s.io@v1/volumeattributesclasses/fast").await;
    world.delete(CLAIM, None).await;
    world.until_gone("storage.k8s.io@v1/volumeattributesclasses/fast").await;
}
