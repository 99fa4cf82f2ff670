//! NodeDeclaredFeatureValidator: a pod that is on a node is changed only in ways that the node says it can.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/nodedeclaredfeatures`; k8s.io/component-helpers v0.36.3
//! `nodedeclaredfeatures/features`.

use forebay_api::Eventual;
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

const NODES: ReadFrom = ("", "nodes");

/// What a node has to be able to do for an update from one pod to another.
type Needed = fn(&Value, &Value) -> bool;

/// By name, in order.
const FEATURES: [(&str, Needed); 2] = [
    ("InPlacePodLevelResourcesVerticalScaling", resizes_pod),
    ("InPlacePodVerticalScalingInitContainers", resizes_init_container),
];

pub struct NodeDeclaredFeatureValidator;

impl Plugin for NodeDeclaredFeatureValidator {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatureValidator"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.updates() && (write.is_of("", "pods") || write.is_of_part("", "pods", "resize"))
    }

    fn decides_by(&self) -> &'static [ReadFrom] {
        &[NODES]
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let node = object["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
        let (Some(old), Some(node)) = (write.old, node) else { return Eventual::Now(Ok(())) };
        // It goes up with each change of the spec.
        if old["metadata"]["generation"] == object["metadata"]["generation"] {
            return Eventual::Now(Ok(()));
        }
        let needed = FEATURES.iter().filter(|(_, is_needed)| is_needed(old, object)).map(|(name, _)| *name);
        let needed: Vec<&str> = needed.collect();
        if needed.is_empty() {
            return Eventual::Now(Ok(()));
        }
        let Some(found) = tools.class(NODES, node) else {
            return Eventual::Now(Err(write.forbidden(object, &format!("node {node:?} not found"))));
        };
        let declared = &found["status"]["declaredFeatures"];
        let is_declared = |name: &&str| {
            // Few: the features of the table above.
            declared.as_array().into_iter().flatten().any(|declared| declared == name)
        };
        let missing: Vec<&str> = needed.into_iter().filter(|name| !is_declared(name)).collect();
        if missing.is_empty() {
            return Eventual::Now(Ok(()));
        }
        let missing = missing.join(", ");
        let why = format!("pod update requires features {missing} which are not available on node {node:?}");
        Eventual::Now(Err(write.forbidden(object, &why)))
    }
}

fn resizes_pod(old: &Value, new: &Value) -> bool {
    old["spec"]["resources"] != new["spec"]["resources"]
}

fn resizes_init_container(old: &Value, new: &Value) -> bool {
    let is_other = |(old, new): (&Value, &Value)| {
        old["restartPolicy"] != "Always" && !are_the_same(&old["resources"], &new["resources"])
    };
    // Once: each container with the one in its place.
    init_containers(old).zip(init_containers(new)).any(is_other)
}

/// Whether two `ResourceRequirements` say the same: what is empty is as if it were not there.
fn are_the_same(old: &Value, new: &Value) -> bool {
    let said = |resources: &Value, member: &str| match &resources[member] {
        Value::Object(quantities) if quantities.is_empty() => Value::Null,
        Value::Array(claims) if claims.is_empty() => Value::Null,
        said => said.clone(),
    };
    ["claims", "limits", "requests"].into_iter().all(|member| said(old, member) == said(new, member))
}

fn init_containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["initContainers"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn features_are_needed_for_what_changes() {
        let pod = |own: &str, init: &str, sidecar: &str| {
            let of = |cpu: &str| json!({"requests": {"cpu": cpu}});
            json!({"spec": {"resources": of(own), "initContainers": [
                {"name": "i", "resources": of(init)},
                {"name": "s", "restartPolicy": "Always", "resources": of(sidecar)},
            ]}})
        };
        let old = pod("1", "1", "1");
        let needed = |new: &Value| FEATURES.map(|(_, is_needed)| is_needed(&old, new));
        assert_eq!(needed(&old), [false, false]);
        assert_eq!(needed(&pod("2", "1", "1")), [true, false]);
        assert_eq!(needed(&pod("1", "2", "1")), [false, true]);
        assert_eq!(needed(&pod("1", "1", "2")), [false, false], "a sidecar is resized everywhere");
        assert_eq!(needed(&json!({})), [true, false]);
    }

    #[test]
    fn resources_that_are_left_out_are_those_that_say_nothing() {
        let pod =
            |resources: Value| json!({"spec": {"initContainers": [{"name": "i", "resources": resources}]}});
        for nothing in [json!(null), json!({}), json!({"requests": {}, "claims": []})] {
            assert!(!resizes_init_container(&pod(json!({})), &pod(nothing.clone())), "{nothing}");
            assert!(resizes_init_container(&pod(json!({"limits": {"cpu": "1"}})), &pod(nothing)));
        }
        let left_out = json!({"spec": {"initContainers": [{"name": "i"}]}});
        assert!(!resizes_init_container(&pod(json!({})), &left_out));
    }
}
