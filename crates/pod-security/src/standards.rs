//! Which checks a level consists of, version by version, and what they find.
//!
//! In: a level, a pod. Out: faults, those of the baseline first.
//!
//! Source: pod-security-admission v0.36.3 `policy/{registry,checks}.go`.

use forebay_strategy::value::Members;

use crate::checks::{self as check, CheckedPod, Violation};
use crate::level::{LevelVersion, SecurityLevel};

/// What a pod has against a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

type Checked = fn(&CheckedPod<'_>) -> Option<Violation>;

/// One concern of a level.
struct Check {
    level: SecurityLevel,
    // From which minor version on it is checked how, oldest first.
    versions: &'static [(i64, Checked)],
    /// The concern of the baseline that it is in the place of, by its number there.
    instead_of: Option<usize>,
}

const fn baseline(versions: &'static [(i64, Checked)]) -> Check {
    Check { level: SecurityLevel::Baseline, versions, instead_of: None }
}

const fn restricted(versions: &'static [(i64, Checked)], instead_of: Option<usize>) -> Check {
    Check { level: SecurityLevel::Restricted, versions, instead_of }
}

/// The newest version with a check of its own: what is asked of a later one is asked of this.
const NEWEST: i64 = 35;

/// In the order of what upstream calls them, by level.
static CHECKS: [Check; 19] = [
    baseline(&[(0, check::app_armor)]),
    baseline(&[(0, check::added_capabilities)]),
    baseline(&[(0, check::host_namespaces)]),
    baseline(&[(0, check::host_paths)]),
    baseline(&[(0, check::host_ports)]),
    baseline(&[(34, check::probed_hosts)]),
    baseline(&[(0, check::privileged)]),
    baseline(&[(0, check::proc_mount), (35, check::proc_mount_of_shared_users)]),
    baseline(&[(0, check::se_linux_first), (31, check::se_linux)]),
    baseline(&[(0, check::seccomp_annotations), (19, check::seccomp)]),
    baseline(&[
        (0, check::sysctls_first),
        (27, check::sysctls_reserved_ports),
        (29, check::sysctls_keepalive),
        (32, check::sysctls),
    ]),
    baseline(&[(0, check::host_process)]),
    restricted(&[(8, check::escalation_anywhere), (25, check::escalation)], None),
    restricted(&[(22, check::capabilities_anywhere), (25, check::capabilities)], Some(1)),
    restricted(&[(35, check::proc_mount)], Some(7)),
    restricted(&[(0, check::volume_types)], Some(3)),
    restricted(&[(0, check::root_anywhere), (35, check::root)], None),
    restricted(&[(23, check::user_zero_anywhere), (35, check::user_zero)], None),
    restricted(&[(19, check::no_seccomp_anywhere), (25, check::no_seccomp)], Some(9)),
];

/// What a pod has that `at` forbids.
pub fn faults(at: LevelVersion, meta: &Members, spec: &Members) -> Violations {
    if at.level == SecurityLevel::Privileged {
        return Violations::default();
    }
    let minor = at.minor.unwrap_or(NEWEST).min(NEWEST);
    let of_version =
        |check: &Check| check.versions.iter().rev().find(|(from, _)| *from <= minor).map(|(_, run)| *run);
    let stricter = |number: usize| {
        let replaces = |check: &Check| check.instead_of == Some(number) && of_version(check).is_some();
        // Few: the checks of this table.
        at.level == SecurityLevel::Restricted && CHECKS.iter().any(replaces)
    };
    let pod = CheckedPod { meta, spec };
    let asked =
        CHECKS.iter().enumerate().filter(|(number, check)| check.level <= at.level && !stricter(*number));
    Violations(asked.filter_map(|(_, check)| of_version(check)?(&pod)).collect())
}

impl Violations {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is forbidden.
    pub fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|fault| fault.reason.as_str()).collect();
        reasons.join(", ")
    }

    /// What is forbidden, and where the pod has it.
    pub fn details(&self) -> String {
        let details = self.0.iter().map(|Violation { reason, detail }| match detail.as_str() {
            "" => reason.clone(),
            detail => format!("{reason} ({detail})"),
        });
        details.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(level: SecurityLevel, minor: Option<i64>, spec: Value) -> String {
        let spec = spec.as_object().expect("a spec").clone();
        faults(LevelVersion { level, minor }, &Members::new(), &spec).details()
    }

    fn bare() -> Value {
        json!({"containers": [{"name": "a"}, {"name": "b"}]})
    }

    #[test]
    fn a_bare_pod_is_within_the_baseline_and_not_restricted() {
        assert_eq!(said(SecurityLevel::Privileged, None, bare()), "");
        assert_eq!(said(SecurityLevel::Baseline, None, bare()), "");
        assert_eq!(
            said(SecurityLevel::Restricted, None, bare()),
            "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
        );
    }

    #[test]
    fn what_a_level_asks_for_is_that_of_its_version() {
        assert_eq!(
            said(SecurityLevel::Restricted, Some(7), bare()),
            "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)"
        );
        let sysctl =
            json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}, "containers": []});
        assert_eq!(
            said(SecurityLevel::Baseline, Some(31), sysctl.clone()),
            "forbidden sysctls (net.ipv4.tcp_rmem)"
        );
        assert_eq!(said(SecurityLevel::Baseline, Some(32), sysctl.clone()), "");
        assert_eq!(said(SecurityLevel::Baseline, Some(99), sysctl), "");
    }

    #[test]
    fn a_restricted_pod_passes_and_each_way_out_is_closed() {
        let container = json!({
            "name": "a",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        });
        let context = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
        let strict = json!({"securityContext": context, "containers": [container]});
        assert_eq!(said(SecurityLevel::Restricted, None, strict.clone()), "");
        for (place, value, level, wanted) in [
            ("/hostNetwork", json!(true), SecurityLevel::Baseline, "host namespaces (hostNetwork=true)"),
            (
                "/containers/0/securityContext/privileged",
                json!(true),
                SecurityLevel::Baseline,
                "privileged (container \"a\" must not set securityContext.privileged=true)",
            ),
            (
                "/containers/0/ports",
                json!([{"hostPort": 80}, {"hostPort": 8}]),
                SecurityLevel::Baseline,
                "hostPort (container \"a\" uses hostPorts 8, 80)",
            ),
            (
                "/containers/0/securityContext/capabilities/add",
                json!(["SYS_ADMIN"]),
                SecurityLevel::Baseline,
                "non-default capabilities (container \"a\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add)",
            ),
            (
                "/containers/0/securityContext/capabilities/add",
                json!(["CHOWN"]),
                SecurityLevel::Restricted,
                "unrestricted capabilities (container \"a\" must not include \"CHOWN\" in securityContext.capabilities.add)",
            ),
            (
                "/volumes",
                json!([{"name": "v", "hostPath": {"path": "/"}}]),
                SecurityLevel::Baseline,
                "hostPath volumes (volume \"v\")",
            ),
            (
                "/volumes",
                json!([{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "nfs": {}}, {"name": "s", "secret": {}}]),
                SecurityLevel::Restricted,
                "restricted volume types (volumes \"v\", \"w\" use restricted volume types \"hostPath\", \"nfs\")",
            ),
            (
                "/securityContext/seLinuxOptions",
                json!({"type": "spc_t", "user": "u"}),
                SecurityLevel::Baseline,
                "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set)",
            ),
            (
                "/securityContext/seccompProfile",
                json!({"type": "Unconfined"}),
                SecurityLevel::Baseline,
                "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
            ),
            (
                "/securityContext/appArmorProfile",
                json!({"type": "Unconfined"}),
                SecurityLevel::Baseline,
                "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
            ),
            (
                "/securityContext/runAsUser",
                json!(0),
                SecurityLevel::Restricted,
                "runAsUser=0 (pod must not set runAsUser=0)",
            ),
            (
                "/securityContext/windowsOptions",
                json!({"hostProcess": true}),
                SecurityLevel::Baseline,
                "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            ),
            (
                "/containers/0/securityContext/procMount",
                json!("Unmasked"),
                SecurityLevel::Baseline,
                "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
            ),
            (
                "/containers/0/livenessProbe",
                json!({"httpGet": {"host": "h"}, "tcpSocket": {"host": "g"}}),
                SecurityLevel::Baseline,
                "probe or lifecycle host (container \"a\" uses probe or lifecycle hosts \"g\", \"h\")",
            ),
        ] {
            let mut spec = strict.clone();
            let (parent, name) = place.rsplit_once('/').expect("a place");
            spec.pointer_mut(parent).expect("there")[name] = value;
            assert_eq!(said(level, None, spec), wanted, "{place}");
        }
    }

    #[test]
    fn a_pod_with_users_of_its_own_may_be_root_there() {
        let mut spec = json!({"hostUsers": false, "securityContext": {"runAsUser": 0}, "containers": [{
            "name": "a",
            "securityContext": {
                "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "Localhost"},
            },
        }]});
        assert_eq!(said(SecurityLevel::Restricted, None, spec.clone()), "");
        spec["containers"][0]["securityContext"]["procMount"] = json!("Unmasked");
        assert_eq!(said(SecurityLevel::Baseline, None, spec.clone()), "");
        assert_eq!(
            said(SecurityLevel::Restricted, None, spec),
            "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"
        );
    }
}
