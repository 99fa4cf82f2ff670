//! Security contexts of pods and containers.
//!
//! In: a pod's spec or a container. Out: causes. Never: what is allowed in a namespace; that is admission.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::to_go_text;
use serde_json::Value;

use super::mounts::descending_path;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::privileged::Privileged;
use crate::value::{Members, child, child_or_empty, int, is_true, list, objects, text, text_opt, texts};

/// How long the name of an AppArmor profile may be, in bytes.
pub const PROFILE_BYTES_MAX: usize = 4095;

/// A container's.
pub fn of_container(container: &Members, host_users: bool, at: &Path<'_>, causes: &mut Causes) {
    let Some(context) = child(container, "securityContext") else { return };
    let at = at.child("securityContext");
    if is_true(context, "privileged") && causes.privileged == Privileged::Disallowed {
        causes.forbidden(&at.child("privileged"), "disallowed by cluster policy");
    }
    ids(context, &["runAsUser", "runAsGroup"], &at, causes);
    if let Some(mount) = text_opt(context, "procMount") {
        if !matches!(mount, "Default" | "Unmasked") {
            causes.not_supported(&at.child("procMount"), mount, &["Default", "Unmasked"]);
        }
        if host_users && mount == "Unmasked" {
            let bad = BadValue::shown("\"Unmasked\"");
            causes.invalid(&at.child("procMount"), bad, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(context, &at, causes);
    if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        escalation(context, &at, causes);
    }
    windows_options(context, &at, causes);
    app_armor(context, &at, causes);
}

fn escalation(context: &Members, at: &Path<'_>, causes: &mut Causes) {
    if is_true(context, "privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        causes.invalid(at, internal::shown("SecurityContext", context), detail);
    }
    if texts(child_or_empty(context, "capabilities"), "add").any(|capability| capability == "CAP_SYS_ADMIN") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        causes.invalid(at, internal::shown("SecurityContext", context), detail);
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

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(context: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(profile) = child(context, "seccompProfile") else { return };
    let at = at.child("seccompProfile");
    let kind = text(profile, "type");
    match kind {
        "" => causes.required(&at.child("type"), "type is required when seccompProfile is set"),
        known if PROFILES.contains(&known) => {}
        other => causes.not_supported(&at.child("type"), other, &PROFILES),
    }
    let at = at.child("localhostProfile");
    match (kind == "Localhost", text_opt(profile, "localhostProfile")) {
        (true, None) => causes.required(&at, "must be set when seccomp type is Localhost"),
        (true, Some(path)) => descending_path(path, &at, causes),
        (false, Some(_)) => {
            let bad = internal::shown("SeccompProfile", profile);
            causes.invalid(&at, bad, "can only be set when seccomp type is Localhost");
        }
        (false, None) => {}
    }
}

fn app_armor(context: &Members, at: &Path<'_>, causes: &mut Causes) {
    const MISSING: &str = "must be set when AppArmor type is Localhost";
    let Some(profile) = child(context, "appArmorProfile") else { return };
    let at = at.child("appArmorProfile");
    let local = text_opt(profile, "localhostProfile");
    let local_at = at.child("localhostProfile");
    match (text(profile, "type"), local) {
        ("", _) => causes.required(&at.child("type"), "type is required when appArmorProfile is set"),
        ("Localhost", None) => causes.required(&local_at, MISSING),
        ("Localhost", Some(name)) => {
            match name.trim() {
                trimmed if trimmed != name => {
                    causes.invalid(&local_at, name, "must not be padded with whitespace");
                }
                "" => causes.required(&local_at, MISSING),
                _ => {}
            }
            if name.len() > PROFILE_BYTES_MAX {
                causes.too_long(&local_at, PROFILE_BYTES_MAX);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            let bad = BadValue::shown(to_go_text(&name.into()));
            causes.invalid(&local_at, bad, "can only be set when AppArmor type is Localhost");
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        (other, _) => causes.not_supported(&at.child("type"), other, &PROFILES),
    }
}

/// What a Windows pod or container runs as.
fn windows_options(context: &Members, at: &Path<'_>, causes: &mut Causes) {
    let Some(options) = child(context, "windowsOptions") else { return };
    let at = at.child("windowsOptions");
    if let Some(name) = text_opt(options, "gmsaCredentialSpecName") {
        let shown = || BadValue::shown(to_go_text(&name.into()));
        for fault in format::dns1123_subdomain(name) {
            causes.invalid(&at.child("gmsaCredentialSpecName"), shown(), &fault);
        }
    }
    let mut refuse = |name: &str, value: &str, detail: &str| {
        causes.invalid(&at.child(name), BadValue::shown(to_go_text(&value.into())), detail);
    };
    match text_opt(options, "gmsaCredentialSpec") {
        Some("") => refuse("gmsaCredentialSpec", "", "gmsaCredentialSpec cannot be an empty string"),
        Some(spec) if spec.len() > CREDENTIAL_BYTES_MAX => {
            refuse("gmsaCredentialSpec", spec, "gmsaCredentialSpec size must be under 64 KiB");
        }
        _ => {}
    }
    if let Some(name) = text_opt(options, "runAsUserName") {
        windows_user(name, |detail| refuse("runAsUserName", name, detail));
    }
}

const CREDENTIAL_BYTES_MAX: usize = 64 * 1024;
const DOMAIN_BYTES_MAX: usize = 255;
const USER_BYTES_MAX: usize = 104;

/// A user of Windows, of a domain or not: `DOMAIN\USER`.
fn windows_user(name: &str, mut refuse: impl FnMut(&str)) {
    const IN_NO_USER: &[char] =
        &['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'];
    if name.is_empty() {
        return refuse("runAsUserName cannot be an empty string");
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return refuse("runAsUserName cannot contain control characters");
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => {
            return refuse("runAsUserName cannot contain more than one backslash");
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    if let Some(domain) = domain {
        if domain.len() > DOMAIN_BYTES_MAX {
            refuse("runAsUserName's Domain length must be under 256 characters");
        }
        if !is_net_bios_name(domain) && !is_windows_domain(domain) {
            refuse("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        refuse("runAsUserName's User cannot be empty");
    } else if user.len() > USER_BYTES_MAX {
        refuse("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        refuse("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(IN_NO_USER) {
        refuse(r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#);
    }
}

fn is_net_bios_name(name: &str) -> bool {
    const CHARACTERS_MAX: usize = 15;
    let is_short = (1..=CHARACTERS_MAX).contains(&name.chars().take(CHARACTERS_MAX + 1).count());
    is_short && !name.starts_with('.') && !name.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

/// Labels of DNS, in any case.
fn is_windows_domain(name: &str) -> bool {
    const LABEL_BYTES_MAX: usize = 63;
    name.split('.').all(|label| {
        let bytes = label.as_bytes();
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        bytes.len() <= LABEL_BYTES_MAX && edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
    })
}

fn sysctls(spec: &Members, context: &Members, at: &Path<'_>, causes: &mut Causes) {
    const MALFORMED: &str = "must have at most 253 characters and match regex \
                             ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut names = Seen::default();
    for (index, sysctl) in objects(context, "sysctls").enumerate() {
        let at = at.child("sysctls");
        let at = at.index(index);
        let again = names.again(text(sysctl, "name"));
        match text(sysctl, "name") {
            "" => causes.required(&at.child("name"), ""),
            name if !is_sysctl(name) => causes.invalid(&at.child("name"), name, MALFORMED),
            name if again => causes.duplicate(&at.child("name"), name),
            _ => {}
        }
        let name = text(sysctl, "name");
        if let Some(shared) = shared_with_host(spec, name) {
            causes.invalid(&at.child("name"), name, &format!("may not be specified when '{shared}' is true"));
        }
    }
}

/// The field by which a pod uses the host's namespace that the sysctl is of, if it does.
fn shared_with_host(spec: &Members, sysctl: &str) -> Option<&'static str> {
    const OF_IPC: [&str; 10] = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ];
    // Where a slash comes first, dots and slashes have changed places.
    let is_swapped = sysctl.find(['.', '/']).is_some_and(|at| sysctl[at..].starts_with('/'));
    let swapped = |letter: char| match letter {
        '.' if is_swapped => '/',
        '/' if is_swapped => '.',
        other => other,
    };
    let name: String = sysctl.split('*').next().unwrap_or_default().chars().map(swapped).collect();
    // Few: the names are these ten.
    let is_of_ipc = OF_IPC.contains(&name.as_str()) || name.starts_with("fs.mqueue.");
    match (is_of_ipc, name.starts_with("net.")) {
        (true, _) if is_true(spec, "hostIPC") => Some("hostIPC"),
        (_, true) if is_true(spec, "hostNetwork") => Some("hostNetwork"),
        _ => None,
    }
}

fn is_sysctl(name: &str) -> bool {
    let edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let segment = |segment: &str| {
        let bytes = segment.as_bytes();
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|byte| inner(*byte))
    };
    name.len() <= 253 && name.split(['.', '/']).all(segment)
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
    sysctls(spec, context, &at, causes);
    one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &at, causes);
    seccomp(context, &at, causes);
    windows_options(context, &at, causes);
    app_armor(context, &at, causes);
    one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &at, causes);
    one_of(context, "seLinuxChangePolicy", &["Recursive"], &at, causes);
}

fn one_of(object: &Members, name: &str, values: &[&str], at: &Path<'_>, causes: &mut Causes) {
    if let Some(value) = text_opt(object, name).filter(|value| !values.contains(value)) {
        causes.not_supported(&at.child(name), value, values);
    }
}
