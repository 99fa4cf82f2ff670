//! What the authors of pods are told.
//!
//! In: specs. Out: warnings as kube-apiserver v1.36.3 gives them. Never: causes.

use serde_json::{Value, json};

use crate::core::pod::warnings::{of_pod, of_template};
use crate::field::Path;

fn pod_warnings(pod: &Value) -> Vec<String> {
    let mut out = Vec::new();
    of_pod(pod.as_object().expect("an object"), None, &mut out);
    out
}

fn spec_warnings(spec: Value) -> Vec<String> {
    pod_warnings(&json!({ "metadata": { "name": "p" }, "spec": spec }))
}

#[test]
fn what_is_let_through_but_is_no_good_idea_is_said() {
    for (spec, want) in [
        (json!({}), vec![]),
        (
            json!({ "nodeSelector": { "beta.kubernetes.io/os": "linux" } }),
            vec![
                r#"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#,
            ],
        ),
        (
            json!({ "topologySpreadConstraints": [{ "topologyKey": "zone" }] }),
            vec![
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
        (
            json!({ "hostAliases": [{ "ip": "1.2.3.4" }, { "ip": "1.2.3.4" }] }),
            vec![r#"spec.hostAliases[1].ip: duplicate ip "1.2.3.4""#],
        ),
        (
            json!({ "imagePullSecrets": [{ "name": "" }] }),
            vec![r#"spec.imagePullSecrets[0].name: invalid empty name """#],
        ),
        (
            json!({ "volumes": [{ "name": "v", "gitRepo": {} }] }),
            vec!["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
        ),
        (
            json!({ "terminationGracePeriodSeconds": -1 }),
            vec![
                "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
            ],
        ),
        (
            json!({ "containers": [{ "name": "c", "resources": { "limits": { "memory": "100m" } } }] }),
            vec![
                r#"spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer"#,
            ],
        ),
    ] {
        assert_eq!(spec_warnings(spec.clone()), want, "{spec}");
    }
}

#[test]
fn a_variable_hides_an_earlier_one_unless_it_builds_on_it() {
    let env = |second: &str| {
        spec_warnings(
            json!({ "containers": [{ "env": [{ "name": "X", "value": "a" }, { "name": "X", "value": second }] }] }),
        )
    };
    let hidden = r#"spec.containers[0].env[1]: hides previous definition of "X", which may be dropped when using apply"#;
    assert_eq!(env("b"), [hidden]);
    assert_eq!(env("$(X)"), [hidden]);
    assert!(env("$(X)b").is_empty());
}

#[test]
fn ports_that_get_into_each_others_way_are_said() {
    let ports = |one: Value, other: Value| {
        spec_warnings(json!({ "initContainers": [{ "ports": [one] }], "containers": [{ "ports": [other] }] }))
    };
    let port = |host: i64, ip: &str| json!({ "containerPort": 80, "protocol": "TCP", "hostPort": host, "hostIP": ip });
    let at = "spec.containers[0].ports[0]";
    let first = "spec.initContainers[0].ports[0]";
    assert_eq!(ports(port(1, ""), port(1, "")), [format!("{at}: duplicate port definition with {first}")]);
    assert_eq!(ports(port(1, ""), port(0, "")), [format!("{at}: overlapping port definition with {first}")]);
    let ambiguous = format!("{at}: dangerously ambiguous port definition with {first}");
    assert_eq!(ports(port(1, "1.2.3.4"), port(1, "")), [ambiguous]);
    assert!(ports(port(1, ""), port(2, "")).is_empty());
    let named = json!({ "name": "web", "containerPort": 1 });
    let other = json!({ "name": "web", "containerPort": 2 });
    assert_eq!(
        ports(named, other),
        [format!(
            "{at}: duplicate port name \"web\" with {first}, services and probes that select ports by name will use {first}"
        )]
    );
}

#[test]
fn files_of_one_volume_that_overlap_are_said() {
    let volume = |items: Value| {
        spec_warnings(json!({ "volumes": [{ "name": "v", "configMap": { "name": "m", "items": items } }] }))
    };
    let said = |file: &str, other: &str| {
        vec![format!("volume \"v\" (ConfigMap \"m\"): overlapping paths: \"{file}\" with \"{other}\"")]
    };
    assert_eq!(volume(json!([{ "path": "a" }, { "path": "a" }])), said("a", "a"));
    assert_eq!(volume(json!([{ "path": "a/b" }, { "path": "a" }])), said("a", "a/b"));
    assert!(volume(json!([{ "path": "a" }, { "path": "ab" }])).is_empty());
}

#[test]
fn names_and_places_are_those_of_the_object() {
    let pod = json!({ "metadata": { "name": "a.b" } });
    assert_eq!(pod_warnings(&pod).len(), 1);
    assert!(pod_warnings(&pod)[0].starts_with("metadata.name: this is used in the Pod's hostname"));
    let (mut out, at) = (Vec::new(), Path::root("spec"));
    let template = json!({ "spec": { "terminationGracePeriodSeconds": -1 } });
    of_template(template.as_object().expect("an object"), Some(&at.child("template")), &mut out);
    assert!(out[0].starts_with("spec.template.spec.terminationGracePeriodSeconds: "), "{out:?}");
}
