//! When what changed that a service's endpoints are written for, as an annotation of them says.
//!
//! In: a service and its pods, each time that they are looked at. Out: the first of what is new since the
//! last look. Kept of a service: when it and its pods changed, 16 bytes a pod.
//!
//! Source: k8s.io/endpointslice v0.36.3 `util/trigger_time_tracker.go`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::view::{Seconds, SelectedPod, Service};

pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// What was seen of a service at one look.
#[derive(Debug, Default)]
pub struct LastSeen {
    service: Seconds,
    // hash of a pod's name -> when its readiness changed
    pods: HashMap<u64, Seconds>,
}

impl LastSeen {
    pub fn of(service: &Service, pods: &[SelectedPod]) -> LastSeen {
        let times = pods.iter().map(|pod| (hash(&pod.metadata.name), pod.ready_since()));
        LastSeen { service: service.created(), pods: times.filter(|(_, time)| *time != 0).collect() }
    }

    /// The first change since `before`; none if there is none. Of a service that was never looked at it is
    /// its creation.
    pub fn trigger(&self, before: Option<&LastSeen>) -> Option<Seconds> {
        let Some(before) = before else { return Some(self.service).filter(|time| *time != 0) };
        let pods =
            self.pods.iter().filter(|(pod, time)| before.pods.get(*pod).is_none_or(|known| *time > known));
        let service = Some(self.service).filter(|time| *time > before.service);
        pods.map(|(_, time)| *time).chain(service).min()
    }
}

/// As the annotation has it.
pub fn written(trigger: Seconds) -> Option<String> {
    jiff::Timestamp::from_second(trigger).ok().map(|time| time.to_string())
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
