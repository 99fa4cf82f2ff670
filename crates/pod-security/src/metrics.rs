//! What is counted of judgements, of what is let be and of what could not be judged, by upstream's names.
//!
//! In: what was judged, and how. Out: series. Never: a text; more series than there are levels, versions and
//! parts of pods: a version above ours is `future`.
//!
//! Source: pod-security-admission v0.36.3 `metrics/metrics.go`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::level::{LevelVersion, SecurityLevel};

/// The minor version of Kubernetes whose standards are the latest here.
const LATEST_MINOR: i64 = 36;

/// What a write is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JudgedWrite {
    /// `create` or `update`.
    pub operation: &'static str,
    /// `pod`, or `controller` of what makes pods.
    pub resource: &'static str,
    /// Of the pod, of those that are served; empty of all of it.
    pub subresource: &'static str,
}

/// What a level is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityMode {
    Audit,
    Enforce,
    Warn,
}

/// See the module's doc. The series that upstream has from its start are there from ours, at 0.
#[derive(Debug)]
pub struct SecurityMetrics(Mutex<SecurityCounted>);

/// What was counted so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecurityCounted {
    pub evaluations: BTreeMap<Evaluation, u64>,
    pub exemptions: BTreeMap<JudgedWrite, u64>,
    /// Whether the write could not be judged at all.
    pub errors: BTreeMap<(bool, JudgedWrite), u64>,
}

/// One series of judgements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evaluation {
    pub is_allowed: bool,
    pub level: SecurityLevel,
    pub version: JudgedVersion,
    pub mode: SecurityMode,
    pub write: JudgedWrite,
}

/// By which version of a level; `Display` is upstream's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JudgedVersion {
    Latest,
    Minor(i64),
    Future,
}

impl Default for SecurityMetrics {
    fn default() -> SecurityMetrics {
        let write = |operation, resource| JudgedWrite { operation, resource, subresource: "" };
        let writes = ["pod", "controller"].map(|resource| ["create", "update"].map(|of| write(of, resource)));
        let allowed = writes[0].map(|write| Evaluation {
            is_allowed: true,
            level: SecurityLevel::Privileged,
            version: JudgedVersion::Latest,
            mode: SecurityMode::Enforce,
            write,
        });
        SecurityMetrics(Mutex::new(SecurityCounted {
            evaluations: allowed.into_iter().map(|series| (series, 0)).collect(),
            exemptions: writes.into_iter().flatten().map(|write| (write, 0)).collect(),
            errors: BTreeMap::new(),
        }))
    }
}

impl SecurityMetrics {
    pub fn evaluated(&self, is_allowed: bool, at: LevelVersion, mode: SecurityMode, write: JudgedWrite) {
        let version = match at.minor {
            // Privileged is the same in all versions.
            _ if at.level == SecurityLevel::Privileged => JudgedVersion::Latest,
            None => JudgedVersion::Latest,
            Some(minor) if minor <= LATEST_MINOR => JudgedVersion::Minor(minor),
            Some(_) => JudgedVersion::Future,
        };
        let series = Evaluation { is_allowed, level: at.level, version, mode, write };
        *self.locked().evaluations.entry(series).or_default() += 1;
    }

    pub fn exempted(&self, write: JudgedWrite) {
        *self.locked().exemptions.entry(write).or_default() += 1;
    }

    /// - `is_fatal`: whether the write could not be judged; otherwise it was judged by the strictest level.
    pub fn failed(&self, is_fatal: bool, write: JudgedWrite) {
        *self.locked().errors.entry((is_fatal, write)).or_default() += 1;
    }

    pub fn counted(&self) -> SecurityCounted {
        self.locked().clone()
    }

    /// For a few lines.
    fn locked(&self) -> MutexGuard<'_, SecurityCounted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecurityMode {
    pub fn as_str(self) -> &'static str {
        match self {
            SecurityMode::Audit => "audit",
            SecurityMode::Enforce => "enforce",
            SecurityMode::Warn => "warn",
        }
    }
}

impl std::fmt::Display for JudgedVersion {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JudgedVersion::Latest => out.write_str("latest"),
            JudgedVersion::Minor(minor) => write!(out, "v1.{minor}"),
            JudgedVersion::Future => out.write_str("future"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: JudgedWrite = JudgedWrite { operation: "create", resource: "pod", subresource: "" };

    #[test]
    fn versions_are_counted_as_latest_as_their_own_or_as_those_to_come() {
        let metrics = SecurityMetrics::default();
        for (level, minor) in [
            (SecurityLevel::Privileged, Some(20)),
            (SecurityLevel::Baseline, None),
            (SecurityLevel::Restricted, Some(20)),
            (SecurityLevel::Restricted, Some(36)),
            (SecurityLevel::Restricted, Some(37)),
            (SecurityLevel::Restricted, Some(i64::MAX)),
        ] {
            metrics.evaluated(true, LevelVersion { level, minor }, SecurityMode::Enforce, CREATE);
        }
        let counted = metrics.counted();
        let told: Vec<String> =
            counted.evaluations.iter().map(|(of, n)| format!("{} {n}", of.version)).collect();
        // The second is there from the start: of updates.
        assert_eq!(told, ["latest 1", "latest 0", "latest 1", "v1.20 1", "v1.36 1", "future 2"]);
    }

    #[test]
    fn what_is_let_be_and_what_fails_is_counted_apart() {
        let metrics = SecurityMetrics::default();
        metrics.exempted(CREATE);
        metrics.failed(true, CREATE);
        metrics.failed(false, CREATE);
        metrics.failed(false, CREATE);
        let counted = metrics.counted();
        assert_eq!((counted.evaluations.len(), counted.evaluations.values().sum::<u64>()), (2, 0));
        assert_eq!((counted.exemptions.len(), counted.exemptions[&CREATE]), (4, 1));
        assert_eq!((counted.errors[&(true, CREATE)], counted.errors[&(false, CREATE)]), (1, 2));
    }
}
