//! Objects that were written twice, and differ in times, in an entry, in a field, or not: what is kept of the
//! old times is what upstream keeps.

use forebay_fieldmanager::{FieldType, keep_times_if_repeated};
use forebay_merge::Untyped;
use forebay_schema::builtin::{codec, to_go_form};
use serde_json::{Value, json};

use crate::random::Random;
use crate::requests::built_in_names;
use crate::{go, objects};

const CASES: usize = 2_000;

fn entries(random: &mut Random) -> Value {
    let entry = |random: &mut Random| {
        let mut entry = json!({
            "manager": random.of(&["a", "b"]), "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {(*random.of(&["f:a", "f:b"])): {}}},
        });
        match random.below(4) {
            0 => {}
            second => entry["time"] = json!(format!("2020-01-01T00:00:0{second}Z")),
        }
        entry
    };
    (0..random.below(3)).map(|_| entry(random)).collect()
}

/// The same object again, with something else or not.
fn again(random: &mut Random, object: &Value) -> Value {
    let mut new = object.clone();
    if let Some(entries) = new["metadata"]["managedFields"].as_array_mut() {
        for entry in entries {
            match random.below(3) {
                0 => entry["time"] = json!(format!("2020-01-01T00:00:0{}Z", 1 + random.below(3))),
                1 if random.below(4) == 0 => entry["fieldsV1"] = json!({"f:c": {}}),
                _ => {}
            }
        }
    }
    match random.below(6) {
        0 => new["metadata"]["labels"] = json!({"x": "y"}),
        1 => new["spec"] = json!({}),
        2 => new["metadata"]["managedFields"] = entries(random),
        _ => {}
    }
    new
}

#[test]
fn times_stay_if_nothing_else_changes() {
    let mut random = Random::new(1);
    let deployment = FieldType::of_kind("apps", "v1", "Deployment").expect("a kind");
    let FieldType::BuiltIn(id, _) = deployment else { panic!("{deployment:?}") };
    let cases: Vec<Value> = (0..CASES)
        .map(|_| {
            let is_custom = random.below(2) == 0;
            let mut old = match is_custom {
                true => json!({"spec": objects::value(&mut random, FieldType::Untyped(Untyped::Deduced), &built_in_names, 3)}),
                false => objects::value(&mut random, deployment, &built_in_names, 5),
            };
            old["apiVersion"] = json!("apps/v1");
            old["kind"] = json!("Deployment");
            old["metadata"] = json!({"name": "n", "managedFields": entries(&mut random)});
            let mut new = again(&mut random, &old);
            for object in [&mut old, &mut new].into_iter().filter(|_| !is_custom) {
                codec::normalize(id, object).expect("a Deployment");
                to_go_form(id, object);
            }
            json!({"Custom": is_custom, "Old": old, "New": new})
        })
        .collect();
    let questions: String = cases.iter().map(|case| format!("{case}\n")).collect();
    let Some(answers) = go::ask(&["repeats"], &questions) else { return };
    let mut kept = 0;
    for (case, answer) in cases.iter().zip(&answers) {
        let mut ours = case["New"].clone();
        keep_times_if_repeated(&mut ours, &case["Old"]);
        kept += usize::from(ours != case["New"]);
        let entries =
            |object: &Value| object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        assert_eq!(entries(&ours), entries(answer), "{case}");
    }
    assert!(kept > CASES / 10, "{kept}");
}
