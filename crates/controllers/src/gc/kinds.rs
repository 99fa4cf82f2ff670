//! What is served, as owner references and the graph name it.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_apimachinery::GroupResource;
use forebay_apimachinery::resource::split_api_version;
use forebay_catalog::{Catalog, Served};

use crate::meta::OwnerReference;

/// One catalog's resources. Made anew for each catalog.
#[derive(Default)]
pub struct Kinds {
    catalog: Arc<Catalog>,
    // Those that can be collected, in the version that they are stored in, or in another one if that is not
    // served.
    by_resource: HashMap<GroupResource, Arc<Served>>,
}

impl Kinds {
    pub fn of(catalog: Arc<Catalog>) -> Kinds {
        let mut kinds = Kinds { catalog: catalog.clone(), ..Kinds::default() };
        for served in catalog.iter().filter(|served| served.store.is_some()) {
            let resource = served.gvr.group_resource();
            if is_collected(served) && (served.is_storage_version() || kinds.resource(&resource).is_none()) {
                kinds.by_resource.insert(resource, served.clone());
            }
        }
        kinds
    }

    /// Whether these are the kinds of `catalog`.
    pub fn are_of(&self, catalog: &Arc<Catalog>) -> bool {
        Arc::ptr_eq(&self.catalog, catalog)
    }

    /// Every resource that is collected.
    pub fn collected(&self) -> impl Iterator<Item = (&GroupResource, &Arc<Served>)> {
        self.by_resource.iter()
    }

    /// A resource that is collected.
    pub fn resource(&self, resource: &GroupResource) -> Option<&Arc<Served>> {
        self.by_resource.get(resource)
    }

    /// Whether the owner that `reference` means is of a resource that is collected.
    pub fn is_collected(&self, reference: &OwnerReference) -> bool {
        let served = self.kind(&reference.api_version, &reference.kind);
        served.is_some_and(|served| self.resource(&served.gvr.group_resource()).is_some())
    }

    /// The resource that an owner reference means.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Served>> {
        let (group, version) = split_api_version(api_version);
        // The core group has no `/` before its version.
        self.catalog
            .stored_kind(group, version, kind)
            .filter(|served| served.gvk.api_version() == api_version)
    }
}

/// Events come and go by themselves.
fn is_collected(served: &Served) -> bool {
    let can = |verb: &str| served.verbs.contains(&verb);
    let event = served.is("", "events") || served.is("events.k8s.io", "events");
    !event && ["delete", "list", "watch"].into_iter().all(can)
}
