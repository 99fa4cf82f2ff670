//! What a CustomResourceDefinition says of the objects of a version besides their schema.
//!
//! In: a version. Out: data. Never: applies it: strategy does.

use super::definition::Version;

/// What a CustomResourceDefinition says of the version that an object is written in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomRules {
    pub namespaced: bool,
    pub status_subresource: bool,
    /// Given when there is a scale subresource.
    pub scale: Option<ScalePaths>,
}

/// Where a custom resource keeps what a Scale is about, as dotted paths with a leading dot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

impl CustomRules {
    /// What `version` says.
    pub fn of(version: &Version, namespaced: bool) -> CustomRules {
        let scale = version.scale.as_ref().map(|scale| ScalePaths {
            spec_replicas: format!(".{}", scale.spec_replicas),
            status_replicas: format!(".{}", scale.status_replicas),
            label_selector: scale.label_selector.as_ref().map(|path| format!(".{path}")),
        });
        CustomRules { namespaced, status_subresource: version.status, scale }
    }
}
