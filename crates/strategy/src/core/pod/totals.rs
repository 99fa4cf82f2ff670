//! What all containers of a pod ask for together, and what the pod as a whole may then ask for.
//!
//! In: a pod's spec. Out: sums; the requests of the pod filled in; causes. Never: a single container's
//! requirements.
//!
//! Source: component-helpers v0.36.3 `resource`; kubernetes v1.36.3 `apis/core/{v1,validation}`.

use std::collections::BTreeMap;

use forebay_apimachinery::quantity::{self, Nanos};
use forebay_apimachinery::steps;
use serde_json::Value;

use super::qos::is_pod_level;
use crate::field::{Causes, Path};
use crate::value::{Members, child, child_made, child_mut, child_or_empty, objects, text};

/// Resource -> how much, in sums and maxima over containers.
type Totals = BTreeMap<String, Total>;

#[derive(Clone, Default)]
struct Total {
    nanos: Nanos,
    /// The first addend that is not zero, whose form the sum has.
    first: String,
}

impl Total {
    fn shown(&self) -> String {
        quantity::shown(self.nanos, &self.first)
    }
}

/// The sum of all containers, or what the most demanding step of initialization asks for where that is more.
///
/// - `list`: `requests` or `limits`.
fn totals(spec: &Members, list: &str) -> Totals {
    let mut sums = Totals::new();
    for container in objects(spec, "containers") {
        add(&mut sums, amounts(container, list));
    }
    let (mut sidecars, mut most) = (Totals::new(), Totals::new());
    for container in objects(spec, "initContainers") {
        // What the container does not name is as it was in the step before.
        let mut step: Totals = amounts(container, list)
            .filter_map(|(resource, _)| sidecars.get_key_value(resource))
            .map(|(resource, total)| (resource.clone(), total.clone()))
            .collect();
        add(&mut step, amounts(container, list));
        if text(container, "restartPolicy") == "Always" {
            add(&mut sums, amounts(container, list));
            add(&mut sidecars, amounts(container, list));
        }
        raise(&mut most, step);
    }
    raise(&mut sums, most);
    sums
}

fn amounts<'o>(container: &'o Members, list: &str) -> impl Iterator<Item = (&'o String, &'o Value)> {
    child_or_empty(child_or_empty(container, "resources"), list).iter()
}

fn add<'o>(totals: &mut Totals, amounts: impl Iterator<Item = (&'o String, &'o Value)>) {
    for (resource, value) in amounts {
        steps::add(1);
        let total = totals.entry(resource.clone()).or_default();
        if total.nanos == 0 {
            total.first = value.as_str().unwrap_or("").to_string();
        }
        total.nanos = total.nanos.saturating_add(quantity::of(value));
    }
}

fn raise(totals: &mut Totals, others: Totals) {
    for (resource, other) in others {
        steps::add(1);
        let total = totals.entry(resource).or_insert_with(|| other.clone());
        if other.nanos > total.nanos {
            *total = other;
        }
    }
}

/// Requests of the pod follow from those of its containers, or else from its own limits.
pub fn default_requests(spec: &mut Members) {
    if child(spec, "resources").is_none() {
        return;
    }
    huge_page_limits(spec);
    let sums = totals(spec, "requests");
    let Some(resources) = child_mut(spec, "resources") else { return };
    let limits = child_or_empty(resources, "limits").clone();
    if limits.is_empty() {
        return;
    }
    let requests = child_made(resources, "requests");
    for (resource, total) in sums.iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")) {
        requests.entry(resource.clone()).or_insert_with(|| total.shown().into());
    }
    for (resource, limit) in limits.iter().filter(|(name, _)| is_pod_level(name)) {
        requests.entry(resource.clone()).or_insert_with(|| limit.clone());
    }
    if requests.is_empty() {
        resources.remove("requests");
    }
}

fn huge_page_limits(spec: &mut Members) {
    let sums = totals(spec, "limits");
    let Some(resources) = child_mut(spec, "resources") else { return };
    let requests = child_or_empty(resources, "requests").clone();
    if requests.is_empty() && child_or_empty(resources, "limits").is_empty() {
        return;
    }
    for (resource, total) in sums.iter().filter(|(name, _)| name.starts_with("hugepages-")) {
        if !requests.contains_key(resource) {
            let limits = child_made(resources, "limits");
            limits.entry(resource.clone()).or_insert_with(|| total.shown().into());
        }
    }
}

/// Containers ask for no more than their pod.
pub fn within_pod(spec: &Members, resources: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (requests, limits) = (child_or_empty(resources, "requests"), child_or_empty(resources, "limits"));
    let at_requests = at.child("requests");
    for (resource, total) in totals(spec, "requests") {
        let Some(own) = requests.get(&resource).filter(|own| total.nanos > quantity::of(own)) else {
            continue;
        };
        let detail =
            format!("must be greater than or equal to aggregate container requests of {}", total.shown());
        causes.invalid(&at_requests.key(&resource), own, &detail);
    }
    let at_limits = at.child("limits");
    for (resource, total) in totals(spec, "limits").iter().filter(|(name, _)| name.starts_with("hugepages-"))
    {
        let Some(own) = limits.get(resource).filter(|own| total.nanos > quantity::of(own)) else { continue };
        let detail =
            format!("must be greater than or equal to aggregate container limits of {}", total.shown());
        causes.invalid(&at_limits.key(resource), own, &detail);
    }
    let at = at.child("containers");
    for (index, container) in objects(spec, "containers").enumerate() {
        let at = at.index(index);
        for (resource, limit) in amounts(container, "limits") {
            let Some(own) = limits.get(resource) else { continue };
            if quantity::of(limit) > quantity::of(own) {
                let detail =
                    format!("must be less than or equal to pod limits of {}", own.as_str().unwrap_or("0"));
                causes.invalid(&at.key(resource).child("limits"), limit, &detail);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sidecars_count_with_every_later_step() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = container("500m");
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({
            "containers": [container("1"), container("500m")],
            "initContainers": [container("1"), sidecar, container("3")],
        });
        let sums = totals(spec.as_object().expect("an object"), "requests");
        assert_eq!(sums["cpu"].shown(), "3500m");
    }

    #[test]
    fn a_pods_requests_follow_from_its_containers_and_then_from_its_limits() {
        let mut spec = json!({
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
            "containers": [{"resources": {"requests": {"cpu": "250m"}}}, {"resources": {"requests": {"cpu": "1"}}}],
        });
        default_requests(spec.as_object_mut().expect("an object"));
        assert_eq!(spec["resources"]["requests"], json!({"cpu": "1250m", "memory": "1Gi"}));
    }
}
