//! What the spec of a pod may be, in a pod and in a template.
//!
//! In: a PodSpec. Out: causes, in upstream's order. Never: what was there before.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::selector::label_value_faults;

use super::container::{self, Pod};
use super::env;
use super::os;
use super::placement;
use super::resources::{self, Claims, Of};
use super::security;
use super::totals;
use super::volumes;
use super::warnings::each_container;
use crate::address::legacy_ip;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::meta::{label_key, labels};
use crate::value::{Members, child, child_or_empty, int, is_true, list, objects, text, text_opt, texts};

/// Whose spec it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner<'o> {
    /// A pod of this name.
    Pod(&'o str),
    /// The same, where a kubelet runs it from a file of its own.
    StaticPod(&'o str),
    Template,
}

const NAMESERVERS_MAX: usize = 3;
const HOSTNAME_BYTES_MAX: usize = 64;
const SEARCHES_MAX: usize = 32;
const SEARCH_BYTES_MAX: usize = 2048;
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub fn validate(spec: &Members, owner: Owner<'_>, at: &Path<'_>, causes: &mut Causes) {
    let name = match owner {
        Owner::Pod(name) | Owner::StaticPod(name) => name,
        Owner::Template => "",
    };
    if !spec.contains_key("terminationGracePeriodSeconds") {
        causes.required(&at.child("terminationGracePeriodSeconds"), "");
    }
    let pod = Pod {
        spec,
        volumes: volumes::validate(spec, name, at, causes),
        claims: resource_claims(spec, owner, &at.child("resourceClaims"), causes),
        grace: int(spec, "terminationGracePeriodSeconds").unwrap_or(i64::MAX),
        os: text(child_or_empty(spec, "os"), "name"),
        host_users: !spec.get("hostUsers").is_some_and(|users| users == false),
    };
    container::validate(&pod, at, causes);
    pod_resources(&pod, at, causes);
    host_network(spec, owner, at, causes);
    policies(spec, at, causes);
    labels(child_or_empty(spec, "nodeSelector"), &at.child("nodeSelector"), causes);
    security::of_pod(spec, at, causes);
    placement::affinity(spec, at, causes);
    dns_config(spec, &at.child("dnsConfig"), causes);
    gates(spec, at, causes);
    placement::spread(spec, at, causes);
    os::host_process(spec, at, causes);
    host_users(spec, pod.host_users, at, causes);
    if let Some(name) = text_opt(spec, "hostnameOverride") {
        hostname_override(spec, name, at, causes);
    }
    names(spec, at, causes);
    tolerations(spec, at, causes);
    host_aliases(spec, at, causes);
    classes(spec, at, causes);
}

fn resource_claims<'o>(
    spec: &'o Members,
    owner: Owner<'_>,
    at: &Path<'_>,
    causes: &mut Causes,
) -> Claims<'o> {
    let mut names = Claims::default();
    for (index, claim) in objects(spec, "resourceClaims").enumerate() {
        let at = at.index(index);
        let name = text(claim, "name");
        let again = !name.is_empty() && names.again(name);
        if matches!(owner, Owner::StaticPod(_)) {
            causes.forbidden(&Path::root(""), "static pods do not support resource claims");
            continue;
        }
        if name.is_empty() {
            causes.required(&at.child("name"), "");
        } else if again {
            causes.duplicate(&at.child("name"), name);
        } else {
            causes.faults(&at.child("name"), name, format::dns1123_label(name));
        }
        let from = ["resourceClaimName", "resourceClaimTemplateName"];
        match from.into_iter().filter(|from| claim.contains_key(*from)).count() {
            0 => {
                let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                causes.invalid(&at, internal::shown("PodResourceClaim", claim), detail);
            }
            1 => {}
            _ => {
                let detail =
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                causes.invalid(&at, internal::shown("PodResourceClaim", claim), detail);
            }
        }
        for from in from {
            if let Some(name) = text_opt(claim, from) {
                causes.faults(&at.child(from), name, format::dns1123_subdomain(name));
            }
        }
    }
    names
}

fn pod_resources(pod: &Pod<'_>, at: &Path<'_>, causes: &mut Causes) {
    let Some(resources) = child(pod.spec, "resources") else { return };
    let at = at.child("resources");
    if pod.os == "windows" {
        return causes.forbidden(&at, "may not be set for a windows pod");
    }
    if resources.contains_key("claims") {
        causes.forbidden(&at.child("claims"), "claims may not be set for Resources at pod-level");
    }
    resources::requirements(Of::Pod, resources, &pod.claims, &at, causes);
    totals::within_pod(pod.spec, resources, &at, causes);
}

fn host_network(spec: &Members, owner: Owner<'_>, at: &Path<'_>, causes: &mut Causes) {
    if !is_true(spec, "hostNetwork") {
        return;
    }
    for (index, container) in objects(spec, "containers").enumerate() {
        for (position, port) in objects(container, "ports").enumerate() {
            let (host, own) = (int(port, "hostPort").unwrap_or(0), int(port, "containerPort").unwrap_or(0));
            if (owner != Owner::Template || host != 0) && host != own {
                let at = at.child("containers");
                let at = at.index(index);
                let at = at.child("ports");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                causes.invalid(&at.index(position).child("hostPort"), host, detail);
            }
        }
    }
}

fn policies(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    const RESTART: [&str; 3] = ["Always", "OnFailure", "Never"];
    const DNS: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    match text(spec, "restartPolicy") {
        "" => causes.required(&at.child("restartPolicy"), ""),
        known if RESTART.contains(&known) => {}
        other => causes.not_supported(&at.child("restartPolicy"), other, &RESTART),
    }
    match text(spec, "dnsPolicy") {
        "" => causes.required(&at.child("dnsPolicy"), ""),
        known if DNS.contains(&known) => {}
        other => {
            let bad = BadValue::shown(forebay_apimachinery::json::to_go_text(&other.into()));
            causes.not_supported(&at.child("dnsPolicy"), bad, &DNS);
        }
    }
}

fn dns_config(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let config = child(spec, "dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_none() {
            return causes.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if config.is_none_or(|config| list(config, "nameservers").is_empty()) {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return causes.required(&at.child("nameservers"), detail);
        }
    }
    let Some(config) = config else { return };
    let servers = at.child("nameservers");
    if list(config, "nameservers").len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        causes.invalid(&servers, config.get("nameservers"), &detail);
    }
    for (index, server) in texts(config, "nameservers").enumerate() {
        legacy_ip(server, &servers.index(index), causes);
    }
    let searches: Vec<&str> = texts(config, "searches").collect();
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        causes.invalid(&at.child("searches"), config.get("searches"), &detail);
    }
    if searches.join(" ").len() > SEARCH_BYTES_MAX {
        let detail = format!(
            "must not have more than {SEARCH_BYTES_MAX} characters (including spaces) in the search list"
        );
        causes.invalid(&at.child("searches"), config.get("searches"), &detail);
    }
    for (index, search) in searches.iter().enumerate() {
        // A single dot is the root, and a dot may end a name.
        let name = search.strip_suffix('.').unwrap_or(search);
        if *search != "." {
            causes.faults(&at.child("searches").index(index), search, format::search_path(name));
        }
    }
    for (index, option) in objects(config, "options").enumerate() {
        if text(option, "name").is_empty() {
            causes.required(&at.child("options").index(index), "must not be empty");
        }
    }
}

fn gates(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    for (index, gate) in objects(spec, "readinessGates").enumerate() {
        let at = at.child("readinessGates");
        label_key(text(gate, "conditionType"), &at.index(index).child("conditionType"), causes);
    }
    let mut names = Seen::default();
    for (index, gate) in objects(spec, "schedulingGates").enumerate() {
        let at = at.child("schedulingGates");
        let name = text(gate, "name");
        label_key(name, &at.index(index), causes);
        if names.again(name) {
            causes.duplicate(&at.index(index), name);
        }
    }
}

fn host_users(spec: &Members, host_users: bool, at: &Path<'_>, causes: &mut Causes) {
    if host_users {
        return;
    }
    for (name, path) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if is_true(spec, name) {
            causes.forbidden(&at.child(path), "when `hostUsers` is false");
        }
    }
}

/// A pod with users of its own has no block devices; one that was there with some may go on.
///
/// - `old`: the spec that was there, if one was.
pub fn block_devices(spec: &Members, old: Option<&Members>, at: &Path<'_>, causes: &mut Causes) {
    let has_own_users = |spec: &Members| spec.get("hostUsers").is_some_and(|users| users == false);
    let has_devices = |container: &Members| !list(container, "volumeDevices").is_empty();
    if !has_own_users(spec) {
        return;
    }
    let mut had_some = false;
    if let Some(old) = old.filter(|old| has_own_users(old)) {
        each_container(old, at, |container, _| had_some |= has_devices(container));
    }
    each_container(spec, at, |container, at| {
        if has_devices(container) && !had_some {
            causes.forbidden(&at.child("volumeDevices"), "when `hostUsers` is false");
        }
    });
}

fn names(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    for name in ["serviceAccountName", "nodeName"] {
        let value = text(spec, name);
        if !value.is_empty() {
            causes.faults(&at.child(name), value, format::dns1123_subdomain(value));
        }
    }
    if let Some(seconds) =
        int(spec, "activeDeadlineSeconds").filter(|at| !(1..=i64::from(i32::MAX)).contains(at))
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        causes.invalid(&at.child("activeDeadlineSeconds"), seconds, detail);
    }
    for name in ["hostname", "subdomain"] {
        let value = text(spec, name);
        if !value.is_empty() {
            causes.faults(&at.child(name), value, format::dns1123_label(value));
        }
    }
}

/// A name that the whole host goes by, so nothing else may name the pod.
fn hostname_override(spec: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    let own = at.child("hostnameOverride");
    if is_true(spec, "setHostnameAsFQDN") {
        causes.forbidden(&own, "may not be specified when setHostnameAsFQDN is true");
    }
    if is_true(spec, "hostNetwork") {
        causes.forbidden(&own, "may not be specified when hostNetwork is true");
    }
    if name.len() > HOSTNAME_BYTES_MAX {
        causes.too_long(&own, HOSTNAME_BYTES_MAX);
    }
    causes.faults(&own, name, format::dns1123_subdomain(name));
}

fn tolerations(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    for (index, toleration) in objects(spec, "tolerations").enumerate() {
        let at = at.child("tolerations");
        toleration_rules(toleration, &at.index(index), causes);
    }
}

/// One toleration.
pub fn toleration_rules(toleration: &Members, at: &Path<'_>, causes: &mut Causes) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|name| text(toleration, name));
    if !key.is_empty() {
        label_key(key, &at.child("key"), causes);
    } else if operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        causes.invalid(&at.child("operator"), operator, detail);
    }
    if toleration.contains_key("tolerationSeconds") && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.invalid(&at.child("effect"), effect, detail);
    }
    match operator {
        "Equal" | "" => {
            let faults = label_value_faults(value);
            if !faults.is_empty() {
                causes.invalid(&at.child("operator"), value, &faults.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            causes.invalid(&at.child("operator"), value, "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        "Lt" | "Gt" => {
            causes.not_supported(&at.child("operator"), operator, &["Equal", "Exists", "Lt", "Gt"]);
        }
        other => causes.not_supported(&at.child("operator"), other, &["Equal", "Exists"]),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        causes.not_supported(&at.child("effect"), effect, &EFFECTS);
    }
}

fn host_aliases(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    for (index, alias) in objects(spec, "hostAliases").enumerate() {
        let at = at.child("hostAliases");
        let at = at.index(index);
        legacy_ip(text(alias, "ip"), &at.child("ip"), causes);
        for (position, name) in texts(alias, "hostnames").enumerate() {
            causes.faults(&at.child("hostnames").index(position), name, format::dns1123_subdomain(name));
        }
    }
}

fn classes(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let priority = text_opt(spec, "priorityClassName").filter(|class| !class.is_empty());
    for (name, class) in
        [("priorityClassName", priority), ("runtimeClassName", text_opt(spec, "runtimeClassName"))]
    {
        if let Some(class) = class {
            causes.faults(&at.child(name), class, format::dns1123_subdomain(class));
        }
    }
    const PREEMPTION: [&str; 2] = ["PreemptLowerPriority", "Never"];
    match text_opt(spec, "preemptionPolicy") {
        None => {}
        Some("") => causes.required(&at.child("preemptionPolicy"), ""),
        Some(known) if PREEMPTION.contains(&known) => {}
        Some(other) => {
            let bad = BadValue::shown(forebay_apimachinery::json::to_go_text(&other.into()));
            causes.not_supported(&at.child("preemptionPolicy"), bad, &PREEMPTION);
        }
    }
    if spec.contains_key("overhead") {
        let mut limits = Members::new();
        limits.insert("limits".into(), spec["overhead"].clone());
        resources::requirements(Of::Container, &limits, &Claims::default(), &at.child("overhead"), causes);
    }
    os::validate(spec, at, causes);
    env::file_volumes(spec, at, causes);
}
