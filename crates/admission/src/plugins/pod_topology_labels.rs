//! PodTopologyLabels: a pod that is made on a node, and a Binding to one, has the zone and the region of it
//! as labels. A pod takes over those of its Binding.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/podtopologylabels`.

use forebay_api::Eventual;
use forebay_strategy::value::{child_made, set};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes, value_of};

const NODES: ReadFrom = ("", "nodes");
const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && (write.is_of("", "pods") || write.is_of_part("", "pods", "binding"))
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let node = match (write.of.subresource, &object["target"]) {
            ("", _) => object["spec"]["nodeName"].as_str(),
            (_, target) if target["kind"] == "Node" => target["name"].as_str(),
            _ => None,
        };
        let Some(node) = node.filter(|node| !node.is_empty()) else { return Eventual::Now(Ok(())) };
        if let Some(known) = tools.class(NODES, node) {
            label(object, &known);
            return Eventual::Now(Ok(()));
        }
        // One that there is not has no labels, and one that is new to the cache none either, as upstream has
        // it: a pod may name a node that is never there, and is not to cost a read of the store each time.
        if tools.lookup.is_filled(NODES) {
            return Eventual::Now(Ok(()));
        }
        let node = node.to_owned();
        Eventual::later(async move {
            if let Some(found) = tools.lookup.live(NODES, "", &node).wait().await?
                && let Some(known) = value_of(&found)
            {
                label(object, &known);
            }
            Ok(())
        })
    }
}

fn label(object: &mut Value, node: &Value) {
    let Some(object) = object.as_object_mut() else { return };
    for name in LABELS {
        if let Some(value) = node["metadata"]["labels"].get(name) {
            set(child_made(child_made(object, "metadata"), "labels"), name, Some(value.clone()));
        }
    }
}
