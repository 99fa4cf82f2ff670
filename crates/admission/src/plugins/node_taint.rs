//! TaintNodesByCondition: a new node takes no pods until somebody finds that it is ready.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/nodetaint`.

use serde_json::{Value, json};

use super::fill::{NOT_READY, push};
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};
use forebay_strategy::value::{Members, child_made, objects, text};

pub struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && write.is_of("", "nodes")
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, taint_node)
    }
}

fn taint_node(node: &mut Members) -> Result<(), String> {
    let spec = child_made(node, "spec");
    let known = |taint: &Members| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule";
    if !objects(spec, "taints").any(known) {
        push(spec, "taints", json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_has_a_taint_once() {
        let filled = |mut object: Value| {
            taint_node(object.as_object_mut().expect("an object")).expect("let in");
            object
        };
        let node = filled(json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}));
        let taints =
            json!([{"key": "a", "effect": "NoSchedule"}, {"key": NOT_READY, "effect": "NoSchedule"}]);
        assert_eq!(node["spec"]["taints"], taints);
        assert_eq!(filled(node.clone()), node);
    }
}
