//! What an object is to quotas: what it uses, and which scopes it is in.
//!
//! In: an object. Out: a few amounts and words, so that who waits for a quota holds no tree. Never: a quota.
//!
//! Source: kubernetes v1.36.3 `pkg/quota/v1/evaluator/core`.

use std::collections::BTreeSet;

use forebay_apimachinery::json::weight::{self, MEMBER_BYTES};
use forebay_strategy::value::{Members, child, child_or_empty, int, list, objects, text, text_opt};
use forebay_strategy::{is_extended_resource, pod_class};

use crate::amounts::{Amount, Amounts};
use crate::devices::{DeviceClasses, IMPLICIT};
use crate::evaluator::{BY_DEVICE_CLASS, BY_STORAGE_CLASS, Evaluator, ends_by_itself, has_ended};
use crate::pod::{AmountList, By, sum};
use crate::resource_quota::QuotaScope;

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub struct QuotaSubject {
    pub usage: Amounts,
    standing: Standing,
}

/// What scopes ask for.
#[derive(Clone, Debug, Default)]
enum Standing {
    #[default]
    Plain,
    Pod {
        ends_by_itself: bool,
        is_best_effort: bool,
        priority_class: Option<String>,
        looks_elsewhere: bool,
    },
    VolumeClaim {
        classes: BTreeSet<String>,
    },
}

/// Devices that one claim may be given at most.
const DEVICES_MAX: usize = 32;

impl QuotaSubject {
    /// What `object` is to quotas.
    ///
    /// - `now`: seconds since 1970.
    pub fn of(evaluator: &Evaluator, object: &Members, classes: &DeviceClasses, now: i64) -> QuotaSubject {
        match evaluator {
            Evaluator::Pods => of_pod(object, now),
            Evaluator::Services => QuotaSubject { usage: of_service(object), ..QuotaSubject::default() },
            Evaluator::VolumeClaims => of_volume_claim(object),
            Evaluator::ResourceClaims => {
                QuotaSubject { usage: of_resource_claim(object, classes), ..QuotaSubject::default() }
            }
            Evaluator::Objects { count, alias } => {
                let mut usage = Amounts::default();
                usage.set(count.clone(), Amount::count(1));
                alias.iter().for_each(|alias| usage.set(*alias, Amount::count(1)));
                QuotaSubject { usage, ..QuotaSubject::default() }
            }
        }
    }

    /// Whether the object is within each of `scopes`.
    pub fn is_in(&self, scopes: &[QuotaScope]) -> bool {
        scopes.iter().all(|scope| self.standing.is_in(scope))
    }

    /// What it takes.
    pub fn bytes(&self) -> usize {
        let standing = match &self.standing {
            Standing::Plain => 0,
            Standing::Pod { priority_class, .. } => {
                priority_class.as_ref().map_or(0, |name| weight::text(name.len()))
            }
            Standing::VolumeClaim { classes } => {
                classes.iter().map(|name| MEMBER_BYTES + weight::text(name.len())).sum()
            }
        };
        self.usage.bytes() + standing
    }
}

impl Standing {
    fn is_in(&self, scope: &QuotaScope) -> bool {
        match (self, scope.name.as_str()) {
            (Standing::Pod { ends_by_itself, .. }, "Terminating") => *ends_by_itself,
            (Standing::Pod { ends_by_itself, .. }, "NotTerminating") => !ends_by_itself,
            (Standing::Pod { is_best_effort, .. }, "BestEffort") => *is_best_effort,
            (Standing::Pod { is_best_effort, .. }, "NotBestEffort") => !is_best_effort,
            (Standing::Pod { looks_elsewhere, .. }, "CrossNamespacePodAffinity") => *looks_elsewhere,
            (Standing::Pod { priority_class, .. }, "PriorityClass") => {
                scope.is.takes(priority_class.as_deref())
            }
            (Standing::VolumeClaim { classes }, "VolumeAttributesClass") if classes.is_empty() => {
                scope.is.takes(None)
            }
            (Standing::VolumeClaim { classes }, "VolumeAttributesClass") => {
                // Few: the class a claim wants, the one it has, and the one it is given.
                classes.iter().any(|class| scope.is.takes(Some(class)))
            }
            _ => false,
        }
    }
}

fn of_pod(pod: &Members, now: i64) -> QuotaSubject {
    let spec = child_or_empty(pod, "spec");
    let mut usage = Amounts::default();
    usage.set("count/pods", Amount::count(1));
    if !has_ended(pod, now) {
        usage.set("pods", Amount::count(1));
        for (name, request) in sum(pod, AmountList::Requests, By::Quota).iter() {
            match name {
                "cpu" | "memory" | "ephemeral-storage" => {}
                _ if name.starts_with("hugepages-") => {}
                _ if is_extended_resource(name) || name.starts_with(IMPLICIT) => {
                    usage.set(format!("requests.{name}"), request);
                    continue;
                }
                _ => continue,
            }
            usage.set(format!("requests.{name}"), request);
            usage.set(name, request);
        }
        for (name, limit) in sum(pod, AmountList::Limits, By::Quota).iter() {
            if matches!(name, "cpu" | "memory" | "ephemeral-storage") {
                usage.set(format!("limits.{name}"), limit);
            }
        }
    }
    let class = match text(child_or_empty(pod, "status"), "qosClass") {
        "" => pod_class(spec),
        class => class,
    };
    let standing = Standing::Pod {
        ends_by_itself: ends_by_itself(pod),
        is_best_effort: class == "BestEffort",
        priority_class: text_opt(spec, "priorityClassName").filter(|name| !name.is_empty()).map(String::from),
        looks_elsewhere: looks_elsewhere(spec),
    };
    QuotaSubject { usage, standing }
}

/// Whether a pod wants to be near pods of other namespaces, or far from them.
fn looks_elsewhere(spec: &Members) -> bool {
    let affinity = child_or_empty(spec, "affinity");
    let elsewhere =
        |term: &Members| !list(term, "namespaces").is_empty() || child(term, "namespaceSelector").is_some();
    ["podAffinity", "podAntiAffinity"].into_iter().map(|name| child_or_empty(affinity, name)).any(|of| {
        // Once: for the whole object.
        objects(of, "requiredDuringSchedulingIgnoredDuringExecution").any(elsewhere)
            // Once: for the whole object.
            || objects(of, "preferredDuringSchedulingIgnoredDuringExecution")
                .any(|term| elsewhere(child_or_empty(term, "podAffinityTerm")))
    })
}

fn of_service(service: &Members) -> Amounts {
    let spec = child_or_empty(service, "spec");
    let ports = objects(spec, "ports");
    let (balancers, node_ports) = match text(spec, "type") {
        "NodePort" => (0, ports.count()),
        "LoadBalancer" if spec.get("allocateLoadBalancerNodePorts").is_some_and(|value| value == false) => {
            (1, ports.filter(|port| int(port, "nodePort").unwrap_or(0) != 0).count())
        }
        "LoadBalancer" => (1, ports.count()),
        _ => (0, 0),
    };
    let mut usage = Amounts::default();
    usage.set("count/services", Amount::count(1));
    usage.set("services", Amount::count(1));
    usage.set("services.loadbalancers", Amount::count(balancers));
    usage.set("services.nodeports", Amount::count(node_ports));
    usage
}

fn of_volume_claim(claim: &Members) -> QuotaSubject {
    let (spec, status) = (child_or_empty(claim, "spec"), child_or_empty(claim, "status"));
    let mut usage = Amounts::default();
    usage.set("persistentvolumeclaims", Amount::count(1));
    usage.set("count/persistentvolumeclaims", Amount::count(1));
    let annotations = child_or_empty(child_or_empty(claim, "metadata"), "annotations");
    let class = text_opt(annotations, "volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| text(spec, "storageClassName"));
    let by_class = |counted: &str| format!("{class}{BY_STORAGE_CLASS}{counted}");
    if !class.is_empty() {
        usage.set(by_class("persistentvolumeclaims"), Amount::count(1));
    }
    let requests = child_or_empty(child_or_empty(spec, "resources"), "requests");
    if let Some(wanted) = requests.get("storage").and_then(Amount::of) {
        let given = child_or_empty(status, "allocatedResources").get("storage").and_then(Amount::of);
        let wanted = wanted.rounded_up();
        let storage = given.filter(|given| given.nanos > wanted.nanos).map_or(wanted, Amount::rounded_up);
        usage.set("requests.storage", storage);
        if !class.is_empty() {
            usage.set(by_class("requests.storage"), storage);
        }
    }
    let classes = [
        text(spec, "volumeAttributesClassName"),
        text(status, "currentVolumeAttributesClassName"),
        text(child_or_empty(status, "modifyVolumeStatus"), "targetVolumeAttributesClassName"),
    ];
    let classes = classes.into_iter().filter(|class| !class.is_empty()).map(String::from).collect();
    QuotaSubject { usage, standing: Standing::VolumeClaim { classes } }
}

fn of_resource_claim(claim: &Members, classes: &DeviceClasses) -> Amounts {
    let mut by_class = Amounts::default();
    for request in objects(child_or_empty(child_or_empty(claim, "spec"), "devices"), "requests") {
        let mut devices = Amounts::default();
        if let Some(exactly) =
            child(request, "exactly").filter(|_| list(request, "firstAvailable").is_empty())
        {
            devices.add(&devices_of(exactly));
        } else {
            // Of the alternatives the one that takes most, class by class.
            objects(request, "firstAvailable").for_each(|one| devices.raise(&devices_of(one)));
        }
        by_class.add(&devices);
    }
    let mut usage = Amounts::default();
    for (class, devices) in by_class.iter() {
        usage.set(format!("{class}{BY_DEVICE_CLASS}"), devices);
        if class.is_empty() || devices.nanos <= 0 {
            continue;
        }
        usage.set(format!("requests.{IMPLICIT}{class}"), devices);
        if let Some(resource) = classes.resource_of(class) {
            usage.set(format!("requests.{resource}"), devices);
        }
    }
    usage.set("count/resourceclaims.resource.k8s.io", Amount::count(1));
    usage
}

fn devices_of(request: &Members) -> Amounts {
    let number = match text(request, "allocationMode") {
        "ExactCount" => usize::try_from(int(request, "count").unwrap_or(0)).unwrap_or(0),
        "All" => DEVICES_MAX,
        _ => 0,
    };
    let mut devices = Amounts::default();
    devices.set(text(request, "deviceClassName"), Amount::count(number));
    devices
}
