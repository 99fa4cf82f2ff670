//! The checks, one function each for every way that it was done.
//!
//! In: a pod. Out: a fault, or none.
//!
//! Source: pod-security-admission v0.36.3 `policy/check_*.go`.

mod baseline;
mod restricted;

use std::collections::BTreeSet;

use forebay_apimachinery::json::go_quote;
use forebay_strategy::value::{Members, child_or_empty, objects, text};
use serde_json::Value;

pub use baseline::{
    added_capabilities, app_armor, host_namespaces, host_paths, host_ports, host_process, privileged,
    probed_hosts, proc_mount, proc_mount_of_shared_users, se_linux, se_linux_first, seccomp,
    seccomp_annotations, sysctls, sysctls_first, sysctls_keepalive, sysctls_reserved_ports,
};
pub use restricted::{
    capabilities, capabilities_anywhere, escalation, escalation_anywhere, no_seccomp, no_seccomp_anywhere,
    root, root_anywhere, user_zero, user_zero_anywhere, volume_types,
};

/// What is forbidden, and where the pod has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub reason: String,
    pub detail: String,
}

/// A pod, or what pods are made from.
pub struct CheckedPod<'o> {
    pub meta: &'o Members,
    pub spec: &'o Members,
}

impl<'o> CheckedPod<'o> {
    /// Its containers of every kind.
    fn containers(&self) -> impl Iterator<Item = &'o Members> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|name| objects(spec, name))
    }

    /// What the pod says of its security, for its containers.
    fn security(&self) -> &'o Members {
        child_or_empty(self.spec, "securityContext")
    }

    fn is_windows(&self) -> bool {
        text(child_or_empty(self.spec, "os"), "name") == "windows"
    }

    /// Whether its users are none of its host's.
    fn has_own_users(&self) -> bool {
        self.spec.get("hostUsers").is_some_and(|value| value == false)
    }

    /// The names of the containers whose security is as `is_bad` says.
    fn named(&self, is_bad: impl FnMut(&'o Members) -> bool) -> Vec<&'o str> {
        let mut is_bad = is_bad;
        let bad = self.containers().filter(|container| is_bad(child_or_empty(container, "securityContext")));
        bad.map(|container| text(container, "name")).collect()
    }
}

/// None where there is no detail.
fn fault(reason: &str, detail: Option<String>) -> Option<Violation> {
    Some(Violation { reason: reason.to_string(), detail: detail? })
}

/// `container "a"`, `containers "a", "b"`; none without names.
fn containers(names: &[&str]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{} {}", plural("container", names.len()), quoted(names)))
}

/// `pod and container "a"`; none when neither is meant.
fn setters(is_pod: bool, names: &[&str]) -> Option<String> {
    match (is_pod, containers(names)) {
        (true, Some(named)) => Some(format!("pod and {named}")),
        (true, None) => Some("pod".to_string()),
        (false, named) => named,
    }
}

fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect();
    items.join(", ")
}

fn joined(items: &BTreeSet<String>) -> String {
    items.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_string() } else { format!("{word}s") }
}

/// `uses` of one, `use` of several.
fn uses(count: usize) -> &'static str {
    if count == 1 { "uses" } else { "use" }
}

fn annotation(name: &str, value: &str) -> String {
    format!("{name}={}", go_quote(value))
}

fn is(value: Option<&Value>, wanted: bool) -> bool {
    value.is_some_and(|value| *value == wanted)
}
