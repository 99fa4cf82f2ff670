//! The names of kinds and resources.

use std::fmt;
use std::sync::Arc;

/// `apps`, `Deployment`. The core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    pub group: Arc<str>,
    pub kind: Arc<str>,
}

/// `apps`, `deployments`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    pub group: Arc<str>,
    pub resource: Arc<str>,
}

/// `apps`, `v1`, `Deployment`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
}

/// `apps`, `v1`, `deployments`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionResource {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub resource: Arc<str>,
}

impl GroupVersionKind {
    pub fn new(group: &str, version: &str, kind: &str) -> GroupVersionKind {
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl GroupVersionResource {
    pub fn new(group: &str, version: &str, resource: &str) -> GroupVersionResource {
        GroupVersionResource { group: group.into(), version: version.into(), resource: resource.into() }
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

impl fmt::Display for GroupResource {
    /// `deployments.apps`, or `pods` in the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// `apps/v1`, or `v1` in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_string() } else { format!("{group}/{version}") }
}

/// Group and version of an `apiVersion`; the core group is empty.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
