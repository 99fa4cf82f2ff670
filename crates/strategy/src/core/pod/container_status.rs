//! What is told of containers in a pod's status: who they run as, and the devices and claims that they got.
//!
//! In: a pod's new status and its spec. Out: causes. Never: how containers come and go.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::HashMap;

use forebay_apimachinery::Seen;
use forebay_apimachinery::seen::Firsts;
use serde_json::Value;

use crate::field::{Causes, Path};
use crate::format;
use crate::value::{Members, child, child_or_empty, int, list, objects, text, text_opt};

const STATUS: Path<'static> = Path::root("status");
const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
const MESSAGE_BYTES_MAX: usize = 1024;

/// The claims of a pod, as its status has them.
pub fn claims(status: &Members, spec: &Members, causes: &mut Causes) {
    let at = STATUS.child("resourceClaimStatuses");
    let known: Seen<&str> = objects(spec, "resourceClaims").map(|claim| text(claim, "name")).collect();
    let mut names = Seen::default();
    for (index, claim) in objects(status, "resourceClaimStatuses").enumerate() {
        let (at, name) = (at.index(index), text(claim, "name"));
        if !known.has(name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            causes.invalid(&at.child("name"), name, detail);
        }
        if names.again(name) {
            causes.duplicate(&at.child("name"), name);
        }
        if let Some(name) = text_opt(claim, "resourceClaimName") {
            causes.faults(&at.child("resourceClaimName"), name, format::dns1123_subdomain(name));
        }
    }
    if let Some(claim) = child(status, "extendedResourceClaimStatus") {
        extended_claim(claim, spec, &STATUS.child("extendedResourceClaimStatus"), causes);
    }
}

/// The claim by which a pod has its extended resources.
fn extended_claim(claim: &Members, spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let lists = ["initContainers", "containers"];
    let containers: HashMap<&str, &Members> =
        lists.into_iter().flat_map(|list| objects(spec, list)).map(|of| (text(of, "name"), of)).collect();
    let list_at = at.child("requestMappings");
    if list(claim, "requestMappings").is_empty() {
        causes.required(&list_at, "at least one request mapping is required");
    }
    let mut before = Seen::default();
    for (index, mapping) in objects(claim, "requestMappings").enumerate() {
        let row = list_at.index(index);
        let members = ["containerName", "resourceName", "requestName"];
        let key @ [container, resource, request] = members.map(|name| text(mapping, name));
        match containers.get(container) {
            None => {
                let detail =
                    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                causes.invalid(&row.child("containerName"), container, detail);
            }
            Some(of) if !requests_of(of).contains_key(resource) => {
                let detail = "must match the extended resource name of an entry in \
                              spec.initContainers.resources.requests or spec.containers.resources.requests";
                causes.invalid(&row.child("resourceName"), resource, detail);
            }
            Some(_) => {}
        }
        causes.faults(&at.child("requestName"), request, format::dns1123_label(request));
        if before.again(key) {
            members.iter().zip(key).for_each(|(name, value)| causes.duplicate(&row.child(name), value));
        }
    }
    let at = at.child("resourceClaimName");
    match text(claim, "resourceClaimName") {
        "" => causes.required(&at, ""),
        name => causes.faults(&at, name, format::dns1123_subdomain(name)),
    }
}

fn requests_of(container: &Members) -> &Members {
    child_or_empty(child_or_empty(container, "resources"), "requests")
}

/// Who containers run as.
pub fn users(status: &Members, spec: &Members, causes: &mut Causes) {
    let system = text(child_or_empty(spec, "os"), "name");
    for name in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let at = STATUS.child(name);
        for (index, of) in objects(status, name).enumerate() {
            let Some(linux) = child(child_or_empty(of, "user"), "linux") else { continue };
            let at = at.index(index);
            let at = at.child("user");
            let at = at.child("linux");
            match system {
                "windows" => causes.forbidden(&at, "cannot be set for a windows pod"),
                "" | "linux" => linux_user(linux, &at, causes),
                _ => {}
            }
        }
    }
}

fn linux_user(user: &Members, at: &Path<'_>, causes: &mut Causes) {
    for name in ["uid", "gid"] {
        let id = int(user, name).unwrap_or(0);
        if let Some(fault) = format::user_id(id) {
            causes.invalid(&at.child(name), id, fault);
        }
    }
    let at = at.child("supplementalGroups");
    for (index, group) in list(user, "supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
        if let Some(fault) = format::user_id(group) {
            causes.invalid(&at.index(index), group, fault);
        }
    }
}

const ALLOCATED: &str = "allocatedResourcesStatus";

/// What containers got of what they ask for.
pub fn allocated(status: &Members, spec: &Members, causes: &mut Causes) {
    for (statuses, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        let at = STATUS.child(statuses);
        let by_name: Firsts<&str, Asked<'_>> =
            objects(spec, containers).map(|of| (text(of, "name"), Asked::of(of))).collect();
        for (index, of) in objects(status, statuses).enumerate() {
            let at = at.index(index);
            let at = at.child(ALLOCATED);
            for (position, resource) in objects(of, ALLOCATED).enumerate() {
                let at = at.index(position);
                let asked = by_name.get(text(of, "name"));
                if let Some(fault) = asked.and_then(|asked| asked.fault(text(resource, "name"))) {
                    causes.invalid(&at.child("name"), text(resource, "name"), fault);
                }
                health(resource, &at.child("resources"), causes);
            }
        }
    }
    let at = STATUS.child("ephemeralContainerStatuses");
    for (index, of) in objects(status, "ephemeralContainerStatuses").enumerate() {
        if !list(of, ALLOCATED).is_empty() {
            causes.forbidden(&at.index(index).child(ALLOCATED), "must not be specified in container status");
        }
    }
}

/// What a container asks for.
struct Asked<'o> {
    container: &'o Members,
    /// Its claims as its status names them, once somebody asks.
    claims: OnceCell<Seen<String>>,
}

impl<'o> Asked<'o> {
    fn of(container: &'o Members) -> Asked<'o> {
        Asked { container, claims: OnceCell::new() }
    }

    fn fault(&self, name: &str) -> Option<&'static str> {
        let Some(claim) = name.strip_prefix("claim:") else {
            let known = requests_of(self.container).contains_key(name);
            return (!known).then_some("must match one of the container's resource requests");
        };
        let claims = self.claims.get_or_init(|| {
            let claims = objects(child_or_empty(self.container, "resources"), "claims");
            let named = claims.map(|claim| match (text(claim, "name"), text(claim, "request")) {
                (name, "") => name.to_string(),
                (name, request) => format!("{name}/{request}"),
            });
            named.collect()
        });
        let detail = "must match one of the container's resource claims in a format \
                      'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
        (!claims.has(claim)).then_some(detail)
    }
}

fn health(resource: &Members, at: &Path<'_>, causes: &mut Causes) {
    let mut ids = Seen::default();
    for (index, one) in objects(resource, "resources").enumerate() {
        let at = at.index(index);
        let health = text(one, "health");
        if !HEALTH.contains(&health) {
            causes.not_supported(&at.child("health"), health, &HEALTH);
        }
        match text_opt(one, "message") {
            Some("") => causes.required(&at.child("message"), "must be non-empty if specified"),
            Some(message) if message.len() > MESSAGE_BYTES_MAX => {
                causes.too_long(&at.child("message"), MESSAGE_BYTES_MAX);
            }
            _ => {}
        }
        let id = text(one, "resourceID");
        if ids.again(id) {
            causes.duplicate(&at.child("resourceID"), id);
        }
    }
}
