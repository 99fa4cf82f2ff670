//! Which device class stands behind an extended resource.
//!
//! In: the device classes of a cluster. Out: the resource of a class, and whether a resource has one. Never:
//! keeps a class.
//!
//! Source: dynamic-resource-allocation v0.36.3 `deviceclass/extendedresourcecache`.

use std::collections::{BTreeMap, BTreeSet};

use forebay_apimachinery::json::weight::{self, MEMBER_BYTES};
use forebay_strategy::value::{Members, child_or_empty, text};

/// What the name of a class is behind, as a resource of its own.
pub const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";

/// The device classes of a cluster.
#[derive(Clone, Debug, Default)]
pub struct DeviceClasses {
    // class -> the resource that it names; empty where it names none
    resources: BTreeMap<String, String>,
    named: BTreeSet<String>,
}

impl DeviceClasses {
    pub fn of(classes: impl Iterator<Item = Members>) -> DeviceClasses {
        let mut all = DeviceClasses::default();
        for class in classes {
            let name = text(child_or_empty(&class, "metadata"), "name");
            let resource = text(child_or_empty(&class, "spec"), "extendedResourceName");
            if !resource.is_empty() {
                all.named.insert(resource.to_string());
            }
            all.resources.insert(name.to_string(), resource.to_string());
        }
        all
    }

    /// What they take.
    pub fn bytes(&self) -> usize {
        let text = |text: &String| weight::text(text.len());
        let resources = self.resources.iter().map(|(class, resource)| text(class) + text(resource));
        resources.chain(self.named.iter().map(text)).map(|texts| MEMBER_BYTES + texts).sum()
    }

    /// The extended resource that a class names.
    pub fn resource_of(&self, class: &str) -> Option<&str> {
        self.resources.get(class).map(String::as_str).filter(|resource| !resource.is_empty())
    }

    /// Whether a class stands behind a resource.
    pub fn has(&self, resource: &str) -> bool {
        let implicit =
            resource.strip_prefix(IMPLICIT).is_some_and(|class| self.resources.contains_key(class));
        implicit || self.named.contains(resource)
    }
}
