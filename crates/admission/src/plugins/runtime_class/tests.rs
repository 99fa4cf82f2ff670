//! Which tolerations of a pod and its runtime class are needless.

use serde_json::{Value, json};

use super::*;

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
