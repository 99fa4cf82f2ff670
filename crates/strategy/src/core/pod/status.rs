//! What the status of a pod may become.
//!
//! In: a pod with its new status, and the stored one. Out: causes. Never: changes it.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::seen::Firsts;

use super::container_status;
use crate::address::legacy_ip;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::meta::{IMMUTABLE, label_key};
use crate::value::{Members, child, child_or_empty, int, list, objects, text};

const STATUS: Path<'static> = Path::root("status");

pub fn validate_update(new: &Members, old: &Members, causes: &mut Causes) {
    let (status, old_status) = (child_or_empty(new, "status"), child_or_empty(old, "status"));
    conditions(status, causes);
    nominated_node(status, old_status, child_or_empty(old, "spec"), causes);
    let generation = int(status, "observedGeneration").unwrap_or(0);
    if generation < 0 {
        causes.invalid(&STATUS.child("observedGeneration"), generation, "must be a non-negative integer");
    }
    let class = text(status, "qosClass");
    if class != text(old_status, "qosClass") {
        causes.invalid(&STATUS.child("qosClass"), class, IMMUTABLE);
    }
    let spec = child_or_empty(old, "spec");
    if !all_may_restart(spec) {
        restarts(status, old_status, spec, "containerStatuses", "containers", causes);
        restarts(status, old_status, spec, "initContainerStatuses", "initContainers", causes);
    }
    // Of those that join later none is started again, whatever the spec says.
    restarts(status, old_status, &Members::new(), "ephemeralContainerStatuses", "", causes);
    container_status::claims(status, spec, causes);
    addresses(status, old_status, "podIPs", causes);
    let of_host = objects(status, "hostIPs").next().map(|first| text(first, "ip"));
    if let Some(first) = of_host.filter(|first| *first != text(status, "hostIP")) {
        let at = STATUS.child("hostIPs");
        causes.invalid(&at.index(0).child("ip"), first, "must be equal to `hostIP`");
    }
    addresses(status, old_status, "hostIPs", causes);
    container_status::users(status, spec, causes);
    container_status::allocated(status, spec, causes);
}

fn conditions(status: &Members, causes: &mut Causes) {
    let at = STATUS.child("conditions");
    for (index, condition) in objects(status, "conditions").enumerate() {
        let generation = int(condition, "observedGeneration").unwrap_or(0);
        if generation < 0 {
            causes.invalid(
                &at.index(index).child("observedGeneration"),
                generation,
                "must be a non-negative integer",
            );
        }
        let kind = text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            label_key(kind, &at.index(index).child("Type"), causes);
        }
    }
}

fn nominated_node(status: &Members, old: &Members, spec: &Members, causes: &mut Causes) {
    let node = text(status, "nominatedNodeName");
    if node.is_empty() || node == text(old, "nominatedNodeName") {
        return;
    }
    let at = STATUS.child("nominatedNodeName");
    causes.faults(&at, node, format::dns1123_subdomain(node));
    if !text(spec, "nodeName").is_empty() {
        causes.forbidden(&at, "may not be set on pods that are already bound to a node");
    }
}

/// A container that ended and is not to be started again stays ended.
fn restarts(
    status: &Members,
    old: &Members,
    spec: &Members,
    statuses: &str,
    containers: &str,
    causes: &mut Causes,
) {
    let at = STATUS.child(statuses);
    let runs = |now: &&Members| !child_or_empty(now, "state").contains_key("terminated");
    let running: Seen<&str> = objects(status, statuses).filter(runs).map(|now| text(now, "name")).collect();
    let of_spec: Firsts<&str, Restarts<'_>> = objects(spec, containers)
        .map(|container| (text(container, "name"), Restarts::of(container, spec)))
        .collect();
    for (index, before) in objects(old, statuses).enumerate() {
        let (name, state) = (text(before, "name"), child_or_empty(before, "state"));
        let Some(ended) = child(state, "terminated").filter(|_| running.has(name)) else { continue };
        let exit_code = int(ended, "exitCode").unwrap_or(0);
        if !of_spec.get(name).is_some_and(|container| container.restarts_after(exit_code)) {
            causes.forbidden(
                &at.index(index).child("state"),
                "may not be transitioned to non-terminated state",
            );
        }
    }
}

/// Whether the end of one container may start all of them again.
fn all_may_restart(spec: &Members) -> bool {
    let mut rules = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| objects(spec, list))
        .flat_map(|container| objects(container, "restartPolicyRules"));
    rules.any(|rule| text(rule, "action") == "RestartAllContainers")
}

/// When a container that ended is started again.
struct Restarts<'o> {
    /// Its own, or the pod's.
    policy: &'o str,
    /// The exit codes of its rules, and whether one must be among them or must not.
    rules: Vec<(bool, Seen<i64>)>,
}

impl<'o> Restarts<'o> {
    fn of(container: &'o Members, spec: &'o Members) -> Restarts<'o> {
        let codes = |rule: &'o Members| {
            let codes = child(rule, "exitCodes")?;
            let values = list(codes, "values").iter().filter_map(serde_json::Value::as_i64).collect();
            Some((text(codes, "operator") == "In", values))
        };
        match text(container, "restartPolicy") {
            "" => Restarts { policy: text(spec, "restartPolicy"), rules: Vec::new() },
            policy => {
                let rules = objects(container, "restartPolicyRules").filter_map(codes).collect();
                Restarts { policy, rules }
            }
        }
    }

    fn restarts_after(&self, exit_code: i64) -> bool {
        // Few: as many rules as validation lets a container have.
        self.rules.iter().any(|(is_in, codes)| codes.has(&exit_code) == *is_in)
            || match self.policy {
                "Never" => false,
                "OnFailure" => exit_code != 0,
                _ => true,
            }
    }
}

fn addresses(status: &Members, old: &Members, name: &str, causes: &mut Causes) {
    let at = STATUS.child(name);
    let known: Seen<&str> = objects(old, name).map(|address| text(address, "ip")).collect();
    let addresses: Vec<&str> = objects(status, name).map(|address| text(address, "ip")).collect();
    for (index, address) in addresses.iter().enumerate().filter(|(_, address)| !known.has(**address)) {
        legacy_ip(address, &at.index(index), causes);
    }
    if addresses.len() > 1
        // Once: each address, up to the first that is none.
        && let Some(index) = addresses.iter().position(|address| format::sloppy_ip(address).is_none())
    {
        let which = format!("invalid IP[{index}]: {}", addresses[index]);
        causes.internal(&at, &format!("failed to check for dual stack with error:{which}"));
    }
    let v6 = addresses.iter().filter(|address| address.contains(':')).count();
    if addresses.len() > 2 || (addresses.len() == 2 && v6 != 1) {
        let bad = BadValue::shown_list(addresses.iter().map(|address| format!("{{\"IP\":{address:?}}}")));
        causes.invalid(&at, bad, "may specify no more than one IP for each IP family");
    }
}
