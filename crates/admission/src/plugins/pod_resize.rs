//! PodResizeValidator: a pod on a node is resized to no more than the node has, and only
//! where that can be done.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/podresize`.

use forebay_api::Eventual;
use forebay_apimachinery::{Cause, CauseReason, Status};
use forebay_quota::{Amount, AmountList, By, sum};
use forebay_strategy::value::child_or_empty;
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

const NODES: ReadFrom = ("", "nodes");

pub struct PodResizeValidator;

impl Plugin for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.updates() && write.is_of_part("", "pods", "resize")
    }

    fn decides_by(&self) -> &'static [ReadFrom] {
        &[NODES]
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        pod: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        Eventual::Now(may_resize(write, pod, tools))
    }
}

fn may_resize(write: &WriteAttributes<'_>, pod: &Value, tools: &Tools<'_>) -> Result<(), Status> {
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let before = write.old.map(|old| &old["metadata"]["generation"]);
    if node.is_empty() || before == Some(&pod["metadata"]["generation"]) {
        return Ok(());
    }
    let Some(found) = tools.class(NODES, node) else {
        return Err(write.forbidden(pod, &format!("node {node:?} not found")));
    };
    let refused = |why: &str, reason: CauseReason| {
        let cause = Cause { reason, message: String::new(), field: String::new() };
        Err(write.forbidden(pod, why).because([cause]))
    };
    if let Some(system) = found["metadata"]["labels"]["kubernetes.io/os"].as_str().filter(|os| *os != "linux")
    {
        let why = format!("pod resize is only supported on linux nodes, node {node:?} is {system:?}");
        return refused(&why, CauseReason::UnsupportedPlatform);
    }
    match beyond(pod, &found) {
        Some(beyond) => {
            let why = format!("node didn't have enough allocatable resources: {beyond}");
            refused(&why, CauseReason::NodeCapacity)
        }
        None => Ok(()),
    }
}

/// What a pod asks for that its node has not.
fn beyond(pod: &Value, node: &Value) -> Option<String> {
    let requests = sum(pod.as_object()?, AmountList::Requests, By::Node);
    let has = child_or_empty(child_or_empty(node.as_object()?, "status"), "allocatable");
    let told = |name: &str, shown: fn(Amount) -> i128| {
        let requested = requests.get(name).unwrap_or(Amount::ZERO);
        let allocatable = has.get(name).and_then(Amount::of).unwrap_or(Amount::ZERO);
        let is_beyond = requested.nanos > allocatable.nanos;
        is_beyond
            .then(|| format!("{name}, requested: {}, allocatable: {}", shown(requested), shown(allocatable)))
    };
    let whole = |amount: Amount| (amount.thousandths() + 999).div_euclid(1000);
    let all: Vec<String> =
        told("cpu", Amount::thousandths).into_iter().chain(told("memory", whole)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_node_has_not_is_told_in_thousandths_of_a_core_and_in_bytes() {
        let node = json!({"status": {"allocatable": {"cpu": "1", "memory": "1Gi"}}});
        let pod = |cpu: &str, memory: &str| {
            let requests = json!({"cpu": cpu, "memory": memory});
            json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
        };
        assert_eq!(beyond(&pod("1", "1Gi"), &node), None);
        assert_eq!(
            beyond(&pod("1500m", "2Gi"), &node).as_deref(),
            Some(
                "cpu, requested: 1500, allocatable: 1000; memory, requested: 2147483648, allocatable: 1073741824"
            )
        );
    }
}
