//! A pod's class of service, which follows from what it asks for.
//!
//! In: a pod's spec. Out: the class. Never: changes it.
//!
//! Source: kubernetes v1.36.3 `apis/core/helper/qos`.

use forebay_apimachinery::quantity;

use crate::value::{Members, child, child_or_empty, objects};

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub fn class(spec: &Members) -> &'static str {
    let mut sums = Sums { every_limit: true, ..Sums::default() };
    match child(spec, "resources") {
        Some(of_the_pod) => sums.add(of_the_pod),
        None => {
            for list in ["containers", "initContainers"] {
                objects(spec, list).for_each(|container| sums.add(child_or_empty(container, "resources")));
            }
        }
    }
    sums.class()
}

const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// Requests and limits added up, in the order of [`COMPUTE`].
#[derive(Default)]
struct Sums {
    requests: [i128; 2],
    limits: [i128; 2],
    /// Everything so far limits both.
    every_limit: bool,
}

impl Sums {
    fn add(&mut self, resources: &Members) {
        let (requests, limits) = (child_or_empty(resources, "requests"), child_or_empty(resources, "limits"));
        for (at, name) in COMPUTE.into_iter().enumerate() {
            let of = |list: &Members| list.get(name).map_or(0, quantity::of).max(0);
            self.requests[at] = self.requests[at].saturating_add(of(requests));
            self.limits[at] = self.limits[at].saturating_add(of(limits));
            self.every_limit &= of(limits) > 0;
        }
    }

    fn class(&self) -> &'static str {
        if self.requests == [0; 2] && self.limits == [0; 2] {
            return "BestEffort";
        }
        if self.every_limit && self.requests == self.limits { "Guaranteed" } else { "Burstable" }
    }
}

/// Resources that a pod as a whole may ask for.
pub fn is_pod_level(name: &str) -> bool {
    COMPUTE.contains(&name) || name.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (containers, class_of) in [
            (json!([{}]), "BestEffort"),
            (json!([{"resources": {"limits": both, "requests": both}}]), "Guaranteed"),
            (
                json!([{"resources": {"limits": both, "requests": {"cpu": "1000m", "memory": "1024Mi"}}}]),
                "Guaranteed",
            ),
            (json!([{"resources": {"limits": both, "requests": both}}, {}]), "Burstable"),
            (json!([{"resources": {"requests": {"cpu": "1"}}}]), "Burstable"),
            (json!([{"resources": {"requests": {"cpu": "0"}}}]), "BestEffort"),
            (json!([{"resources": {"requests": {"example.com/gpu": "1"}}}]), "BestEffort"),
        ] {
            let spec = json!({"containers": containers});
            assert_eq!(class(spec.as_object().expect("an object")), class_of, "{spec}");
        }
    }

    #[test]
    fn what_the_pod_asks_for_as_a_whole_counts_alone_even_if_that_is_nothing() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for (resources, class_of) in [
            (json!({}), "BestEffort"),
            (json!({"requests": {"hugepages-2Mi": "2Mi"}}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (json!({"requests": both, "limits": both}), "Guaranteed"),
        ] {
            let spec =
                json!({"resources": resources, "containers": [{"resources": {"requests": {"cpu": "1"}}}]});
            assert_eq!(class(spec.as_object().expect("an object")), class_of, "{spec}");
        }
    }
}
