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
use crate::value::{Members, child_or_empty, int, list, objects, text};

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
    for (statuses, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        restarts(status, old_status, spec, statuses, containers, causes);
    }
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
    let of_spec: Firsts<&str, &Members> =
        objects(spec, containers).map(|container| (text(container, "name"), container)).collect();
    for (index, before) in objects(old, statuses).enumerate() {
        let state = child_or_empty(before, "state");
        let ended = child_or_empty(state, "terminated");
        if !state.contains_key("terminated") {
            continue;
        }
        let name = text(before, "name");
        let Some(container) = of_spec.get(name) else { continue };
        if running.has(name)
            && !should_restart(container, spec, int(ended, "exitCode").unwrap_or(0), containers)
        {
            causes.forbidden(
                &at.index(index).child("state"),
                "may not be transitioned to non-terminated state",
            );
        }
    }
}

fn should_restart(container: &Members, spec: &Members, exit_code: i64, containers: &str) -> bool {
    if !list(container, "restartPolicyRules").is_empty() {
        return true; // the rules decide; they are looked at with the rest of validation
    }
    let policy = match text(container, "restartPolicy") {
        "" => text(spec, "restartPolicy"),
        own => own,
    };
    match policy {
        "Always" => true,
        "OnFailure" => exit_code != 0,
        // One that runs before the others is tried again until it succeeds, unless the pod is never
        // restarted.
        _ => containers == "initContainers" && text(spec, "restartPolicy") != "Never" && exit_code != 0,
    }
}

fn addresses(status: &Members, old: &Members, name: &str, causes: &mut Causes) {
    let at = STATUS.child(name);
    let known: Seen<&str> = objects(old, name).map(|address| text(address, "ip")).collect();
    let addresses: Vec<&str> = objects(status, name).map(|address| text(address, "ip")).collect();
    for (index, address) in addresses.iter().enumerate().filter(|(_, address)| !known.has(**address)) {
        legacy_ip(address, &at.index(index), causes);
    }
    let v6 = addresses.iter().filter(|address| address.contains(':')).count();
    if addresses.len() > 2 || (addresses.len() == 2 && v6 != 1) {
        let bad = BadValue::shown_list(addresses.iter().map(|address| format!("{{\"IP\":{address:?}}}")));
        causes.invalid(&at, bad, "may specify no more than one IP for each IP family");
    }
}
