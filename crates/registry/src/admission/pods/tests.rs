//! What is filled in of pods and nodes that no class is needed for.
//!
//! In: objects. Out: nothing. Never: a store; what classes bring is tested with one.

use serde_json::{Value, json};

use super::*;

fn filled(fill: fn(&mut Members) -> Result<(), String>, mut object: Value) -> Value {
    fill(object.as_object_mut().expect("an object")).expect("let in");
    object
}

fn lost(key: &str) -> Value {
    json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
}

#[test]
fn pods_tolerate_lost_nodes_for_a_while_unless_they_say_how_long() {
    let own = json!({"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"});
    let all = json!({"operator": "Exists"});
    let other = json!({"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"});
    for (given, wanted) in [
        (json!(null), json!([lost(NOT_READY), lost(UNREACHABLE)])),
        (json!([own]), json!([own, lost(UNREACHABLE)])),
        (json!([all]), json!([all])),
        (json!([other]), json!([other, lost(NOT_READY), lost(UNREACHABLE)])),
    ] {
        let spec = if given.is_null() { json!({}) } else { json!({"tolerations": given}) };
        let pod = filled(tolerate_lost_nodes, json!({"spec": spec}));
        assert_eq!(pod["spec"]["tolerations"], wanted, "{given}");
        assert_eq!(filled(tolerate_lost_nodes, pod.clone()), pod, "{given}");
    }
}

#[test]
fn a_new_node_has_a_taint_once() {
    let node = filled(taint_node, json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}));
    let taints = json!([{"key": "a", "effect": "NoSchedule"}, {"key": NOT_READY, "effect": "NoSchedule"}]);
    assert_eq!(node["spec"]["taints"], taints);
    assert_eq!(filled(taint_node, node.clone()), node);
}

#[test]
fn tolerations_that_another_one_makes_needless_go() {
    let [wide, narrow, other] = [
        json!({"key": "a", "operator": "Exists"}),
        json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}),
        json!({"key": "c", "operator": "Exists"}),
    ];
    let short = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
    let long = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
    for (all, wanted) in [
        (vec![&narrow, &wide, &other], vec![&wide, &other]),
        (vec![&wide, &narrow, &wide], vec![&wide]),
        (vec![&short, &long], vec![&long]),
        (vec![&other, &narrow], vec![&other, &narrow]),
    ] {
        let all: Vec<&Members> = all.into_iter().map(|one| one.as_object().expect("an object")).collect();
        assert_eq!(merged(&all).iter().collect::<Vec<_>>(), wanted);
    }
}
