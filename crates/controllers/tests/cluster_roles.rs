//! Roles that take in others have their rules.

mod world;

use serde_json::{Value, json};
use world::World;

const CONTROLLER: &str = "clusterrole-aggregation-controller";
const ROLES: &str = "rbac.authorization.k8s.io@v1/clusterroles";

fn role(name: &str, labels: Value, resource: &str) -> Value {
    let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": [resource]});
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels}, "rules": [rule],
    })
}

fn resources(role: &Value) -> Vec<&str> {
    let rules = role["rules"].as_array().into_iter().flatten();
    let resources = rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
    resources.filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn a_role_has_the_rules_of_those_that_it_selects_by_name_and_each_once() {
    let world = World::with(CONTROLLER).await;
    for (name, resource) in [("b", "pods"), ("a", "secrets"), ("c", "pods")] {
        world.create(ROLES, role(name, json!({"of": "all"}), resource)).await;
    }
    let mut all = role("all", json!({}), "nothing");
    all["rules"] = json!([]);
    all["aggregationRule"] = json!({"clusterRoleSelectors": [
        {"matchLabels": {"of": "all"}}, {"matchExpressions": [{"key": "more", "operator": "Exists"}]},
    ]});
    world.create(ROLES, all).await;
    let path = format!("{ROLES}/all");
    world.until(&path, |role| role.is_some_and(|role| resources(role) == ["secrets", "pods"])).await;

    world.create(ROLES, role("z", json!({"more": ""}), "nodes")).await;
    world.until(&path, |role| role.is_some_and(|role| resources(role) == ["secrets", "pods", "nodes"])).await;
    let managers = world.get(&path).await["metadata"]["managedFields"].to_string();
    assert!(managers.contains(CONTROLLER) && managers.contains("\"Apply\""), "{managers}");
    for name in ["a", "b", "c"] {
        world.delete(&format!("{ROLES}/{name}"), None).await;
    }
    world.until(&path, |role| role.is_some_and(|role| resources(role) == ["nodes"])).await;
}

#[tokio::test]
async fn the_roles_that_every_server_has_are_filled() {
    let world = World::with(CONTROLLER).await;
    for name in ["admin", "edit", "view"] {
        let path = format!("{ROLES}/{name}");
        world.until(&path, |role| role.is_some_and(|role| resources(role).contains(&"pods"))).await;
    }
    assert!(resources(&world.get(&format!("{ROLES}/admin")).await).len() > 10);
}
