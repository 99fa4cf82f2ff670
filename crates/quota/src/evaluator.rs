//! Who counts objects of a resource: which names of a quota it is about, and which writes change what is
//! used.
//!
//! In: a resource, names, writes. Out: yes or no. Never: an amount, which `subject.rs` has.
//!
//! Source: kubernetes v1.36.3 `pkg/quota/v1/{evaluator/core,install}`; apiserver v0.36.3 `quota/v1/generic`.

use forebay_apimachinery::Verb;
use forebay_strategy::value::{Members, child_or_empty, int, text};
use serde_json::Value;

use crate::amounts::Amounts;
use crate::devices::{DeviceClasses, IMPLICIT};

/// Who counts objects of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluator {
    Pods,
    Services,
    VolumeClaims,
    ResourceClaims,
    /// One of each object, by these names.
    Objects {
        count: String,
        alias: Option<&'static str>,
    },
}

/// Resources of the core group and groups that no quota counts.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// What is counted under its own name, too.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

const POD_NAMES: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const SERVICE_NAMES: [&str; 4] =
    ["count/services", "services", "services.nodeports", "services.loadbalancers"];
const VOLUME_CLAIM_NAMES: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// What the names of amounts by storage class have between the class and what is counted.
pub const BY_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// How the name of a number of devices by class ends.
pub const BY_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

impl Evaluator {
    /// Who counts a resource; none where nobody does.
    pub fn of(group: &str, resource: &str) -> Option<Evaluator> {
        if IGNORED.contains(&(group, resource)) {
            return None;
        }
        Some(match (group, resource) {
            ("", "pods") => Evaluator::Pods,
            ("", "services") => Evaluator::Services,
            ("", "persistentvolumeclaims") => Evaluator::VolumeClaims,
            ("resource.k8s.io", "resourceclaims") => Evaluator::ResourceClaims,
            ("", _) => Evaluator::Objects {
                count: format!("count/{resource}"),
                alias: ALIASES.into_iter().find(|alias| *alias == resource),
            },
            _ => Evaluator::Objects { count: format!("count/{resource}.{group}"), alias: None },
        })
    }

    /// Whether it is about an amount of this name.
    pub fn counts(&self, name: &str, classes: &DeviceClasses) -> bool {
        match self {
            Evaluator::Pods => {
                POD_NAMES.contains(&name)
                    || name.strip_prefix("requests.").unwrap_or(name).starts_with("hugepages-")
                    || is_extended(name)
            }
            Evaluator::Services => SERVICE_NAMES.contains(&name),
            Evaluator::VolumeClaims => {
                let by_class = name
                    .rsplit_once(BY_STORAGE_CLASS)
                    .is_some_and(|(_, counted)| VOLUME_CLAIM_NAMES.contains(&counted));
                name == "count/persistentvolumeclaims" || VOLUME_CLAIM_NAMES.contains(&name) || by_class
            }
            Evaluator::ResourceClaims => {
                let implicit = || name.strip_prefix("requests.")?.strip_prefix(IMPLICIT);
                name == "count/resourceclaims.resource.k8s.io"
                    || name.ends_with(BY_DEVICE_CLASS)
                    || implicit().is_some_and(|class| classes.resource_of(class).is_some())
                    || (is_extended(name) && classes.has(&name["requests.".len()..]))
            }
            Evaluator::Objects { count, alias } => name == count || *alias == Some(name),
        }
    }

    /// Whether it is about any of these.
    pub fn counts_any(&self, amounts: &Amounts, classes: &DeviceClasses) -> bool {
        amounts.names().any(|name| self.counts(name, classes))
    }

    /// Whether a write may change what is used.
    pub fn handles(&self, verb: &Verb, subresource: &str, new: &Value, old: Option<&Value>) -> bool {
        let (creates, updates) = (*verb == Verb::Create, *verb == Verb::Update);
        match (self, subresource) {
            (Evaluator::Pods, "resize") => updates,
            (Evaluator::Pods, "") => creates || (updates && ends_by_itself_changes(new, old)),
            (Evaluator::VolumeClaims, "status") => updates,
            (Evaluator::Objects { .. }, "") => creates,
            (_, "") => creates || updates,
            _ => false,
        }
    }
}

/// Whether a name is that of requests for an extended resource.
fn is_extended(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    let implicit = |rest: &str| rest.starts_with(IMPLICIT);
    name.strip_prefix("requests.").is_some_and(|rest| !is_native || implicit(rest))
}

fn ends_by_itself_changes(new: &Value, old: Option<&Value>) -> bool {
    let ends = |pod: Option<&Value>| pod.and_then(Value::as_object).is_some_and(ends_by_itself);
    ends(Some(new)) != ends(old)
}

/// Whether a pod ends by itself.
pub fn ends_by_itself(pod: &Members) -> bool {
    int(child_or_empty(pod, "spec"), "activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0)
}

/// Whether a pod counts no more: it has ended, or should have.
///
/// - `now`: seconds since 1970.
pub fn has_ended(pod: &Members, now: i64) -> bool {
    if matches!(text(child_or_empty(pod, "status"), "phase"), "Failed" | "Succeeded") {
        return true;
    }
    let meta = child_or_empty(pod, "metadata");
    let (deleted, grace) =
        (seconds(text(meta, "deletionTimestamp")), int(meta, "deletionGracePeriodSeconds"));
    matches!((deleted, grace), (Some(deleted), Some(grace)) if now > deleted.saturating_add(grace))
}

/// Seconds since 1970 of a time as the API writes it.
fn seconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}
