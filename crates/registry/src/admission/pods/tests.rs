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

/// What is kept, found by comparing each with each.
fn compared(all: &[&Members]) -> Vec<Value> {
    let is_superset = |wide: &Members, narrow: &Members| {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|name| text(wide, name));
        let own = int(narrow, "tolerationSeconds");
        let is_long =
            int(wide, "tolerationSeconds").is_none_or(|seconds| own.is_some_and(|own| own <= seconds));
        let is_of_key = text(narrow, "key") == key || (key.is_empty() && operator == "Exists");
        wide == narrow
            || (is_of_key
                && (text(narrow, "effect") == effect || effect.is_empty())
                && (effect != "NoExecute" || is_long)
                && match operator {
                    "Equal" | "" => text(narrow, "operator") == "Equal" && text(narrow, "value") == value,
                    operator => operator == "Exists",
                })
    };
    let mut kept: Vec<&Members> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let wider = |other: &&Members| other != toleration && is_superset(other, toleration);
        if !kept.iter().any(|other| is_superset(other, toleration)) && !all[index + 1..].iter().any(wider) {
            kept.push(toleration);
        }
    }
    kept.into_iter().map(|toleration| Value::Object(toleration.clone())).collect()
}

#[test]
fn what_is_needless_is_what_comparing_each_with_each_finds() {
    let mut random = 7_u64;
    let mut one_of = |choices: &[&str]| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let count = u64::try_from(choices.len()).expect("few");
        choices[usize::try_from((random >> 33) % count).expect("few")].to_owned()
    };
    for _ in 0..3_000 {
        let all: Vec<Value> = (0..7)
            .map(|_| {
                let mut toleration = json!({});
                for (name, choices) in [
                    ("key", ["", "a", "b"]),
                    ("operator", ["", "Exists", "Equal"]),
                    ("value", ["", "v", "w"]),
                    ("effect", ["", "NoExecute", "NoSchedule"]),
                ] {
                    let chosen = one_of(&choices);
                    if !chosen.is_empty() {
                        toleration[name] = Value::from(chosen);
                    }
                }
                if let Ok(seconds) = one_of(&["", "-1", "5"]).parse::<i64>() {
                    toleration["tolerationSeconds"] = Value::from(seconds);
                }
                toleration
            })
            .collect();
        let all: Vec<&Members> = all.iter().map(|one| one.as_object().expect("an object")).collect();
        assert_eq!(merged(&all), compared(&all), "{all:?}");
    }
}

#[test]
fn tolerations_are_merged_in_as_many_steps_as_there_are_of_them() {
    let cost = |count: i64, make: fn(i64) -> Value| {
        let all: Vec<Value> = (0..count).map(make).collect();
        let all: Vec<&Members> = all.iter().map(|one| one.as_object().expect("an object")).collect();
        steps::counted(|| drop(merged(&all)))
    };
    let kinds: [fn(i64) -> Value; 3] = [
        |index| json!({"key": format!("k{index}"), "operator": "Exists"}),
        |index| json!({"key": "k", "operator": "Equal", "value": format!("{index}"), "effect": "NoExecute"}),
        |index| json!({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": index}),
    ];
    for make in kinds {
        let (few, many) = (cost(2_000, make), cost(8_000, make));
        assert!(few > 0 && many <= 5 * few && many <= 8_000 * 32, "{few} steps, {many} steps");
    }
}
