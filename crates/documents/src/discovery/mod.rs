//! What is served, told to clients: groups, versions and resources.
//!
//! In: a catalog. Out: the documents of `/api`, `/apis` and below as JSON, with the members in
//! kube-apiserver's order and the newline it ends with. Never: kept here (the caller does, per catalog), nor
//! chosen by `Accept`.
//!
//! Two generations live side by side. The older one has a document for each group and each version
//! ([`legacy`]); the newer one has everything in two ([`aggregated`]), which is what current clients ask for
//! first.
//!
//! Source: apiserver v1.36.3 `endpoints/discovery`, kube-aggregator `apiserver/handler_apis.go`,
//! apiextensions-apiserver `customresource_discovery_controller.go`.

pub mod aggregated;
pub mod extensions;
pub mod legacy;
mod paths;

use std::sync::Arc;

use forebay_apimachinery::version_order::kube_aware;
use forebay_catalog::groups::group_priority;
use forebay_catalog::{Catalog, Served, SubresourceInfo};
use serde::Serialize;

pub use extensions::{Extension, ExtensionResource, Extensions};
pub use paths::root_paths;

/// The named groups that are served from the first version on.
#[cfg(test)]
const ISSUE_GROUPS: [&str; 7] = [
    "apiextensions.k8s.io",
    "apps",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
];

/// One group: its versions, the preferred one first.
pub(crate) struct Group<'c> {
    pub name: &'c str,
    /// How early it is listed; the higher, the earlier.
    pub priority: u32,
    pub versions: Vec<Version<'c>>,
}

/// One version of a group.
pub(crate) struct Version<'c> {
    pub name: &'c str,
    pub serves: Serves<'c>,
}

/// Who serves a version, and what.
pub(crate) enum Serves<'c> {
    /// This server; the resources are ordered by name.
    Here(Vec<&'c Arc<Served>>),
    There(&'c Extension),
}

/// The groups by name, of which the core group, named "", is the first.
///
/// - `extensions`: what other servers serve, ordered by group and version. Who serves a version beside this
///   server serves it in its place.
pub(crate) fn groups<'c>(catalog: &'c Catalog, extensions: &'c [Extension]) -> Vec<Group<'c>> {
    let mut groups: Vec<Group<'c>> = Vec::new();
    for served in catalog.iter() {
        let (group, version) = (&*served.gvr.group, &*served.gvr.version);
        if groups.last().is_none_or(|last| last.name != group) {
            groups.push(Group { name: group, priority: group_priority(group), versions: Vec::new() });
        }
        let Some(last) = groups.last_mut() else { continue };
        if last.versions.last().is_none_or(|known| known.name != version) {
            last.versions.push(Version { name: version, serves: Serves::Here(Vec::new()) });
        }
        if let Some(Version { serves: Serves::Here(resources), .. }) = last.versions.last_mut() {
            resources.push(served);
        }
    }
    extend(&mut groups, extensions);
    for group in &mut groups {
        group.versions.sort_by(|a, b| {
            b.serves.priority().cmp(&a.serves.priority()).then_with(|| kube_aware(b.name, a.name))
        });
    }
    groups
}

fn extend<'c>(groups: &mut Vec<Group<'c>>, extensions: &'c [Extension]) {
    for extension in extensions {
        let at = match groups.binary_search_by(|group| group.name.cmp(&extension.group)) {
            Ok(at) => at,
            Err(at) => {
                groups.insert(at, Group { name: &extension.group, priority: 0, versions: Vec::new() });
                at
            }
        };
        let group = &mut groups[at];
        group.priority = group.priority.max(extension.group_priority);
        group.versions.retain(|version| version.name != &*extension.version);
        group.versions.push(Version { name: &extension.version, serves: Serves::There(extension) });
    }
}

impl Serves<'_> {
    /// Among the versions of its group. Of this server's own the name alone decides.
    fn priority(&self) -> u32 {
        match self {
            Serves::Here(_) => LOCAL_VERSION_PRIORITY,
            Serves::There(extension) => extension.version_priority,
        }
    }
}

/// What the APIServices of CRDs carry.
const LOCAL_VERSION_PRIORITY: u32 = 100;

/// The verbs that CRDs list, in the order that they list them in.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn verbs(served: &Served) -> Vec<&'static str> {
    let mut verbs = served.verbs.clone();
    if served.is_custom() {
        verbs.sort_by_key(|verb| CUSTOM_VERBS.iter().position(|known| known == verb));
    }
    verbs
}

/// The subresources in the order that they are listed in: by name, but a CRD's status before its scale.
fn subresources(served: &Served) -> Vec<&SubresourceInfo> {
    let mut subresources: Vec<&SubresourceInfo> = served.subresources.iter().collect();
    subresources.sort_by(|a, b| a.name.cmp(&b.name));
    if served.is_custom() {
        subresources.reverse();
    }
    subresources
}

fn to_json(document: &impl Serialize) -> Vec<u8> {
    // Structs of texts, lists and booleans cannot fail to be written into memory.
    let mut out = serde_json::to_vec(document).unwrap_or_default();
    out.push(b'\n');
    out
}
