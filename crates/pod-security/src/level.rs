//! Levels, their versions, and which of them a namespace asks for.
//!
//! In: the labels of a namespace. Out: what is enforced and what is warned of; labels that say nothing.
//!
//! Source: pod-security-admission v0.36.3 `api/helpers.go`.

use std::fmt;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{Cause, CauseReason};
use forebay_strategy::value::{Members, text_opt};

use crate::configuration::SecurityDefaults;

/// How much a pod may, from all to little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityLevel {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

/// A level as one version of Kubernetes has it: `v1.25`, or the latest there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: SecurityLevel,
    /// The minor version; none is the latest.
    pub minor: Option<i64>,
}

/// What a namespace asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standards {
    pub enforce: LevelVersion,
    /// What is noted of, where an audit log asks for it, and of no consequence.
    pub audit: LevelVersion,
    pub warn: LevelVersion,
    /// What is wrong with the labels.
    pub causes: Vec<Cause>,
}

impl SecurityLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            SecurityLevel::Privileged => "privileged",
            SecurityLevel::Baseline => "baseline",
            SecurityLevel::Restricted => "restricted",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<SecurityLevel> {
        Some(match text {
            "privileged" => SecurityLevel::Privileged,
            "baseline" => SecurityLevel::Baseline,
            "restricted" => SecurityLevel::Restricted,
            _ => return None,
        })
    }
}

impl Standards {
    /// What labels ask for, and where they say nothing `defaults`. A level to enforce that there is not is
    /// the strictest, one to audit or to warn of is none.
    pub fn of(labels: &Members, defaults: &SecurityDefaults) -> Standards {
        let SecurityDefaults { mut enforce, mut audit, mut warn } = *defaults;
        let mut causes = Vec::new();
        let own = level(labels, "enforce", &mut causes);
        enforce.level = own.map_or(enforce.level, |own| own.unwrap_or(SecurityLevel::Restricted));
        enforce.minor = version(labels, "enforce-version", &mut causes).unwrap_or(enforce.minor);
        let own_audit = level(labels, "audit", &mut causes);
        audit.level = own_audit.map_or(audit.level, |own| own.unwrap_or(SecurityLevel::Privileged));
        audit.minor = version(labels, "audit-version", &mut causes).unwrap_or(audit.minor);
        let own_warn = level(labels, "warn", &mut causes);
        warn.level = own_warn.map_or(warn.level, |own| own.unwrap_or(SecurityLevel::Privileged));
        let warn_version = version(labels, "warn-version", &mut causes);
        warn.minor = warn_version.unwrap_or(warn.minor);
        if own_warn.is_none() && own.flatten().is_some() && enforce.level > warn.level {
            warn.level = enforce.level;
            if warn_version.is_none() {
                warn.minor = enforce.minor;
            }
        }
        Standards { enforce, audit, warn, causes }
    }

    /// What somebody is told who gives such labels to a namespace that is let be; none where they ask for
    /// nothing, or for what is asked for anyway.
    pub fn in_vain(&self, labels: &Members, defaults: &SecurityDefaults, namespace: &str) -> Option<String> {
        let free = SecurityLevel::Privileged;
        let is_as =
            |one: LevelVersion, two: LevelVersion| one == two || (one.level == free && two.level == free);
        let own = [("enforce", self.enforce), ("audit", self.audit), ("warn", self.warn)];
        let unsaid = [defaults.enforce, defaults.audit, defaults.warn];
        let is_free = own.iter().all(|(_, own)| own.level == free);
        if is_free || own.iter().zip(unsaid).all(|((_, own), unsaid)| is_as(*own, unsaid)) {
            return None;
        }
        let is_said =
            |mode: &str| label(labels, mode).or_else(|| label(labels, &format!("{mode}-version"))).is_some();
        let said = own.iter().filter(|(mode, own)| own.level != free && is_said(mode));
        let said: Vec<String> = said.map(|(mode, own)| format!("{mode}={own}")).collect();
        Some(format!(
            "namespace {namespace:?} is exempt from Pod Security, and the policy ({}) will be ignored",
            said.join(", ")
        ))
    }
}

/// The level that a label names: none without the label, and none within where there is no such level.
fn level(labels: &Members, name: &str, causes: &mut Vec<Cause>) -> Option<Option<SecurityLevel>> {
    let value = label(labels, name)?;
    let level = SecurityLevel::parse(value);
    if level.is_none() {
        causes.push(invalid(name, value, "must be one of privileged, baseline, restricted"));
    }
    Some(level)
}

/// The minor version that a label names; none without it.
fn version(labels: &Members, name: &str, causes: &mut Vec<Cause>) -> Option<Option<i64>> {
    let value = label(labels, name)?;
    let minor = parse_minor(value);
    if minor.is_none() {
        causes.push(invalid(name, value, "must be \"latest\" or \"v1.x\""));
    }
    Some(minor.flatten())
}

/// The minor version of `v1.x`, none of `latest`; `None` for what is neither.
pub(crate) fn parse_minor(value: &str) -> Option<Option<i64>> {
    if value == "latest" {
        return Some(None);
    }
    let digits = value.strip_prefix("v1.").filter(|digits| {
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain && (*digits == "0" || !digits.starts_with('0'))
    })?;
    digits.parse().ok().map(Some)
}

fn label<'l>(labels: &'l Members, name: &str) -> Option<&'l str> {
    text_opt(labels, &format!("pod-security.kubernetes.io/{name}"))
}

fn invalid(name: &str, value: &str, why: &str) -> Cause {
    Cause {
        reason: CauseReason::FieldValueInvalid,
        message: format!("Invalid value: {}: {why}", go_quote(value)),
        field: format!("metadata.labels[pod-security.kubernetes.io/{name}]"),
    }
}

/// `restricted:latest`, `baseline:v1.25`.
impl fmt::Display for LevelVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level.as_str();
        match self.minor {
            Some(minor) => write!(out, "{level}:v1.{minor}"),
            None => write!(out, "{level}:latest"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(labels: Value) -> String {
        let labels: Members = labels
            .as_object()
            .expect("labels")
            .iter()
            .map(|(name, value)| (format!("pod-security.kubernetes.io/{name}"), value.clone()))
            .collect();
        let Standards { enforce, warn, causes, .. } = Standards::of(&labels, &SecurityDefaults::default());
        let causes: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        format!("{enforce} {warn} {}", causes.join("; "))
    }

    #[test]
    fn labels_say_what_is_enforced_and_warned_of() {
        for (labels, wanted) in [
            (json!({}), "privileged:latest privileged:latest "),
            (json!({"enforce": "baseline"}), "baseline:latest baseline:latest "),
            (
                json!({"enforce": "restricted", "enforce-version": "v1.20"}),
                "restricted:v1.20 restricted:v1.20 ",
            ),
            (
                json!({"enforce": "restricted", "enforce-version": "v1.20", "warn-version": "v1.9"}),
                "restricted:v1.20 restricted:v1.9 ",
            ),
            (json!({"enforce": "restricted", "warn": "privileged"}), "restricted:latest privileged:latest "),
            (json!({"warn": "baseline"}), "privileged:latest baseline:latest "),
            (
                json!({"enforce": "none", "enforce-version": "v1.01", "warn": "all"}),
                "restricted:latest privileged:latest metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"none\": must be one of privileged, baseline, restricted; metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"v1.01\": must be \"latest\" or \"v1.x\"; metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"all\": must be one of privileged, baseline, restricted",
            ),
        ] {
            assert_eq!(said(labels.clone()), wanted, "{labels}");
        }
    }

    #[test]
    fn defaults_hold_where_labels_say_nothing() {
        let at = |level, minor| LevelVersion { level, minor };
        let defaults = SecurityDefaults {
            enforce: at(SecurityLevel::Baseline, Some(30)),
            audit: LevelVersion::default(),
            warn: at(SecurityLevel::Baseline, None),
        };
        let said = |labels: &Value| {
            let of = Standards::of(labels.as_object().expect("labels"), &defaults);
            let vain = of.in_vain(labels.as_object().expect("labels"), &defaults, "n").unwrap_or_default();
            format!("{} {} {vain}", of.enforce, of.warn)
        };
        assert_eq!(said(&json!({})), "baseline:v1.30 baseline:latest ");
        let enforce = "pod-security.kubernetes.io/enforce";
        assert_eq!(
            said(&json!({enforce: "restricted"})),
            "restricted:v1.30 restricted:v1.30 namespace \"n\" is exempt from Pod Security, and the policy (enforce=restricted:v1.30) will be ignored"
        );
        assert_eq!(
            said(&json!({enforce: "privileged"})),
            "privileged:v1.30 baseline:latest namespace \"n\" is exempt from Pod Security, and the policy () will be ignored"
        );
    }
}
