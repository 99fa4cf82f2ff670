//! What no pod may that is not privileged.

use std::collections::BTreeSet;

use forebay_strategy::value::{child, child_or_empty, entries, int, is_true, objects, text, text_opt, texts};

use super::{
    CheckedPod, Violation, annotation, containers, fault, is, joined, plural, quoted, setters, uses,
};

pub fn app_armor(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut values: BTreeSet<String> = BTreeSet::new();
    let mut is_bad = |security| {
        let kind = child(security, "appArmorProfile").map(|profile| text(profile, "type"));
        let bad = kind.filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"));
        values.extend(bad.map(String::from));
        bad.is_some()
    };
    let by_pod = is_bad(pod.security());
    let named = pod.named(is_bad);
    let mut setting: Vec<String> = setters(by_pod, &named).into_iter().collect();
    let mut annotated: Vec<String> = entries(pod.meta, "annotations")
        .filter(|(name, _)| name.starts_with("container.apparmor.security.beta.kubernetes.io/"))
        .filter(|(_, value)| {
            !value.is_empty() && *value != "runtime/default" && !value.starts_with("localhost/")
        })
        .map(|(name, value)| annotation(name, value))
        .collect();
    annotated.sort();
    if !annotated.is_empty() {
        setting.push(plural("annotation", annotated.len()));
    }
    if setting.is_empty() {
        return None;
    }
    let all: Vec<String> = values.into_iter().chain(annotated).collect();
    let reason = plural("forbidden AppArmor profile", all.len());
    let detail = format!("{} must not set AppArmor profile type to {}", setting.join(" and "), quoted(&all));
    fault(&reason, Some(detail))
}

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub fn added_capabilities(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut added: BTreeSet<String> = BTreeSet::new();
    let named = pod.named(|security| {
        let bad = texts(child_or_empty(security, "capabilities"), "add")
            .filter(|name| !CAPABILITIES.contains(name));
        bad.map(|name| added.insert(name.to_string())).count() > 0
    });
    let detail = containers(&named).map(|named| {
        format!("{named} must not include {} in securityContext.capabilities.add", quoted(&added))
    });
    fault("non-default capabilities", detail)
}

pub fn host_namespaces(pod: &CheckedPod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|name| is_true(pod.spec, name));
    let shared: Vec<String> = shared.map(|name| format!("{name}=true")).collect();
    fault("host namespaces", (!shared.is_empty()).then(|| shared.join(", ")))
}

pub fn host_paths(pod: &CheckedPod<'_>) -> Option<Violation> {
    let of_host = objects(pod.spec, "volumes").filter(|volume| child(volume, "hostPath").is_some());
    let names: Vec<&str> = of_host.map(|volume| text(volume, "name")).collect();
    let detail = (!names.is_empty()).then(|| format!("{} {}", plural("volume", names.len()), quoted(&names)));
    fault("hostPath volumes", detail)
}

pub fn host_ports(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut ports: BTreeSet<String> = BTreeSet::new();
    let taking = pod.containers().filter(|container| {
        let taken =
            objects(container, "ports").filter_map(|port| int(port, "hostPort")).filter(|port| *port != 0);
        taken.map(|port| ports.insert(port.to_string())).count() > 0
    });
    let names: Vec<&str> = taking.map(|container| text(container, "name")).collect();
    let detail = containers(&names).map(|named| {
        format!("{named} {} {} {}", uses(names.len()), plural("hostPort", ports.len()), joined(&ports))
    });
    fault("hostPort", detail)
}

/// Hosts that a container has the kubelet ask.
pub fn probed_hosts(pod: &CheckedPod<'_>) -> Option<Violation> {
    let (mut names, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in pod.containers() {
        let lifecycle = child_or_empty(container, "lifecycle");
        let probes =
            ["livenessProbe", "readinessProbe", "startupProbe"].map(|name| child_or_empty(container, name));
        let hooks = ["postStart", "preStop"].map(|name| child_or_empty(lifecycle, name));
        for handler in probes.into_iter().chain(hooks) {
            let asked = ["httpGet", "tcpSocket"].map(|way| text(child_or_empty(handler, way), "host"));
            for host in asked.into_iter().filter(|host| !host.is_empty()) {
                names.insert(text(container, "name"));
                hosts.insert(host);
            }
        }
    }
    let names: Vec<&str> = names.into_iter().collect();
    let detail = containers(&names).map(|named| {
        format!(
            "{named} {} {} {}",
            uses(names.len()),
            plural("probe or lifecycle host", hosts.len()),
            quoted(&hosts)
        )
    });
    fault("probe or lifecycle host", detail)
}

pub fn privileged(pod: &CheckedPod<'_>) -> Option<Violation> {
    let named = pod.named(|security| is_true(security, "privileged"));
    fault(
        "privileged",
        containers(&named).map(|named| format!("{named} must not set securityContext.privileged=true")),
    )
}

pub fn proc_mount(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut ways: BTreeSet<String> = BTreeSet::new();
    let named = pod.named(|security| {
        let way = text_opt(security, "procMount").filter(|way| *way != "Default");
        way.map(|way| ways.insert(way.to_string())).is_some()
    });
    let detail = containers(&named)
        .map(|named| format!("{named} must not set securityContext.procMount to {}", quoted(&ways)));
    fault("procMount", detail)
}

pub fn proc_mount_of_shared_users(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { proc_mount(pod) }
}

const SE_LINUX_FIRST: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];

pub fn se_linux_first(pod: &CheckedPod<'_>) -> Option<Violation> {
    se_linux_but(pod, |kind| SE_LINUX_FIRST.contains(&kind))
}

pub fn se_linux(pod: &CheckedPod<'_>) -> Option<Violation> {
    se_linux_but(pod, |kind| SE_LINUX_FIRST.contains(&kind) || kind == "container_engine_t")
}

fn se_linux_but(pod: &CheckedPod<'_>, may: impl Fn(&str) -> bool) -> Option<Violation> {
    let (mut types, mut sets_user, mut sets_role): (BTreeSet<String>, _, _) = (BTreeSet::new(), false, false);
    let mut is_bad = |security| {
        let Some(options) = child(security, "seLinuxOptions") else { return false };
        let kind = text(options, "type");
        let (user, role) = (!text(options, "user").is_empty(), !text(options, "role").is_empty());
        if !may(kind) {
            types.insert(kind.to_string());
        }
        (sets_user, sets_role) = (sets_user || user, sets_role || role);
        !may(kind) || user || role
    };
    let by_pod = is_bad(pod.security());
    let named = pod.named(is_bad);
    let setting = setters(by_pod, &named)?;
    let mut bad = Vec::new();
    if !types.is_empty() {
        bad.push(format!("{} {}", plural("type", types.len()), quoted(&types)));
    }
    bad.extend(sets_user.then(|| "user may not be set".to_string()));
    bad.extend(sets_role.then(|| "role may not be set".to_string()));
    let detail = format!("{setting} set forbidden securityContext.seLinuxOptions: {}", bad.join("; "));
    fault("seLinuxOptions", Some(detail))
}

pub fn seccomp_annotations(pod: &CheckedPod<'_>) -> Option<Violation> {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let annotations = child_or_empty(pod.meta, "annotations");
    let named = pod.containers().map(|container| format!("{OF_CONTAINER}{}", text(container, "name")));
    let mut bad: BTreeSet<String> = BTreeSet::new();
    for name in named.chain([OF_POD.to_string()]) {
        let value = text_opt(annotations, &name).filter(|value| {
            !matches!(*value, "runtime/default" | "docker/default") && !value.starts_with("localhost/")
        });
        bad.extend(value.map(|value| annotation(&name, value)));
    }
    let detail =
        (!bad.is_empty()).then(|| format!("forbidden {} {}", plural("annotation", bad.len()), joined(&bad)));
    fault("seccompProfile", detail)
}

pub fn seccomp(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut values: BTreeSet<String> = BTreeSet::new();
    let mut is_bad = |security| {
        let kind = child(security, "seccompProfile").map(|profile| text(profile, "type"));
        let bad = kind.filter(|kind| !is_seccomp(kind));
        values.extend(bad.map(String::from));
        bad.is_some()
    };
    let by_pod = is_bad(pod.security());
    let named = pod.named(is_bad);
    let detail = setters(by_pod, &named).map(|setting| {
        format!("{setting} must not set securityContext.seccompProfile.type to {}", quoted(&values))
    });
    fault("seccompProfile", detail)
}

/// Whether it confines.
pub fn is_seccomp(kind: &str) -> bool {
    matches!(kind, "Localhost" | "RuntimeDefault")
}

/// Kernel parameters that are safe to set, and the minor version from which on each is taken to be.
const SYSCTLS: [(&str, i64); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

pub fn sysctls_first(pod: &CheckedPod<'_>) -> Option<Violation> {
    sysctls_at(pod, 0)
}

pub fn sysctls_reserved_ports(pod: &CheckedPod<'_>) -> Option<Violation> {
    sysctls_at(pod, 27)
}

pub fn sysctls_keepalive(pod: &CheckedPod<'_>) -> Option<Violation> {
    sysctls_at(pod, 29)
}

pub fn sysctls(pod: &CheckedPod<'_>) -> Option<Violation> {
    sysctls_at(pod, 32)
}

fn sysctls_at(pod: &CheckedPod<'_>, minor: i64) -> Option<Violation> {
    // Few: the parameters of this table.
    let is_safe = |name: &str| SYSCTLS.iter().any(|(known, from)| *known == name && *from <= minor);
    let names = objects(pod.security(), "sysctls").map(|sysctl| text(sysctl, "name"));
    let unsafe_ones: Vec<&str> = names.filter(|name| !is_safe(name)).collect();
    fault("forbidden sysctls", (!unsafe_ones.is_empty()).then(|| unsafe_ones.join(", ")))
}

pub fn host_process(pod: &CheckedPod<'_>) -> Option<Violation> {
    let is_bad = |security| is(child_or_empty(security, "windowsOptions").get("hostProcess"), true);
    let named = pod.named(is_bad);
    let detail = setters(is_bad(pod.security()), &named)
        .map(|setting| format!("{setting} must not set securityContext.windowsOptions.hostProcess=true"));
    fault("hostProcess", detail)
}
