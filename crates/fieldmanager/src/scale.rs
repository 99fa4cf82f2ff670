//! Who owns the number of replicas, as a Scale has it and as the object does.
//!
//! In: the entries of an object, where its replicas are in each version. Out: the entries of its Scale, and
//! what a write of the Scale makes of those of the object. Never: looks at the object.
//!
//! Source: apimachinery v0.36.3 `managedfields/scalehandler.go`.

use std::collections::BTreeMap;

use forebay_apimachinery::Lease;
use forebay_merge::{Element, Owned, Set};
use serde_json::Value;

use crate::entry::{EntryError, Managed};
use crate::versions::api_version;

/// apiVersion -> the path to the replicas, field by field; none if the version has no Scale.
pub type ReplicasPaths = BTreeMap<String, Option<Vec<String>>>;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Group, resource, and the versions in which a built-in one with a Scale may be owned: also those that are
/// served no more.
const BUILT_IN: &[(&str, &str, &[&str])] = &[
    ("", "replicationcontrollers", &["v1"]),
    ("apps", "deployments", &["v1beta1", "v1beta2", "v1"]),
    ("apps", "replicasets", &["v1beta2", "v1"]),
    ("apps", "statefulsets", &["v1beta1", "v1beta2", "v1"]),
];

/// Where the replicas of a built-in resource are; nowhere if it has no Scale.
pub fn replicas_paths(group: &str, resource: &str) -> ReplicasPaths {
    // Few: the table is the server's.
    let row = BUILT_IN.iter().find(|row| row.0 == group && row.1 == resource);
    let versions = row.into_iter().flat_map(|(.., versions)| *versions);
    versions.map(|version| (api_version(group, version), Some(steps("spec.replicas")))).collect()
}

/// Where the replicas of a custom resource are.
///
/// - `versions`: the names of all, and the dotted path of each that has a Scale.
pub fn custom_replicas_paths(group: &str, versions: &[(&str, Option<&str>)]) -> ReplicasPaths {
    versions.iter().map(|(version, path)| (api_version(group, version), path.map(steps))).collect()
}

fn steps(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

/// The entries of an object whose Scale is written.
pub struct ScaleEntries<'e> {
    pub of_object: &'e [Value],
    /// In which the object is.
    pub api_version: &'e str,
    pub paths: &'e ReplicasPaths,
    pub lease: &'e Lease,
}

impl ScaleEntries<'_> {
    /// The entries that the Scale has.
    ///
    /// # Errors
    /// Those of the object are none.
    pub fn to_scale(&self) -> Result<Vec<Value>, EntryError> {
        let managed = Managed::of_entries(self.of_object)?;
        let mut scale = Managed::default();
        for (identifier, owned) in managed.owners {
            let Some(Some(path)) = self.paths.get(&owned.version) else { continue };
            // Once: a path is looked for in a set of fields, which is no list.
            if owned.fields.contains(&elements(path)) {
                let fields = Set::of_paths([replicas_of_scale()]);
                scale.owners.insert(identifier, Owned { fields, version: SCALE_VERSION.to_owned(), ..owned });
            }
        }
        scale.times = managed.times;
        scale.to_entries(self.lease)
    }

    /// The entries that the object has once its Scale has those.
    ///
    /// # Errors
    /// One of the two are none.
    pub fn to_object(&self, of_scale: &[Value]) -> Result<Vec<Value>, EntryError> {
        let managed = Managed::of_entries(self.of_object)?;
        let mut scale = Managed::of_entries(of_scale)?;
        let mut object = Managed::default();
        for (identifier, owned) in managed.owners {
            // Of a version that is not known any more, nobody owns anything.
            let Some(path) = self.paths.get(&owned.version) else { continue };
            let path = path.as_deref().map(elements);
            // Once: as above.
            let path = path.filter(|path| owned.fields.contains(path));
            let fields = match path {
                Some(path) if scale.owners.remove(&identifier).is_none() => {
                    owned.fields.difference(&Set::of_paths([path]))
                }
                _ => owned.fields,
            };
            if !fields.is_empty() {
                object.owners.insert(identifier, Owned { fields, ..owned });
            }
        }
        let path = self.paths.get(self.api_version).and_then(Option::as_deref).map(elements);
        for (identifier, owned) in scale.owners {
            // Once: as above.
            let is_of_replicas = owned.fields.contains(&replicas_of_scale());
            if let Some(path) = path.clone().filter(|_| is_of_replicas) {
                let fields = Set::of_paths([path]);
                object
                    .owners
                    .insert(identifier, Owned { fields, version: self.api_version.to_owned(), ..owned });
            }
        }
        // Also for those of the Scale, as upstream has it: who was not there before has no time.
        object.times = managed.times;
        object.to_entries(self.lease)
    }
}

fn elements(path: &[String]) -> Vec<Element<'_>> {
    path.iter().map(|name| Element::field(name)).collect()
}

fn replicas_of_scale() -> Vec<Element<'static>> {
    vec![Element::field("spec"), Element::field("replicas")]
}
