//! Security contexts of pods and containers.
//!
//! In: a pod's spec or a container. Out: causes. Never: what is allowed in a namespace; that is admission.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use serde_json::Value;

use super::mounts::descending_path;
use crate::strategy::field::{Causes, Path};
use crate::strategy::format;
use crate::strategy::value::{Members, child, child_or_empty, int, is_true, list, text, text_opt, texts};

/// A container's.
pub fn of_container(container: &Members, host_users: bool, at: &Path<'_>, causes: &mut Causes) {
    let Some(context) = child(container, "securityContext") else { return };
    let at = at.child("securityContext");
    ids(context, &["runAsUser", "runAsGroup"], &at, causes);
    if let Some(mount) = text_opt(context, "procMount") {
        if !matches!(mount, "Default" | "Unmasked") {
            causes.not_supported(&at.child("procMount"), mount, &["Default", "Unmasked"]);
        }
        if host_users && mount == "Unmasked" {
            let bad = crate::strategy::field::Bad::Shown("\"Unmasked\"".into());
            causes.invalid(&at.child("procMount"), bad, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    profile(context, "seccompProfile", "seccomp", &at, causes);
    if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        escalation(context, &at, causes);
    }
    profile(context, "appArmorProfile", "AppArmor", &at, causes);
}

fn escalation(context: &Members, at: &Path<'_>, causes: &mut Causes) {
    if is_true(context, "privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        causes.invalid(at, super::template::shown(context), detail);
    }
    if texts(child_or_empty(context, "capabilities"), "add").any(|capability| capability == "CAP_SYS_ADMIN") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        causes.invalid(at, super::template::shown(context), detail);
    }
}

fn ids(context: &Members, names: &[&str], at: &Path<'_>, causes: &mut Causes) {
    for name in names {
        if let Some(id) = int(context, name)
            && let Some(fault) = format::user_id(id)
        {
            causes.invalid(&at.child(name), id, fault);
        }
    }
}

/// A profile of seccomp or AppArmor.
fn profile(context: &Members, name: &str, called: &str, at: &Path<'_>, causes: &mut Causes) {
    const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
    let Some(profile) = child(context, name) else { return };
    let at = at.child(name);
    match text(profile, "type") {
        "" => causes.required(&at.child("type"), "type is required when ".to_string().as_str().trim_end()),
        known if TYPES.contains(&known) => {}
        other => causes.not_supported(&at.child("type"), other, &TYPES),
    }
    let local = text_opt(profile, "localhostProfile");
    let at = at.child("localhostProfile");
    match (text(profile, "type") == "Localhost", local) {
        (true, None) => causes.required(&at, &format!("must be set when {called} type is Localhost")),
        (true, Some(path)) => descending_path(path, &at, causes),
        (false, Some(_)) => {
            let bad = super::template::shown(profile);
            causes.invalid(&at, bad, &format!("can only be set when {called} type is Localhost"));
        }
        (false, None) => {}
    }
}

/// A pod's.
pub fn of_pod(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let context = child_or_empty(spec, "securityContext");
    let at = at.child("securityContext");
    ids(context, &["fsGroup", "runAsUser", "runAsGroup"], &at, causes);
    for (index, group) in list(context, "supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
        if let Some(fault) = format::user_id(group) {
            causes.invalid(&at.child("supplementalGroups").index(index), group, fault);
        }
    }
    if is_true(spec, "shareProcessNamespace") && is_true(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.invalid(&at.child("shareProcessNamespace"), true, detail);
    }
    one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &at, causes);
    profile(context, "seccompProfile", "seccomp", &at, causes);
    profile(context, "appArmorProfile", "AppArmor", &at, causes);
    one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &at, causes);
    one_of(context, "seLinuxChangePolicy", &["MountOption", "Recursive"], &at, causes);
}

fn one_of(object: &Members, name: &str, values: &[&str], at: &Path<'_>, causes: &mut Causes) {
    if let Some(value) = text_opt(object, name).filter(|value| !values.contains(value)) {
        causes.not_supported(&at.child(name), value, values);
    }
}
