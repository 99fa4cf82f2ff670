//! Bindings of pods to nodes.
//!
//! In: a pod and a Binding. Out: the pod on its node, or why not. Never: a store.

use serde_json::{Value, json};

use crate::{BindingError, Context, bind};

const CONTEXT: Context<'static> = Context { now: "2026-01-01T00:00:00Z", user: None };

fn binding(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"a": "b"}}, "target": {"kind": "Node", "name": node}})
}

#[test]
fn a_bound_pod_is_scheduled() {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {}, "status": {"nominatedNodeName": "m"}});
    assert_eq!(bind("p", &binding("p", "n"), &mut pod, &CONTEXT), Ok(()));
    assert_eq!(pod["spec"]["nodeName"], "n");
    assert_eq!(pod["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(
        pod["status"],
        json!({"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": CONTEXT.now}]})
    );
}

#[test]
fn a_pod_is_not_bound_twice_or_while_it_is_held() {
    let rows = [
        (json!({"metadata": {}, "spec": {"nodeName": "m"}}), "pod p is already assigned to node \"m\""),
        (
            json!({"metadata": {"deletionTimestamp": "t"}, "spec": {}}),
            "pod p is being deleted, cannot be assigned to a host",
        ),
        (
            json!({"metadata": {}, "spec": {"schedulingGates": [{"name": "g"}]}}),
            "pod p has non-empty .spec.schedulingGates",
        ),
    ];
    for (mut pod, message) in rows {
        let before = pod.clone();
        let refused = Err(BindingError::Conflict(message.into()));
        assert_eq!(bind("p", &binding("p", "n"), &mut pod, &CONTEXT), refused);
        assert_eq!(pod, before);
    }
}

#[test]
fn a_binding_names_its_pod_and_a_node() {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {}});
    assert_eq!(bind("p", &binding("q", "n"), &mut pod, &CONTEXT), Err(BindingError::OtherName));
    match bind("p", &binding("p", ""), &mut pod, &CONTEXT) {
        Err(BindingError::Invalid(causes)) => {
            assert_eq!(
                (causes[0].field.as_str(), causes[0].message.as_str()),
                ("target.name", "Required value")
            );
        }
        other => panic!("{other:?}"),
    }
}
