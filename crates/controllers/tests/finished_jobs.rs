//! Finished jobs go when their time is over, and tokens when theirs is.

mod world;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_rt::Duration;
use serde_json::{Map, Value, json};
use world::World;

const JOBS: &str = "batch@v1/jobs/default";
const SECRETS: &str = "@v1/secrets/kube-system";
const INFO: &str = "@v1/configmaps/kube-public/cluster-info";

fn job(name: &str, ttl: Option<i64>) -> Value {
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let mut spec = json!({"template": pod});
    if let Some(ttl) = ttl {
        spec["ttlSecondsAfterFinished"] = json!(ttl);
    }
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
}

/// Says of a job that it is done, as of now.
async fn finish(world: &World, name: &str) {
    let now = world.registry.now_rfc3339();
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    let status = json!({
        "startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    });
    world.merge(&format!("{JOBS}/{name}/status"), json!({"status": status})).await;
}

/// Lets so much time go by, for everybody.
async fn pass(world: &World, seconds: u64) {
    world.hand.advance_ms(seconds * 1_000);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_finished_job_goes_when_its_time_is_over_and_no_other() {
    let world = World::with("ttl-after-finished-controller,garbage-collector-controller").await;
    for (name, ttl) in [("short", Some(100)), ("long", Some(10_000)), ("kept", None), ("running", Some(0))] {
        world.create(JOBS, job(name, ttl)).await;
    }
    for name in ["short", "long", "kept"] {
        finish(&world, name).await;
    }
    world.create(JOBS, job("at-once", Some(0))).await;
    finish(&world, "at-once").await;
    world.until_gone(&format!("{JOBS}/at-once")).await;
    assert!(world.find(&format!("{JOBS}/short")).await.is_some(), "it is not over yet");
    pass(&world, 101).await;
    world.until_gone(&format!("{JOBS}/short")).await;
    // A shorter time counts from when it is said.
    world.merge(&format!("{JOBS}/long"), json!({"spec": {"ttlSecondsAfterFinished": 50}})).await;
    world.until_gone(&format!("{JOBS}/long")).await;
    for name in ["kept", "running"] {
        assert!(world.find(&format!("{JOBS}/{name}")).await.is_some(), "{name}");
    }
}

fn token(id: &str, more: &[(&str, String)]) -> Value {
    let mut data = Map::new();
    let all = [("token-id", id.to_owned()), ("token-secret", "0123456789abcdef".to_owned())];
    for (key, value) in all.iter().chain(more) {
        data.insert((*key).to_owned(), json!(STANDARD.encode(value)));
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("bootstrap-token-{id}")},
        "type": "bootstrap.kubernetes.io/token", "data": data,
    })
}

#[tokio::test]
async fn tokens_that_have_expired_are_deleted_when_that_is_asked_for() {
    let world = World::with("*,token-cleaner-controller").await;
    let after = |seconds: i64| {
        let at = world.registry.timestamp().as_second() + seconds;
        ("expiration", jiff::Timestamp::from_second(at).expect("a time").to_string())
    };
    world.create(SECRETS, token("aaaaaa", &[after(-1)])).await;
    world.create(SECRETS, token("bbbbbb", &[after(100)])).await;
    world.create(SECRETS, token("cccccc", &[])).await;
    world.until_gone(&format!("{SECRETS}/bootstrap-token-aaaaaa")).await;
    assert!(world.find(&format!("{SECRETS}/bootstrap-token-bbbbbb")).await.is_some());
    pass(&world, 101).await;
    world.until_gone(&format!("{SECRETS}/bootstrap-token-bbbbbb")).await;
    assert!(world.find(&format!("{SECRETS}/bootstrap-token-cccccc")).await.is_some());
}

#[tokio::test]
async fn the_map_that_nodes_join_by_is_signed_with_each_token_that_may_sign() {
    let world = World::with("bootstrap-signer-controller").await;
    let signing = ("usage-bootstrap-signing", "true".to_owned());
    world.create(SECRETS, token("joshua", std::slice::from_ref(&signing))).await;
    world.create(SECRETS, token("nosign", &[])).await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-info"},
        "data": {"kubeconfig": "k", "jws-kubeconfig-gone12": "x"},
    });
    world.create("@v1/configmaps/kube-public", map).await;
    let keys = |map: Option<&Value>| -> Vec<String> {
        map.and_then(|map| map["data"].as_object())
            .into_iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect()
    };
    world.until(INFO, |map| keys(map) == ["jws-kubeconfig-joshua", "kubeconfig"]).await;
    let signature = world.get(INFO).await["data"]["jws-kubeconfig-joshua"].clone();
    assert!(
        signature.as_str().is_some_and(|text| text.starts_with("eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9.."))
    );
    world.merge(INFO, json!({"data": {"kubeconfig": "other"}})).await;
    world.until(INFO, |map| map.is_some_and(|map| map["data"]["jws-kubeconfig-joshua"] != signature)).await;
    world.delete(&format!("{SECRETS}/bootstrap-token-joshua"), None).await;
    world.until(INFO, |map| keys(map) == ["kubeconfig"]).await;
}
