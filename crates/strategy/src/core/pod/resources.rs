//! Requests and limits.
//!
//! In: a ResourceRequirements, a quantity of a resource. Out: causes. Never: whether a node has them.
//!
//! Source: kubernetes v1.36.3 `apis/core/{helper,validation}`.

use std::cell::OnceCell;
use std::collections::HashMap;

use forebay_apimachinery::Seen;
use forebay_apimachinery::quantity::{self, Nanos};
use forebay_apimachinery::selector::label_key_faults;
use serde_json::Value;

use super::qos::is_pod_level;
use crate::field::{Causes, Path};
use crate::format;
use crate::value::{Members, child_or_empty, objects, text};

/// Whose requirements they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Container,
    Pod,
}

const STANDARD: [&str; 20] = [
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
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Resources of Kubernetes' own.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether more of it may be promised than there is.
pub fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Resources that devices bring.
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && label_key_faults(&format!("requests.{name}")).is_empty()
}

/// A quantity of a resource: not negative, and whole where parts of it make no sense.
pub fn quantity_value(resource: &str, value: &Value, at: &Path<'_>, causes: &mut Causes) {
    let nanos = quantity::of(value);
    if nanos < 0 {
        causes.invalid(at, value, "must be greater than or equal to 0");
    }
    if !quantity::is_whole(nanos) && (WHOLE.contains(&resource) || is_extended(resource)) {
        causes.invalid(at, value, "must be an integer");
    }
}

/// The name of any resource.
pub fn resource_name(name: &str, at: &Path<'_>, causes: &mut Causes) {
    let faults = label_key_faults(name);
    let standard = STANDARD.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-");
    if faults.is_empty() && !name.contains('/') && !standard {
        causes.invalid(at, name, "must be a standard resource type or fully qualified");
    }
    causes.faults(at, name, faults);
}

/// Whether quotas know a resource whose name has no domain.
pub fn is_quota_resource(name: &str) -> bool {
    let standard = STANDARD.contains(&name) && name != "storage";
    standard || is_huge_page(name) || name.starts_with("requests.hugepages-")
}

/// The name of a resource that containers, or pods as a whole, ask for.
pub fn container_resource(name: &str, of: Of, at: &Path<'_>, causes: &mut Causes) {
    if matches!(name, "cpu" | "memory") || (of == Of::Container && name == "ephemeral-storage") {
        return; // what nearly everybody asks for
    }
    let before = causes.len();
    resource_name(name, at, causes);
    match of {
        Of::Pod if causes.len() > before => {}
        Of::Pod if !is_pod_level(name) => {
            causes.not_supported(at, name, &["cpu", "hugepages-", "memory"]);
        }
        Of::Pod => {}
        Of::Container if !name.contains('/') && name != "ephemeral-storage" && !is_huge_page(name) => {
            causes.invalid(at, name, "must be a standard resource for containers");
        }
        Of::Container if name.contains('/') && !is_native(name) && !is_extended(name) => {
            causes.invalid(at, name, "doesn't follow extended resource name standard");
        }
        Of::Container => {}
    }
}

/// Names of a pod's resource claims.
#[derive(Default)]
pub struct Claims<'o> {
    names: Vec<&'o str>,
    known: Seen<&'o str>,
    // What is said of a name that is none of them.
    not_among: OnceCell<String>,
}

impl<'o> Claims<'o> {
    /// Takes in a name. Says whether it was there before.
    pub fn again(&mut self, name: &'o str) -> bool {
        self.names.push(name);
        self.known.again(name)
    }

    fn not_among(&self) -> &str {
        self.not_among.get_or_init(|| {
            let mut detail = "must be one of the names in pod.spec.resourceClaims".to_string();
            if self.names.is_empty() {
                detail.push_str(" which is empty");
            } else {
                let mut sorted = self.names.clone();
                sorted.sort_unstable();
                detail.push_str(&format!(": {}", sorted.join(", ")));
            }
            detail
        })
    }
}

/// What a container or a pod asks for, and may use.
pub fn requirements(of: Of, resources: &Members, claims: &Claims<'_>, at: &Path<'_>, causes: &mut Causes) {
    if resources.is_empty() {
        return;
    }
    let (limits, requests) = (child_or_empty(resources, "limits"), child_or_empty(resources, "requests"));
    let (limits_at, requests_at) = (at.child("limits"), at.child("requests"));
    for (resource, limit) in limits {
        let at = limits_at.key(resource);
        container_resource(resource, of, &at, causes);
        quantity_value(resource, limit, &at, causes);
        huge_pages(resource, limit, &at, causes);
    }
    for (resource, request) in requests {
        let at = requests_at.key(resource);
        container_resource(resource, of, &at, causes);
        quantity_value(resource, request, &at, causes);
        within_limit(resource, request, limits.get(resource), &requests_at, &limits_at, causes);
        huge_pages(resource, request, &at, causes);
    }
    let any = |wanted: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|name| wanted(name));
    if any(is_huge_page) && !any(|name| matches!(name, "cpu" | "memory")) {
        causes.forbidden(at, "HugePages require cpu or memory");
    }
    claim_names(resources, claims, &at.child("claims"), causes);
}

fn within_limit(
    resource: &str,
    request: &Value,
    limit: Option<&Value>,
    requests_at: &Path<'_>,
    limits_at: &Path<'_>,
    causes: &mut Causes,
) {
    let Some(limit) = limit else {
        if !may_overcommit(resource) {
            causes.required(limits_at, "Limit must be set for non overcommitable resources");
        }
        return;
    };
    let (asked, most) = (quantity::of(request), quantity::of(limit));
    let text = limit.as_str().unwrap_or("0");
    if asked != most && !may_overcommit(resource) {
        causes.invalid(requests_at, request, &format!("must be equal to {resource} limit of {text}"));
    } else if asked > most {
        causes.invalid(
            requests_at,
            request,
            &format!("must be less than or equal to {resource} limit of {text}"),
        );
    }
}

fn huge_pages(resource: &str, value: &Value, at: &Path<'_>, causes: &mut Causes) {
    let Some(size) = resource.strip_prefix("hugepages-") else { return };
    let divides = |size: Nanos| size > 0 && quantity::is_whole(size) && quantity::of(value) % size == 0;
    if !quantity::nanos(size).is_ok_and(divides) {
        let text = value.as_str().unwrap_or("0");
        causes.invalid(at, text, &format!("{text} is not positive integer multiple of {resource}"));
    }
}

fn claim_names(resources: &Members, claims: &Claims<'_>, at: &Path<'_>, causes: &mut Causes) {
    let mut names: HashMap<&str, Seen<&str>> = HashMap::new(); // name -> requests; an empty one is all of them
    for (index, claim) in objects(resources, "claims").enumerate() {
        let at = at.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            causes.required(&at, "");
            continue;
        }
        let requests = names.entry(name).or_default();
        if requests.has("") {
            causes.duplicate(&at, name);
        } else if request.is_empty() {
            // Each of these asks for a part of what this one asks for.
            (0..requests.len()).for_each(|_| causes.duplicate(&at, name));
            requests.again(request);
        } else {
            causes.faults(&at.child("request"), request, format::dns1123_label(request));
            if requests.again(request) {
                causes.duplicate(&at, format!("{name}/{request}").as_str());
            }
        }
        if !claims.known.has(name) {
            causes.not_found_because(&at, name, claims.not_among());
        }
    }
}
