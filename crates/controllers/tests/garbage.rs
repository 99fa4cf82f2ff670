//! The garbage collector on a registry in memory: the cases of upstream's integration and e2e tests, and
//! restarts.

mod world;

use forebay_apimachinery::options::PropagationPolicy::{Background, Foreground, Orphan};
use serde_json::{Value, json};
use world::{World, blocking, held, map, owned_by, tool, tools, widget, with_owners};

const GC: &str = "garbage-collector-controller";
const MAPS: &str = "@v1/configmaps/default";

async fn owner(world: &World, name: &str) -> Value {
    world.create(MAPS, map(name)).await
}

async fn dependent(world: &World, name: &str, owners: &[Value]) -> Value {
    world.create(MAPS, with_owners(map(name), owners)).await
}

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

fn owners_of(object: &Value) -> Vec<&str> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().map(|one| one["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn dependents_go_after_their_owner_in_the_background() {
    let world = World::with(GC).await;
    let first = owner(&world, "owner").await;
    let second = dependent(&world, "child", &[owned_by(&first)]).await;
    dependent(&world, "grandchild", &[owned_by(&second)]).await;
    owner(&world, "bystander").await;
    world.delete(&at("owner"), Some(Background)).await;
    world.until_gone(&at("grandchild")).await;
    assert!(world.find(&at("child")).await.is_none());
    world.until_collected().await;
    assert!(world.find(&at("bystander")).await.is_some());
}

#[tokio::test]
async fn what_is_stored_in_a_version_that_is_not_served_goes_after_its_owner() {
    let world = World::with(GC).await;
    world.create("apiextensions.k8s.io@v1/customresourcedefinitions", tools()).await;
    let first = owner(&world, "owner").await;
    world.create("example.io@v2/tools/default", with_owners(tool("t"), &[owned_by(&first)])).await;
    world.delete(&at("owner"), Some(Background)).await;
    world.until_gone("example.io@v2/tools/default/t").await;
}

#[tokio::test]
async fn one_that_comes_after_its_owner_has_gone_goes_too() {
    let world = World::with(GC).await;
    let gone = owner(&world, "owner").await;
    world.delete(&at("owner"), Some(Background)).await;
    dependent(&world, "late", &[owned_by(&gone)]).await;
    world.until_gone(&at("late")).await;
}

#[tokio::test]
async fn one_that_comes_after_its_owner_goes_too_where_the_owner_was_known_and_had_nobody_in_the_end() {
    let world = World::with(GC).await;
    let gone = owner(&world, "owner").await;
    dependent(&world, "first", &[owned_by(&gone)]).await;
    // By then the owner was asked for, and found.
    world.until_collected().await;
    world.delete(&at("first"), None).await;
    world.delete(&at("owner"), None).await;
    dependent(&world, "late", &[owned_by(&gone)]).await;
    world.until_collected().await;
    assert!(world.find(&at("late")).await.is_none());
}

#[tokio::test]
async fn a_new_owner_of_the_same_name_is_not_the_owner() {
    let world = World::with(GC).await;
    let gone = owner(&world, "owner").await;
    world.delete(&at("owner"), Some(Background)).await;
    owner(&world, "owner").await;
    dependent(&world, "child", &[owned_by(&gone)]).await;
    world.until_gone(&at("child")).await;
    assert!(world.find(&at("owner")).await.is_some());
}

#[tokio::test]
async fn one_living_owner_is_enough_and_the_others_are_forgotten() {
    let world = World::with(GC).await;
    let (stays, goes) = (owner(&world, "stays").await, owner(&world, "goes").await);
    dependent(&world, "child", &[owned_by(&stays), owned_by(&goes)]).await;
    world.delete(&at("goes"), Some(Background)).await;
    world.until(&at("child"), |child| owners_of(child.expect("stays")) == ["stays"]).await;
    world.delete(&at("stays"), Some(Background)).await;
    world.until_gone(&at("child")).await;
}

#[tokio::test]
async fn an_owner_waits_in_the_foreground_for_those_that_block_it() {
    let world = World::with(GC).await;
    let first = owner(&world, "owner").await;
    let child = held(with_owners(map("blocks"), &[blocking(&first)]), "example.io/hold");
    world.create(MAPS, child).await;
    dependent(&world, "free", &[owned_by(&first)]).await;
    world.delete(&at("owner"), Some(Foreground)).await;
    world
        .until(&at("blocks"), |child| child.expect("held")["metadata"]["deletionTimestamp"].is_string())
        .await;
    world.until_gone(&at("free")).await;
    world.until_collected().await;
    let waits = world.get(&at("owner")).await;
    assert_eq!(waits["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    world.merge(&at("blocks"), json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone(&at("owner")).await;
}

#[tokio::test]
async fn the_foreground_reaches_down_to_grandchildren() {
    let world = World::with(GC).await;
    let first = owner(&world, "owner").await;
    let second = dependent(&world, "child", &[blocking(&first)]).await;
    let third = held(with_owners(map("grandchild"), &[blocking(&second)]), "example.io/hold");
    world.create(MAPS, third).await;
    world.delete(&at("owner"), Some(Foreground)).await;
    world
        .until(&at("grandchild"), |found| found.expect("held")["metadata"]["deletionTimestamp"].is_string())
        .await;
    for waits in ["owner", "child"] {
        assert_eq!(
            world.get(&at(waits)).await["metadata"]["finalizers"],
            json!(["foregroundDeletion"]),
            "{waits}"
        );
    }
    world.merge(&at("grandchild"), json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone(&at("owner")).await;
    assert!(world.find(&at("child")).await.is_none() && world.find(&at("grandchild")).await.is_none());
}

#[tokio::test]
async fn an_owner_with_many_dependents_goes_last_in_the_foreground() {
    let world = World::with(GC).await;
    let first = owner(&world, "owner").await;
    for number in 0..50 {
        dependent(&world, &format!("child-{number}"), &[blocking(&first)]).await;
    }
    // Deleted at once, before the graph can have seen the last of them.
    world.delete(&at("owner"), Some(Foreground)).await;
    world.until_gone(&at("owner")).await;
    for number in 0..50 {
        assert!(world.find(&at(&format!("child-{number}"))).await.is_none(), "{number}");
    }
}

#[tokio::test]
async fn orphans_keep_living_without_the_reference() {
    let world = World::with(GC).await;
    let (first, other) = (owner(&world, "owner").await, owner(&world, "other").await);
    for number in 0..40 {
        dependent(&world, &format!("child-{number}"), &[owned_by(&first)]).await;
    }
    dependent(&world, "shared", &[owned_by(&first), owned_by(&other)]).await;
    world.delete(&at("owner"), Some(Orphan)).await;
    world.until_gone(&at("owner")).await;
    world.until_collected().await;
    for number in 0..40 {
        let child = world.get(&at(&format!("child-{number}"))).await;
        assert_eq!(child["metadata"].get("ownerReferences"), None, "{number}");
    }
    assert_eq!(owners_of(&world.get(&at("shared")).await), ["other"]);
}

#[tokio::test]
async fn a_circle_ends_when_one_of_it_is_deleted() {
    for policy in [Background, Foreground] {
        let world = World::with(GC).await;
        let first = owner(&world, "first").await;
        let second = dependent(&world, "second", &[blocking(&first)]).await;
        let third = dependent(&world, "third", &[blocking(&second)]).await;
        world.merge(&at("first"), json!({ "metadata": { "ownerReferences": [blocking(&third)] } })).await;
        world.until_collected().await;
        world.delete(&at("first"), Some(policy)).await;
        for name in ["first", "second", "third"] {
            world.until_gone(&at(name)).await;
        }
    }
}

#[tokio::test]
async fn one_that_owns_itself_ends_in_the_foreground() {
    let world = World::with(GC).await;
    let own = owner(&world, "own").await;
    world.merge(&at("own"), json!({ "metadata": { "ownerReferences": [blocking(&own)] } })).await;
    world.delete(&at("own"), Some(Foreground)).await;
    world.until_gone(&at("own")).await;
}

#[tokio::test]
async fn custom_resources_own_and_are_owned() {
    let world = World::with(GC).await.with_widgets().await;
    let widgets = "example.io@v1/widgets/default";
    let first = world.create(widgets, widget("owner")).await;
    let child = dependent(&world, "child", &[blocking(&first)]).await;
    world.create(widgets, with_owners(widget("grandchild"), &[blocking(&child)])).await;
    world.delete(&format!("{widgets}/owner"), Some(Foreground)).await;
    world.until_gone(&format!("{widgets}/owner")).await;
    assert!(world.find(&at("child")).await.is_none());
    assert!(world.find(&format!("{widgets}/grandchild")).await.is_none());

    let second = world.create(widgets, widget("owner")).await;
    let orphan = world.create(widgets, with_owners(widget("orphan"), &[owned_by(&second)])).await;
    assert_eq!(owners_of(&orphan), ["owner"]);
    world.delete(&format!("{widgets}/owner"), Some(Orphan)).await;
    world.until_gone(&format!("{widgets}/owner")).await;
    world.until_collected().await;
    let orphan = world.get(&format!("{widgets}/orphan")).await;
    assert_eq!(orphan["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn an_owner_of_the_cluster_owns_in_namespaces_but_not_the_other_way_round() {
    let world = World::with(GC).await.with_widgets().await;
    let gears = "example.io@v1/gears";
    let gear =
        |name: &str| json!({ "apiVersion": "example.io/v1", "kind": "Gear", "metadata": { "name": name } });
    let first = world.create(gears, gear("owner")).await;
    dependent(&world, "child", &[owned_by(&first)]).await;
    let map = owner(&world, "map").await;
    world.create(gears, with_owners(gear("wrong"), &[owned_by(&map)])).await;
    world.delete(&format!("{gears}/owner"), Some(Background)).await;
    world.until_gone(&at("child")).await;
    world.delete(&at("map"), Some(Background)).await;
    world.until_collected().await;
    assert!(world.find(&format!("{gears}/wrong")).await.is_some());
}

#[tokio::test]
async fn an_owner_in_another_namespace_is_none() {
    let world = World::with(GC).await;
    let elsewhere = world.create("@v1/configmaps/kube-system", map("owner")).await;
    dependent(&world, "child", &[owned_by(&elsewhere)]).await;
    world.until_gone(&at("child")).await;
    assert!(world.find("@v1/configmaps/kube-system/owner").await.is_some());
}

#[tokio::test]
async fn what_cannot_be_owned_from_there_holds_no_owner_in_the_foreground() {
    const ELSEWHERE: &str = "@v1/configmaps/kube-system";
    let world = World::with(GC).await.with_widgets().await;
    let first = owner(&world, "owner").await;
    // From another namespace, where whoever made it need not have a right to the owner's: one that does not
    // go, and one of which nobody can say whether it has another owner.
    let stays = held(with_owners(map("stays"), &[blocking(&first)]), "example.io/hold");
    world.create(ELSEWHERE, stays).await;
    let unserved = json!({ "apiVersion": "example.io/v9", "kind": "Unserved", "name": "u", "uid": "u" });
    world.create(ELSEWHERE, with_owners(map("unclear"), &[unserved, blocking(&first)])).await;
    // From no namespace: left as it is, for ever.
    let gear = json!({ "apiVersion": "example.io/v1", "kind": "Gear", "metadata": { "name": "wrong" } });
    world.create("example.io@v1/gears", with_owners(gear, &[blocking(&first)])).await;
    dependent(&world, "child", &[blocking(&first)]).await;
    world.delete(&at("owner"), Some(Foreground)).await;
    world.until_gone(&at("owner")).await;
    assert!(world.find(&at("child")).await.is_none());
    world.until_collected().await;
    assert!(world.find(&format!("{ELSEWHERE}/unclear")).await.is_some());
    assert!(world.find("example.io@v1/gears/wrong").await.is_some());
    // It has no owner where it is, and is let go of as such.
    let stays = world.get(&format!("{ELSEWHERE}/stays")).await;
    assert!(stays["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn an_owner_of_the_cluster_waits_for_those_in_namespaces() {
    let world = World::with(GC).await.with_widgets().await;
    let gear = json!({ "apiVersion": "example.io/v1", "kind": "Gear", "metadata": { "name": "owner" } });
    let gear = world.create("example.io@v1/gears", gear).await;
    world.create(MAPS, held(with_owners(map("child"), &[blocking(&gear)]), "example.io/hold")).await;
    world.delete("example.io@v1/gears/owner", Some(Foreground)).await;
    world
        .until(&at("child"), |child| child.expect("held")["metadata"]["deletionTimestamp"].is_string())
        .await;
    world.until_collected().await;
    assert!(world.find("example.io@v1/gears/owner").await.is_some());
    world.merge(&at("child"), json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone("example.io@v1/gears/owner").await;
}

#[tokio::test]
async fn an_orphaning_owner_lets_go_of_those_that_it_has_alone() {
    let world = World::with(GC).await;
    let first = owner(&world, "owner").await;
    let elsewhere = held(with_owners(map("wrong"), &[owned_by(&first)]), "example.io/hold");
    world.create("@v1/configmaps/kube-system", elsewhere).await;
    dependent(&world, "child", &[owned_by(&first)]).await;
    world.delete(&at("owner"), Some(Orphan)).await;
    world.until_gone(&at("owner")).await;
    assert_eq!(owners_of(&world.get(&at("child")).await), [""; 0]);
    let wrong = world.get("@v1/configmaps/kube-system/wrong").await;
    assert_eq!(owners_of(&wrong), ["owner"]);
}

#[tokio::test]
async fn an_owner_of_a_kind_that_is_not_served_holds_until_the_kind_comes() {
    let world = World::with(GC).await;
    let reference = json!({ "apiVersion": "example.io/v1", "kind": "Widget", "name": "w", "uid": "1" });
    dependent(&world, "child", &[reference]).await;
    world.until_collected().await;
    assert!(world.find(&at("child")).await.is_some());
    let world = world.with_widgets().await;
    world.until_gone(&at("child")).await;
}

#[tokio::test]
async fn an_owner_that_is_being_deleted_otherwise_still_owns() {
    let world = World::with(GC).await;
    let first = world.create(MAPS, held(map("owner"), "example.io/hold")).await;
    dependent(&world, "child", &[owned_by(&first)]).await;
    world.delete(&at("owner"), Some(Background)).await;
    world.until_collected().await;
    assert!(world.find(&at("child")).await.is_some());
    world.merge(&at("owner"), json!({ "metadata": { "finalizers": null } })).await;
    world.until_gone(&at("child")).await;
}

#[tokio::test]
async fn a_deployment_goes_with_everything_below_it() {
    let world = World::with(GC).await;
    let labels = json!({ "app": "a" });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let workload = |kind: &str, name: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
            "spec": { "selector": { "matchLabels": labels }, "template": template },
        })
    };
    for policy in [Background, Foreground] {
        let deployment = world.create("apps@v1/deployments/default", workload("Deployment", "d")).await;
        let set = with_owners(workload("ReplicaSet", "rs"), &[blocking(&deployment)]);
        let set = world.create("apps@v1/replicasets/default", set).await;
        world.create("@v1/pods/default", with_owners(world::pod("p"), &[blocking(&set)])).await;
        world.delete("apps@v1/deployments/default/d", Some(policy)).await;
        world.until_gone("apps@v1/deployments/default/d").await;
        world.until_gone("apps@v1/replicasets/default/rs").await;
        world.until_gone("@v1/pods/default/p").await;
    }
}

#[tokio::test]
async fn what_was_begun_is_finished_after_a_restart() {
    let world = World::with("").await;
    let (fg, orphaner, gone) =
        (owner(&world, "fg").await, owner(&world, "orphaner").await, owner(&world, "gone").await);
    dependent(&world, "blocks", &[blocking(&fg)]).await;
    dependent(&world, "orphan", &[owned_by(&orphaner)]).await;
    dependent(&world, "child", &[owned_by(&gone)]).await;
    world.delete(&at("fg"), Some(Foreground)).await;
    world.delete(&at("orphaner"), Some(Orphan)).await;
    world.delete(&at("gone"), Some(Background)).await;
    for there in ["fg", "orphaner", "child", "blocks"] {
        assert!(world.find(&at(there)).await.is_some(), "{there}: nobody collects yet");
    }
    let world = world.restart(GC).await;
    for name in ["fg", "orphaner", "child", "blocks"] {
        world.until_gone(&at(name)).await;
    }
    assert_eq!(world.get(&at("orphan")).await["metadata"].get("ownerReferences"), None);
}
