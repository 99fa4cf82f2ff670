//! Containers: those of the pod, those that run before, and those that join later.
//!
//! In: a pod's spec. Out: causes. Never: their images.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::Seen;

use super::env;
use super::mounts::{self, Known};
use super::probe;
use super::resources::{self, Claims, Of};
use super::security;
use crate::core::endpoints::{port_number, protocol};
use crate::field::{Causes, Path};
use crate::format;
use crate::value::{Members, child, child_or_empty, int, list, objects, text, text_opt};

/// What all containers of a pod have in common.
pub struct Pod<'o> {
    pub spec: &'o Members,
    pub volumes: Known<'o>,
    /// Names of its resource claims.
    pub claims: Claims<'o>,
    pub grace: i64,
    pub os: &'o str,
    pub host_users: bool,
}

pub const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// All lists of containers, in upstream's order.
pub fn validate(pod: &Pod<'_>, at: &Path<'_>, causes: &mut Causes) {
    regular(pod, &at.child("containers"), causes);
    init(pod, &at.child("initContainers"), causes);
    ephemeral(pod, &at.child("ephemeralContainers"), causes);
}

fn regular(pod: &Pod<'_>, at: &Path<'_>, causes: &mut Causes) {
    if list(pod.spec, "containers").is_empty() {
        return causes.required(at, "");
    }
    let containers: Vec<&Members> = objects(pod.spec, "containers").collect();
    let mut names = Seen::default();
    for (index, container) in containers.iter().enumerate() {
        let at = at.index(index);
        common(pod, container, &at, causes);
        let name = text(container, "name");
        if names.again(name) {
            causes.duplicate(&at.child("name"), name);
        }
        probe::hooks(container, pod.grace, &at, causes);
        probe::probes(container, pod.grace, &at, causes);
        restart_policy(container, &at, causes);
    }
    host_ports(&containers, at, causes);
}

fn init(pod: &Pod<'_>, at: &Path<'_>, causes: &mut Causes) {
    let mut names = Seen::default();
    for (index, container) in objects(pod.spec, "initContainers").enumerate() {
        if index == 0 {
            names.extend(objects(pod.spec, "containers").map(|container| text(container, "name")));
        }
        let list_at = at;
        let at = at.index(index);
        common(pod, container, &at, causes);
        init_restart_policy(container, &at, causes);
        let name = text(container, "name");
        if names.has(name) {
            causes.duplicate(&at.child("name"), name);
        } else if !name.is_empty() {
            names.again(name);
        }
        host_ports(&[container], list_at, causes);
        if text(container, "restartPolicy") == "Always" {
            probe::hooks(container, pod.grace, &at, causes);
            probe::probes(container, pod.grace, &at, causes);
            continue;
        }
        for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.contains_key(name) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                causes.forbidden(&at.child(name), detail);
            }
        }
        for (position, policy) in objects(container, "resizePolicy").enumerate() {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let at = at.child("resizePolicy");
                let at = at.index(position);
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                causes.invalid(&at.child("restartPolicy"), "RestartContainer", detail);
            }
        }
    }
}

fn ephemeral(pod: &Pod<'_>, at: &Path<'_>, causes: &mut Causes) {
    const FORBIDDEN: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "restartPolicyRules",
    ];
    if list(pod.spec, "ephemeralContainers").is_empty() {
        return;
    }
    let lists = ["containers", "initContainers"];
    let others: Seen<&str> =
        lists.into_iter().flat_map(|list| objects(pod.spec, list)).map(|of| text(of, "name")).collect();
    let mut names = Seen::default();
    for (index, container) in objects(pod.spec, "ephemeralContainers").enumerate() {
        let at = at.index(index);
        common(pod, container, &at, causes);
        no_spaces(container, &at, causes);
        let name = text(container, "name");
        if names.again(name) || others.has(name) {
            causes.duplicate(&at.child("name"), name);
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.has(target) {
            causes.not_found(&at.child("targetContainerName"), target);
        }
        for name in FORBIDDEN.into_iter().filter(|name| is_set(container, name)) {
            causes.forbidden(&at.child(name), "cannot be set for an Ephemeral Container");
        }
        for (position, mount) in objects(container, "volumeMounts").enumerate() {
            let at = at.child("volumeMounts");
            for name in ["subPath", "subPathExpr"].into_iter().filter(|name| !text(mount, name).is_empty()) {
                causes.forbidden(&at.index(position).child(name), "cannot be set for an Ephemeral Container");
            }
        }
    }
}

fn is_set(container: &Members, name: &str) -> bool {
    match name {
        // As the codec leaves them: also those that are there and empty.
        "resources" => !child_or_empty(container, name).is_empty(),
        name => container.contains_key(name),
    }
}

/// An image's name is not padded, in pods.
pub fn no_spaces(container: &Members, at: &Path<'_>, causes: &mut Causes) {
    let image = text(container, "image");
    if image.trim().len() != image.len() {
        causes.invalid(&at.child("image"), image, "must not have leading or trailing whitespace");
    }
}

fn common(pod: &Pod<'_>, container: &Members, at: &Path<'_>, causes: &mut Causes) {
    match text(container, "name") {
        "" => causes.required(&at.child("name"), ""),
        name if format::is_dns1123_label(name) && name.len() <= 63 => {}
        name => causes.faults(&at.child("name"), name, format::dns1123_label(name)),
    }
    if text(container, "image").is_empty() {
        causes.required(&at.child("image"), "");
    }
    match text(container, "terminationMessagePolicy") {
        "File" | "FallbackToLogsOnError" => {}
        "" => causes.required(&at.child("terminationMessagePolicy"), ""),
        other => {
            let known = ["File", "FallbackToLogsOnError"];
            causes.not_supported(&at.child("terminationMessagePolicy"), other, &known);
        }
    }
    ports(container, &at.child("ports"), causes);
    env::validate(container, at, causes);
    mounts::validate(container, &pod.volumes, at, causes);
    match text(container, "imagePullPolicy") {
        "" => causes.required(&at.child("imagePullPolicy"), ""),
        known if PULL_POLICIES.contains(&known) => {}
        other => causes.not_supported(&at.child("imagePullPolicy"), other, &PULL_POLICIES),
    }
    let asked = child_or_empty(container, "resources");
    resources::requirements(Of::Container, asked, &pod.claims, &at.child("resources"), causes);
    resize_policy(pod, container, &at.child("resizePolicy"), causes);
    security::of_container(container, pod.host_users, at, causes);
}

fn ports(container: &Members, at: &Path<'_>, causes: &mut Causes) {
    let mut names = Seen::default();
    for (index, port) in objects(container, "ports").enumerate() {
        let at = at.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let faults = format::port_name(name);
            if !faults.is_empty() {
                causes.faults(&at.child("name"), name, faults);
            } else if names.again(name) {
                causes.duplicate(&at.child("name"), name);
            }
        }
        match int(port, "containerPort").unwrap_or(0) {
            0 => causes.required(&at.child("containerPort"), ""),
            _ => port_number(port, "containerPort", &at, causes),
        }
        if int(port, "hostPort").unwrap_or(0) != 0 {
            port_number(port, "hostPort", &at, causes);
        }
        protocol(port, &at, causes);
    }
}

/// Ports of the host are taken once.
fn host_ports(containers: &[&Members], at: &Path<'_>, causes: &mut Causes) {
    let mut taken: Seen<(&str, &str, i64)> = Seen::default(); // protocol, address, number
    for (index, container) in containers.iter().enumerate() {
        for (position, port) in objects(container, "ports").enumerate() {
            let number = int(port, "hostPort").unwrap_or(0);
            if number == 0 {
                continue;
            }
            let (protocol, address) = (text(port, "protocol"), text(port, "hostIP"));
            if taken.again((protocol, address, number)) {
                let at = at.index(index);
                let at = at.child("ports");
                let key = format!("{protocol}/{address}/{number}");
                causes.duplicate(&at.index(position).child("hostPort"), key.as_str());
            }
        }
    }
}

/// Of one that runs before the others: its rules are looked at where it has a policy.
fn init_restart_policy(container: &Members, at: &Path<'_>, causes: &mut Causes) {
    if container.contains_key("restartPolicy") {
        return restart_policy(container, at, causes);
    }
    if !list(container, "restartPolicyRules").is_empty() {
        let detail = "must specify restartPolicy when restart rules are used";
        causes.required(&at.child("restartPolicy"), detail);
    }
}

fn restart_policy(container: &Members, at: &Path<'_>, causes: &mut Causes) {
    const POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
    const RULES_MAX: usize = 20;
    const CODES_MAX: usize = 255;
    match text_opt(container, "restartPolicy") {
        None if !list(container, "restartPolicyRules").is_empty() => {
            let detail = "must specify restartPolicy when restart rules are used";
            causes.required(&at.child("restartPolicy"), detail);
        }
        Some(policy) if !POLICIES.contains(&policy) => {
            causes.not_supported(&at.child("restartPolicy"), policy, &POLICIES);
        }
        _ => {}
    }
    let rules_at = at.child("restartPolicyRules");
    let count = list(container, "restartPolicyRules").len();
    if count > RULES_MAX {
        causes.too_many(&rules_at, count, RULES_MAX);
    }
    for (index, rule) in objects(container, "restartPolicyRules").enumerate() {
        let at = rules_at.index(index);
        let action = text(rule, "action");
        if !matches!(action, "Restart" | "RestartAllContainers") {
            causes.not_supported(&at.child("action"), action, &["Restart", "RestartAllContainers"]);
        }
        let at = at.child("exitCodes");
        let Some(codes) = child(rule, "exitCodes") else {
            causes.required(&at, "must be specified");
            continue;
        };
        let operator = text(codes, "operator");
        if !matches!(operator, "In" | "NotIn") {
            causes.not_supported(&at.child("operator"), operator, &["In", "NotIn"]);
        }
        let values = list(codes, "values").len();
        if values > CODES_MAX {
            causes.too_many(&at.child("values"), values, CODES_MAX);
        }
    }
}

fn resize_policy(pod: &Pod<'_>, container: &Members, at: &Path<'_>, causes: &mut Causes) {
    let never = text(pod.spec, "restartPolicy") == "Never";
    let mut known = Seen::default();
    for (index, policy) in objects(container, "resizePolicy").enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if known.again(resource) {
            causes.duplicate(&at.index(index), resource);
        }
        match resource {
            "cpu" | "memory" => {}
            "" => causes.required(at, ""),
            other => causes.not_supported(at, other, &["cpu", "memory"]),
        }
        match restart {
            "NotRequired" | "RestartContainer" => {}
            "" => causes.required(at, ""),
            other => causes.not_supported(at, other, &["NotRequired", "RestartContainer"]),
        }
        if never && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            causes.invalid(at, restart, detail);
        }
    }
}
