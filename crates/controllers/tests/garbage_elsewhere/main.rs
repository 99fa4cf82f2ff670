//! The garbage collector beside a server that keeps objects as well: owners and dependents on either side.

mod aquarium;
#[path = "../world/mod.rs"]
mod world;

use std::sync::Arc;

use aquarium::{API_VERSION, Aquarium, Seen, heard};
use forebay_api::{NoticeElsewhere, ObjectElsewhere, OwnerElsewhere};
use forebay_apimachinery::options::PropagationPolicy::{Background, Foreground, Orphan};
use serde_json::{Value, json};
use world::{World, blocking, held, map, owned_by, with_owners};

const GC: &str = "garbage-collector-controller";
const MAPS: &str = "@v1/configmaps/default";
const FLUNDER: &str = "flunders/default/f";

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

async fn beside() -> (World, Arc<Aquarium>) {
    let aquarium = Aquarium::new();
    (World::among(Arc::new(Seen(aquarium.clone())), GC).await, aquarium)
}

async fn dependent(world: &World, name: &str, owners: &[Value]) -> Value {
    world.create(MAPS, with_owners(map(name), owners)).await
}

#[tokio::test]
async fn what_another_server_keeps_goes_after_its_owner_here() {
    let (world, aquarium) = beside().await;
    let owner = world.create(MAPS, map("owner")).await;
    let child = aquarium.create(FLUNDER, &[owned_by(&owner)]);
    aquarium.create("flunders/default/grandchild", &[owned_by(&child)]);
    aquarium.create("flunders/default/bystander", &[]);
    world.until_collected().await;
    assert!(aquarium.find(FLUNDER).is_some());
    world.delete(&at("owner"), Some(Background)).await;
    aquarium.until_gone("flunders/default/grandchild").await;
    assert!(aquarium.find(FLUNDER).is_none() && aquarium.find("flunders/default/bystander").is_some());
    let account = "system:serviceaccount:kube-system:generic-garbage-collector";
    assert_eq!(aquarium.asked_by(), [account]);
}

#[tokio::test]
async fn what_is_kept_here_goes_after_its_owner_on_another_server() {
    let (world, aquarium) = beside().await;
    let (owner, cluster) = (aquarium.create(FLUNDER, &[]), aquarium.create("fischers//c", &[]));
    for name in ["child", "twin"] {
        dependent(&world, name, &[owned_by(&owner)]).await;
    }
    dependent(&world, "of-cluster", &[owned_by(&cluster)]).await;
    world.until_collected().await;
    assert!(world.find(&at("child")).await.is_some());
    aquarium.deletes(FLUNDER, Background);
    world.until_gone(&at("child")).await;
    world.until_gone(&at("twin")).await;
    world.until_collected().await;
    assert!(world.find(&at("of-cluster")).await.is_some());
    // One that comes when its owner has gone goes as well.
    dependent(&world, "late", &[owned_by(&owner)]).await;
    world.until_gone(&at("late")).await;
}

#[tokio::test]
async fn a_server_that_is_away_costs_nothing_its_owner_and_holds_up_nobody_else() {
    let (world, aquarium) = beside().await;
    let owner = aquarium.create(FLUNDER, &[]);
    dependent(&world, "child", &[owned_by(&owner)]).await;
    world.until_collected().await;
    aquarium.is_away(true);
    // It goes while nobody can ask.
    aquarium.deletes(FLUNDER, Background);
    for number in 0..40 {
        dependent(&world, &format!("late-{number}"), &[owned_by(&owner)]).await;
    }
    let here = world.create(MAPS, map("here")).await;
    dependent(&world, "of-here", &[owned_by(&here)]).await;
    world.delete(&at("here"), Some(Background)).await;
    world.until_gone(&at("of-here")).await;
    world.until_collected().await;
    for name in ["child", "late-0", "late-39"] {
        assert!(world.find(&at(name)).await.is_some(), "{name}");
    }
    aquarium.is_away(false);
    for name in ["child", "late-0", "late-39"] {
        world.until_gone(&at(name)).await;
    }
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_nobody_else() {
    let (world, aquarium) = beside().await;
    let owner = aquarium.create(FLUNDER, &[]);
    aquarium.hangs();
    for number in 0..40 {
        dependent(&world, &format!("child-{number}"), &[owned_by(&owner)]).await;
    }
    aquarium.hangs.notified().await;
    world.until_collected().await;
    assert!(world.find(&at("child-39")).await.is_some());
}

#[tokio::test]
async fn an_owner_waits_in_the_foreground_for_those_on_the_other_side() {
    let (world, aquarium) = beside().await;
    let first = aquarium.create(FLUNDER, &[]);
    world.create(MAPS, held(with_owners(map("child"), &[blocking(&first)]), "example.io/hold")).await;
    world.until_collected().await;
    aquarium.deletes(FLUNDER, Foreground);
    world
        .until(&at("child"), |child| child.expect("held")["metadata"]["deletionTimestamp"].is_string())
        .await;
    world.until_collected().await;
    assert_eq!(aquarium.find(FLUNDER).expect("waits")["finalizers"], json!(["foregroundDeletion"]));
    world.merge(&at("child"), json!({ "metadata": { "finalizers": null } })).await;
    aquarium.until_gone(FLUNDER).await;

    let second = world.create(MAPS, map("owner")).await;
    aquarium.create("flunders/default/child", &[blocking(&second)]);
    world.until_collected().await;
    world.delete(&at("owner"), Some(Foreground)).await;
    world.until_gone(&at("owner")).await;
    assert!(aquarium.find("flunders/default/child").is_none());
}

#[tokio::test]
async fn orphans_on_the_other_side_keep_living_without_the_reference() {
    let (world, aquarium) = beside().await;
    let here = world.create(MAPS, map("owner")).await;
    let there = aquarium.create(FLUNDER, &[]);
    aquarium.create("flunders/default/orphan", &[owned_by(&here)]);
    dependent(&world, "orphan", &[owned_by(&there)]).await;
    world.until_collected().await;
    world.delete(&at("owner"), Some(Orphan)).await;
    aquarium.deletes(FLUNDER, Orphan);
    world.until_gone(&at("owner")).await;
    aquarium.until_gone(FLUNDER).await;
    world.until_collected().await;
    assert!(aquarium.find("flunders/default/orphan").expect("stays")["ownerReferences"].is_null());
    assert_eq!(world.get(&at("orphan")).await["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn an_owner_is_held_where_it_is_not_known_yet_what_it_has_elsewhere() {
    let (world, aquarium) = beside().await;
    aquarium.is_listed(false);
    let owner = world.create(MAPS, map("owner")).await;
    aquarium.create(FLUNDER, &[owned_by(&owner)]);
    world.delete(&at("owner"), Some(Orphan)).await;
    world.until_collected().await;
    assert!(world.find(&at("owner")).await.is_some(), "somebody may depend on it");
    aquarium.is_listed(true);
    world.until_gone(&at("owner")).await;
    assert!(aquarium.find(FLUNDER).expect("stays")["ownerReferences"].is_null());
}

#[tokio::test]
async fn an_owner_that_another_server_has_is_not_looked_for_here_whatever_is_served_here() {
    let (world, aquarium) = beside().await;
    let world = world.with_widgets().await;
    aquarium.also_serves("example.io/v1");
    let owner = json!({ "apiVersion": "example.io/v1", "kind": "Widget",
                        "metadata": { "name": "there", "uid": "there" } });
    dependent(&world, "child", &[owned_by(&owner)]).await;
    world.until_collected().await;
    assert!(world.find(&at("child")).await.is_some());
}

#[tokio::test]
async fn what_is_let_go_of_leads_to_no_deletion() {
    let (world, aquarium) = beside().await;
    let here = world.create(MAPS, map("here")).await;
    let there = aquarium.create(FLUNDER, &[owned_by(&here)]);
    dependent(&world, "child", &[owned_by(&there)]).await;
    world.until_collected().await;
    aquarium.says("flunders", NoticeElsewhere::LetGo);
    aquarium.says("flunders", NoticeElsewhere::Gone(heard(&there["metadata"]).uid));
    world.until_collected().await;
    assert!(world.find(&at("child")).await.is_some() && aquarium.find(FLUNDER).is_some());
    // What is still asked for is answered: its owner's end is not heard of, but seen.
    aquarium.deletes(FLUNDER, Background);
    dependent(&world, "late", &[owned_by(&there)]).await;
    world.until_gone(&at("late")).await;
}

#[tokio::test]
async fn what_another_server_says_of_an_object_here_changes_nothing() {
    let (world, aquarium) = beside().await;
    let owner = world.create(MAPS, map("owner")).await;
    let child = held(with_owners(map("child"), &[blocking(&owner)]), "example.io/hold");
    let child = world.create(MAPS, child).await;
    world.until_collected().await;
    let uid = |object: &Value| object["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let nobody = OwnerElsewhere {
        api_version: API_VERSION.to_owned(),
        kind: "Flunder".to_owned(),
        name: "nobody".to_owned(),
        uid: "nobody".to_owned(),
        blocks: false,
    };
    let usurper = ObjectElsewhere {
        namespace: "default".into(),
        name: "usurper".into(),
        uid: uid(&child).into(),
        owners: vec![nobody],
        ..ObjectElsewhere::default()
    };
    aquarium.says("flunders", NoticeElsewhere::Put(usurper));
    aquarium.says("flunders", NoticeElsewhere::Gone(uid(&child).into()));
    aquarium.says("flunders", NoticeElsewhere::Gone(uid(&owner).into()));
    world.until_collected().await;
    world.delete(&at("owner"), Some(Foreground)).await;
    world
        .until(&at("child"), |child| child.expect("held")["metadata"]["deletionTimestamp"].is_string())
        .await;
    world.until_collected().await;
    assert!(world.find(&at("owner")).await.is_some(), "it waits for what blocks it");
    world.merge(&at("child"), json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone(&at("owner")).await;
}
