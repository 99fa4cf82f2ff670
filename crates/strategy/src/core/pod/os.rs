//! What a pod that names its operating system may not ask for.
//!
//! In: a pod's spec. Out: causes. Never: what a node runs.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use serde_json::Value;

use crate::field::{Causes, Path};
use crate::privileged::Privileged;
use crate::value::{Members, child, child_or_empty, is_true, objects, text};

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";

/// `os` of a pod's spec, and what follows from it.
pub fn validate(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(os) = child(spec, "os") else { return };
    let own = at.child("os");
    match text(os, "name") {
        "linux" => linux(spec, at, causes),
        "windows" => windows(spec, at, causes),
        "" => causes.required(&own.child("name"), ""),
        other => causes.not_supported(&own, other, &["linux", "windows"]),
    }
}

fn linux(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let context_at = at.child("securityContext");
    if child_or_empty(spec, "securityContext").contains_key("windowsOptions") {
        causes.forbidden(&context_at.child("windowsOptions"), NOT_ON_LINUX);
    }
    each_context(spec, at, |context, at| {
        if context.contains_key("windowsOptions") {
            causes.forbidden(&at.child("windowsOptions"), NOT_ON_LINUX);
        }
    });
}

/// A member of the spec itself, or of its security context, in upstream's order.
enum Of {
    Spec,
    Context,
}

fn windows(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    const OF_POD: [(&str, Of); 15] = [
        ("appArmorProfile", Of::Context),
        ("seLinuxOptions", Of::Context),
        ("hostUsers", Of::Spec),
        ("hostPID", Of::Spec),
        ("hostIPC", Of::Spec),
        ("seccompProfile", Of::Context),
        ("fsGroup", Of::Context),
        ("fsGroupChangePolicy", Of::Context),
        ("sysctls", Of::Context),
        ("shareProcessNamespace", Of::Spec),
        ("runAsUser", Of::Context),
        ("runAsGroup", Of::Context),
        ("supplementalGroups", Of::Context),
        ("supplementalGroupsPolicy", Of::Context),
        ("seLinuxChangePolicy", Of::Context),
    ];
    const OF_CONTAINER: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    let context = child_or_empty(spec, "securityContext");
    let context_at = at.child("securityContext");
    for (name, of) in OF_POD {
        let is_plain_bool = matches!(name, "hostPID" | "hostIPC");
        match of {
            Of::Spec if is_plain_bool && !is_true(spec, name) => {}
            Of::Spec if spec.contains_key(name) => causes.forbidden(&at.child(name), NOT_ON_WINDOWS),
            Of::Context if context.contains_key(name) => {
                causes.forbidden(&context_at.child(name), NOT_ON_WINDOWS);
            }
            _ => {}
        }
    }
    each_context(spec, at, |context, at| {
        for name in OF_CONTAINER.into_iter().filter(|name| context.contains_key(*name)) {
            causes.forbidden(&at.child(name), NOT_ON_WINDOWS);
        }
    });
}

/// The security context of each container that has one, in the order in which upstream visits them.
pub fn each_context(spec: &Members, at: &Path<'_>, mut visit: impl FnMut(&Members, &Path<'_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let at = at.child(list);
        for (index, container) in objects(spec, list).enumerate() {
            if let Some(context) = child(container, "securityContext") {
                let at = at.index(index);
                visit(context, &at.child("securityContext"));
            }
        }
    }
}

/// A pod of Windows host processes has no other containers, is on the host's network, and is as privileged as
/// can be.
pub fn host_process(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let of_pod = is_host_process(child_or_empty(spec, "securityContext"));
    let (mut all, mut host) = (0, 0);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let at = at.child(list);
        for (index, container) in objects(spec, list).enumerate() {
            all += 1;
            let own = is_host_process(child_or_empty(container, "securityContext"));
            if let (Some(pod), Some(own)) = (of_pod, own)
                && pod != own
            {
                let detail =
                    format!("pod hostProcess value must be identical if both are specified, was {pod}");
                let at = at.index(index);
                let at = at.child("securityContext");
                let at = at.child("windowsOptions");
                causes.invalid(&at.child("hostProcess"), own, &detail);
            }
            host += usize::from(own.or(of_pod) == Some(true));
        }
    }
    if host == 0 {
        return;
    }
    if host != all {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        causes.invalid(at, "", detail);
    }
    if !is_true(spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        causes.invalid(&at.child("hostNetwork"), false, detail);
    }
    if causes.privileged == Privileged::Disallowed {
        causes.forbidden(at, "hostProcess containers are disallowed by cluster policy");
    }
}

fn is_host_process(context: &Members) -> Option<bool> {
    child_or_empty(context, "windowsOptions").get("hostProcess").and_then(Value::as_bool)
}
