//! The Lease of a server in kube-system.

use forebay_registry::{Config, History, Identity, Registry, ServicesConfig};
use forebay_rt::{Duration, Random};
use serde_json::Value;

use super::*;
use crate::lasting::Lasting;

/// How often it is looked whether something was done that nobody answers for.
const ROUNDS_MAX: usize = 1_000;

const MAPS: &str = "@v1/configmaps/default";
const LEASES: &str = "coordination.k8s.io@v1/leases/kube-system";

fn identity_lease(name: &str, holder: &str, renewed: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "labels": { "apiserver.kubernetes.io/identity": "kube-apiserver" } },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": renewed },
    })
}

#[tokio::test]
async fn a_server_says_that_it_is_there_and_ends_what_others_said_who_are_not() {
    // The manual clock shows 2023-11-14T22:13:20Z.
    let lasting = Lasting::new(Some(Identity::new("node-1", None))).await;
    let world = &lasting.world;
    let all = world.list(LEASES, "").await.expect("lists");
    let name = names(&all)[0].to_owned();
    let own = format!("{LEASES}/{name}");
    let made = world.get(&own).await.expect("made at the start");
    assert_eq!(name, "apiserver-lgabes5ywnaqeagh5dny4zlzs4");
    assert_eq!(
        made["metadata"]["labels"],
        json!({ "apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "node-1" })
    );
    assert_eq!(made["spec"]["leaseDurationSeconds"], 3600);
    assert_eq!(made["spec"]["renewTime"], "2023-11-14T22:13:20.000000Z");
    let holder = made["spec"]["holderIdentity"].as_str().expect("a holder").to_owned();
    assert!(holder.starts_with(&format!("{name}_")), "{holder}");

    let over = identity_lease("apiserver-over", "over", "2023-11-14T21:13:00.000000Z");
    let there = identity_lease("apiserver-there", "there", "2023-11-14T22:13:00.000000Z");
    let mut leader = identity_lease("leader", "over", "2023-11-14T20:00:00.000000Z");
    leader["metadata"]["labels"] = json!({});
    for lease in [over, there, leader] {
        world.create(LEASES, lease).await.expect("creates");
    }
    // What the cache has is what is looked at.
    assert_eq!(names(&world.list(LEASES, "").await.expect("lists")).len(), 4);
    for _ in 0..4 {
        lasting.pass(Duration::from_secs(60)).await;
    }
    for _ in 0..ROUNDS_MAX {
        if world.get(&format!("{LEASES}/apiserver-over")).await.is_err() {
            break;
        }
        lasting.pass(Duration::ZERO).await;
    }
    let renewed = world.get(&own).await.expect("there");
    assert_eq!(renewed["spec"]["renewTime"], "2023-11-14T22:17:20.000000Z");
    assert_eq!(renewed["spec"]["holderIdentity"], json!(holder));
    assert_eq!(renewed["metadata"]["uid"], made["metadata"]["uid"]);
    let all = world.list(LEASES, "").await.expect("lists");
    let mut left = names(&all);
    left.sort_unstable();
    assert_eq!(left, [&name, "apiserver-there", "leader"]);
}

#[tokio::test]
async fn a_server_without_an_identity_writes_nothing_while_nobody_asks_it_to() {
    let lasting = Lasting::new(None).await;
    let before = lasting.world.list(MAPS, "").await.expect("lists");
    lasting.pass(Duration::from_secs(600)).await;
    let after = lasting.world.list(MAPS, "").await.expect("lists");
    assert_eq!(rv(&before), rv(&after));
    assert!(names(&lasting.world.list(LEASES, "").await.expect("lists")).is_empty());
}

#[tokio::test]
async fn servers_on_one_store_have_a_lease_each_and_one_that_goes_takes_its_own_away() {
    let lasting = Lasting::new(None).await;
    let server = async |port: u16| {
        let endpoint = Some(([192, 0, 2, 1].into(), port));
        let place = format!("192.0.2.1:{port}");
        let config = Config {
            services: ServicesConfig { endpoint, ..ServicesConfig::default() },
            history: History::Shared { check_every: Duration::from_secs(3_600) },
            identity: Some(Identity::new("node-1", Some(&place))),
            ..Config::default()
        };
        let (engine, tasks) = (lasting.world.engine.clone(), lasting.world.tasks.clone());
        let random = Random::seeded(u64::from(port));
        let registry = Registry::new(config, engine, lasting.clock.clone(), random, tasks);
        registry.start().await.expect("starts");
        registry
    };
    let leases = async || {
        let all = lasting.world.list(LEASES, "").await.expect("lists");
        names(&all).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let first = server(6443).await;
    let of_first = leases().await;
    assert_eq!(of_first.len(), 1);
    let second = server(7443).await;
    assert_eq!(leases().await.len(), 2);
    second.withdraw().await;
    assert_eq!(leases().await, of_first);
    lasting.pass(Duration::from_secs(300)).await;
    assert_eq!(leases().await, of_first, "it does not come back");
    drop(first);
}
