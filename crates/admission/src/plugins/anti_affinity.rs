//! LimitPodHardAntiAffinityTopology: pods keep others away from their node at most.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/antiaffinity`.

use serde_json::Value;

use crate::optional::optional;
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

const HOSTNAME: &str = "kubernetes.io/hostname";

pub struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    optional! { "LimitPodHardAntiAffinityTopology", stores "pods" }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.judged(object, |_| {
            let required = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
            let terms = object.pointer(required).and_then(Value::as_array).into_iter().flatten();
            let mut keys = terms.map(|term| term["topologyKey"].as_str().unwrap_or_default());
            match keys.find(|key| *key != HOSTNAME) {
                None => Ok(()),
                Some(other) => Err(format!(
                    "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {other} but only key \
                     {HOSTNAME} is allowed"
                )),
            }
        })
    }
}
