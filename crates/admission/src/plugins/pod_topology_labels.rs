//! PodTopologyLabels: a pod that is made on a node, and a Binding to one, has the zone and the region of it
//! as labels. A pod takes over those of its Binding.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/podtopologylabels`.

use forebay_strategy::value::{Members, child_made, child_or_empty, set, text};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

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
        write.filled(object, |object| {
            let target = child_or_empty(object, "target");
            let node = match write.of.subresource {
                "" => text(child_or_empty(object, "spec"), "nodeName"),
                _ if text(target, "kind") == "Node" => text(target, "name"),
                _ => "",
            };
            if !node.is_empty()
                && let Some(node) = tools.class(NODES, node)
            {
                label(object, &node);
            }
            Ok(())
        })
    }
}

fn label(object: &mut Members, node: &Value) {
    for name in LABELS {
        if let Some(value) = node["metadata"]["labels"].get(name) {
            set(child_made(child_made(object, "metadata"), "labels"), name, Some(value.clone()));
        }
    }
}
