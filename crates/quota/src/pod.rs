//! What a pod asks for as a whole: its containers together, or the largest of those that run alone before
//! them.
//!
//! In: a pod. Out: its requests or its limits. Never: more than one walk over its containers.
//!
//! Source: component-helpers v0.36.3 `resource/helpers.go` (`PodRequests`, `PodLimits`); kubernetes v1.36.3
//! `plugin/pkg/admission/limitranger` (`podRequests`, `podLimits`).

use std::collections::HashMap;

use forebay_strategy::value::{Members, child, child_or_empty, objects, text};

use crate::amounts::Amounts;

/// Which list of a container's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountList {
    Requests,
    Limits,
}

impl AmountList {
    fn name(self) -> &'static str {
        match self {
            AmountList::Requests => "requests",
            AmountList::Limits => "limits",
        }
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A limit range: what the spec says of containers, and of the pod's CPU and memory.
    LimitRange,
    /// A quota: what the pod has or is to have, whichever is more, with huge pages of the pod and with what
    /// its runtime takes.
    Quota,
    /// Who places it: the same of what it is to have.
    Node,
}

/// What a pod asks for.
pub fn sum(pod: &Members, list: AmountList, by: By) -> Amounts {
    let spec = child_or_empty(pod, "spec");
    let effective = Effective::of(pod, list, by);
    let mut sum = Amounts::default();
    for container in objects(spec, "containers") {
        sum.add(&effective.amounts(container, Kept::Yes));
    }
    let (mut sidecars, mut largest) = (Amounts::default(), Amounts::default());
    for container in objects(spec, "initContainers") {
        if text(container, "restartPolicy") == "Always" {
            let own = effective.amounts(container, Kept::Yes);
            sum.add(&own);
            sidecars.add(&own);
            // What all sidecars want of anything else was looked at when there was more of it.
            let names = own.names().filter_map(|name| Some((name, sidecars.get(name)?)));
            names.for_each(|(name, amount)| largest.raise_one(name, amount));
        } else {
            for (name, amount) in effective.amounts(container, Kept::No).iter() {
                let beside = sidecars.get(name).map_or(amount, |beside| amount.plus(beside));
                largest.raise_one(name, beside);
            }
        }
    }
    sum.raise(&largest);
    let of_the_pod = Amounts::of(child_or_empty(child_or_empty(spec, "resources"), list.name()));
    for (name, amount) in of_the_pod.iter() {
        if is_of_pods(name, by) {
            sum.set(name, amount);
        }
    }
    if by != By::LimitRange {
        let overhead = Amounts::of(child_or_empty(spec, "overhead"));
        let limited = |name: &str| sum.get(name).is_some_and(|limit| limit.nanos != 0);
        sum.add(&overhead.only(|name, _| list == AmountList::Requests || limited(name)));
    }
    sum
}

/// Whether a pod says as a whole what it asks for.
pub fn has_own_resources(pod: &Members) -> bool {
    let resources = child_or_empty(child_or_empty(pod, "spec"), "resources");
    let said = |list: AmountList| {
        child_or_empty(resources, list.name()).keys().any(|name| is_of_pods(name, By::Quota))
    };
    said(AmountList::Requests) || said(AmountList::Limits)
}

fn is_of_pods(name: &str, by: By) -> bool {
    matches!(name, "cpu" | "memory") || (by != By::LimitRange && name.starts_with("hugepages-"))
}

/// Whether what a container has is looked at, or only what it is to have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// What containers are said to have, beside what they ask for.
struct Effective<'o> {
    list: AmountList,
    // name -> status; only for quotas
    statuses: HashMap<&'o str, &'o Members>,
    /// What was asked for cannot be had: what is there counts.
    is_infeasible: bool,
}

impl<'o> Effective<'o> {
    fn of(pod: &'o Members, list: AmountList, by: By) -> Effective<'o> {
        let status = child_or_empty(pod, "status");
        let mut statuses = HashMap::new();
        if by == By::Quota {
            for list in ["containerStatuses", "initContainerStatuses"] {
                statuses.extend(objects(status, list).map(|status| (text(status, "name"), status)));
            }
        }
        let pending = objects(status, "conditions").find(|one| text(one, "type") == "PodResizePending");
        let is_infeasible = pending.is_some_and(|condition| text(condition, "reason") == "Infeasible");
        Effective { list, statuses, is_infeasible }
    }

    fn amounts(&self, container: &Members, kept: Kept) -> Amounts {
        let list = |resources: &Members| Amounts::of(child_or_empty(resources, self.list.name()));
        let asked = list(child_or_empty(container, "resources"));
        let status = self.statuses.get(text(container, "name")).filter(|_| kept == Kept::Yes);
        let Some((status, resources)) = status.and_then(|status| Some((status, child(status, "resources")?)))
        else {
            return asked;
        };
        let mut has = if self.is_infeasible { Amounts::default() } else { asked };
        has.raise(&list(resources));
        if self.list == AmountList::Requests {
            has.raise(&Amounts::of(child_or_empty(status, "allocatedResources")));
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::steps;
    use serde_json::{Value, json};

    use super::*;

    fn requests(pod: &Value, by: By) -> String {
        sum(pod.as_object().expect("a pod"), AmountList::Requests, by).to_string()
    }

    fn asks(cpu: &str) -> Value {
        json!({"requests": {"cpu": cpu}})
    }

    #[test]
    fn init_containers_run_alone_beside_the_sidecars_before_them() {
        let pod = json!({"spec": {
            "initContainers": [
                {"name": "first", "resources": asks("3")},
                {"name": "sidecar", "restartPolicy": "Always", "resources": asks("1")},
                {"name": "second", "resources": asks("4")},
            ],
            "containers": [{"name": "a", "resources": asks("1")}, {"name": "b", "resources": asks("1500m")}],
        }});
        assert_eq!(requests(&pod, By::LimitRange), "cpu=5");
    }

    #[test]
    fn containers_that_run_before_others_cost_what_they_are_many() {
        let steps_of = |count: usize| {
            let named = |at: usize, policy: &str| {
                let requests = json!({format!("a.b/{policy}{at}"): "1"});
                json!({"name": format!("c{at}"), "restartPolicy": policy, "resources": {"requests": requests}})
            };
            let sidecars = (0..count).map(|at| named(at, "Always"));
            let all: Vec<Value> = sidecars.chain((0..count).map(|at| named(at, ""))).collect();
            let pod = json!({"spec": {"initContainers": all}});
            let pod = pod.as_object().expect("a pod");
            let mut asked = Amounts::default();
            let steps = steps::counted(|| asked = sum(pod, AmountList::Requests, By::Quota));
            assert_eq!(asked.names().count(), 2 * count);
            steps
        };
        let (few, many) = (steps_of(200), steps_of(800));
        assert!(few > 400 && many < 5 * few, "{few} steps for 200, {many} for 800");
    }

    #[test]
    fn what_the_pod_says_and_what_it_runs_in_count_for_quotas() {
        let pod = json!({"spec": {
            "containers": [{"name": "a", "resources": asks("1")}],
            "resources": {"requests": {"cpu": "2", "hugepages-2Mi": "4Mi"}},
            "overhead": {"cpu": "250m"},
        }});
        assert_eq!(requests(&pod, By::LimitRange), "cpu=2");
        assert_eq!(requests(&pod, By::Quota), "cpu=2250m,hugepages-2Mi=4Mi");
    }

    #[test]
    fn what_a_container_still_has_counts_for_quotas() {
        let mut pod = json!({
            "spec": {"containers": [{"name": "a", "resources": asks("1")}]},
            "status": {"containerStatuses": [
                {"name": "a", "resources": asks("3"), "allocatedResources": {"cpu": "2"}},
            ]},
        });
        assert_eq!(
            (requests(&pod, By::Quota), requests(&pod, By::LimitRange)),
            ("cpu=3".into(), "cpu=1".into())
        );
        pod["spec"]["containers"][0]["resources"] = asks("8");
        assert_eq!(requests(&pod, By::Quota), "cpu=8");
        pod["status"]["conditions"] = json!([{"type": "PodResizePending", "reason": "Infeasible"}]);
        assert_eq!(requests(&pod, By::Quota), "cpu=3");
    }
}
