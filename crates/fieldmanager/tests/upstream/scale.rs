//! Entries of objects and of their Scales, random: each becomes what upstream's scale handler makes of it.

use forebay_apimachinery::Lease;
use forebay_fieldmanager::{ReplicasPaths, ScaleEntries, custom_replicas_paths, replicas_paths};
use serde_json::{Value, json};

use crate::go;
use crate::random::Random;

const CASES: usize = 2_000;
const SCALE: &str = r#"{"f:spec":{"f:replicas":{}}}"#;

/// Entries of managers with few names, in versions with a Scale, without one, and not known.
fn entries(random: &mut Random, versions: &[&str], fields: &[&str]) -> Value {
    let entry = |random: &mut Random| {
        let fields: Value = serde_json::from_str(random.of::<&str>(fields)).expect("fields");
        let mut entry = json!({
            "manager": random.of(&["a", "b", "c"]), "operation": random.of(&["Apply", "Update"]),
            "apiVersion": random.of(versions), "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        match random.below(3) {
            0 => {}
            second => entry["time"] = json!(format!("2020-01-01T00:00:0{second}Z")),
        }
        if random.below(3) == 0 {
            entry["subresource"] = json!("scale");
        }
        entry
    };
    (0..random.below(4)).map(|_| entry(random)).collect()
}

#[test]
fn replicas_have_the_same_owner_in_an_object_and_in_its_scale() {
    let paths = json!({"apps/v1": ["spec", "replicas"], "example.com/v1": ["spec", "a", "count"], "example.com/v2": []});
    let of_object = ["apps/v1", "example.com/v1", "example.com/v2", "gone/v1"];
    let fields = [
        SCALE,
        r#"{"f:spec":{"f:replicas":{},"f:x":{}}}"#,
        r#"{"f:spec":{"f:a":{"f:count":{}}}}"#,
        r#"{"f:x":{}}"#,
    ];
    let mut random = Random::new(1);
    let cases: Vec<Value> = (0..CASES)
        .map(|_| {
            let of_scale = match random.below(2) {
                0 => Value::Null,
                _ => entries(&mut random, &["autoscaling/v1"], &[SCALE, r#"{"f:x":{}}"#]),
            };
            json!({
                "OfObject": entries(&mut random, &of_object, &fields), "OfScale": of_scale, "Paths": paths,
                "APIVersion": random.of(&["apps/v1", "example.com/v1"]),
            })
        })
        .collect();
    let questions: String = cases.iter().map(|case| format!("{case}\n")).collect();
    let Some(answers) = go::ask(&["scale"], &questions) else { return };
    let lease = Lease::of_server();
    let mut known: ReplicasPaths = replicas_paths("apps", "deployments");
    known.retain(|version, _| version == "apps/v1");
    known.extend(custom_replicas_paths("example.com", &[("v1", Some("spec.a.count")), ("v2", None)]));
    for (case, answer) in cases.iter().zip(&answers) {
        let scale = ScaleEntries {
            of_object: case["OfObject"].as_array().expect("entries"),
            api_version: case["APIVersion"].as_str().expect("a version"),
            paths: &known,
            lease: &lease,
        };
        let ours = match case["OfScale"].as_array() {
            None => scale.to_scale(),
            Some(of_scale) => scale.to_object(of_scale),
        };
        let theirs = answer["entries"].as_array().cloned().unwrap_or_default();
        assert_eq!(ours, Ok(theirs), "{case}");
    }
}

#[test]
fn built_in_resources_with_a_scale_have_their_replicas_in_one_place() {
    let versions = |group, resource| replicas_paths(group, resource).into_keys().collect::<Vec<_>>();
    assert_eq!(versions("", "replicationcontrollers"), ["v1"]);
    assert_eq!(versions("apps", "replicasets"), ["apps/v1", "apps/v1beta2"]);
    assert_eq!(versions("apps", "daemonsets"), [""; 0]);
}
