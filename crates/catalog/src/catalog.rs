//! What is served right now: every resource in every served version. Immutable; published whole.
//!
//! In: the built-in table and the established CRDs. Out: look-ups by group, version and plural. Owner: the CRD
//! controller builds a new one and publishes it; everyone else reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::{GroupVersionKind, GroupVersionResource, Revision, Seen};
use forebay_schema::builtin;

use crate::custom::Custom;
use crate::store::SelectableField;
pub use crate::store::Store;
use forebay_strategy::convert::{self, Conversion};

/// Group, version and plural.
type Coordinates = (Arc<str>, Arc<str>, Arc<str>);

/// Everything that is served. Cheap to share, never changed.
#[derive(Clone, Default)]
pub struct Catalog {
    served: BTreeMap<Coordinates, Arc<Served>>,
    /// The CRD resource's revision up to which CRDs are taken into account.
    pub revision: Option<Revision>,
}

/// One resource in one version.
pub struct Served {
    pub gvr: GroupVersionResource,
    pub gvk: GroupVersionKind,
    pub list_kind: Arc<str>,
    pub singular: Arc<str>,
    pub namespaced: bool,
    pub short_names: Vec<Arc<str>>,
    pub categories: Vec<Arc<str>>,
    pub verbs: Vec<&'static str>,
    pub subresources: Vec<SubresourceInfo>,
    pub source: Source,
    /// Field selectors beyond metadata.name and metadata.namespace, and where their values are kept.
    pub selectable: Vec<SelectableField>,
    /// The versions of one resource share it. `None` for what has no storage (bindings, componentstatuses).
    pub store: Option<Arc<Store>>,
}

/// A subresource as discovery lists it.
#[derive(Clone, Debug)]
pub struct SubresourceInfo {
    pub name: Arc<str>,
    /// Kind of its body.
    pub gvk: GroupVersionKind,
    pub verbs: Vec<&'static str>,
    /// Answered by a kubelet (log, exec, proxy, ...), which there is none of.
    pub connect: bool,
}

/// Where a resource's fields are described.
pub enum Source {
    BuiltIn {
        resource: &'static builtin::Resource,
        ty: builtin::TypeId,
        /// Stored as another version: `events.k8s.io` Events, `autoscaling/v1` HorizontalPodAutoscalers.
        stored_as: Option<StoredAs>,
    },
    Custom(Custom),
}

/// The version that objects are stored as, where it is not the one that is served.
#[derive(Clone, Copy)]
pub struct StoredAs {
    pub ty: builtin::TypeId,
    pub(crate) conversion: &'static Conversion,
}

impl StoredAs {
    /// What the objects of a built-in resource are stored as; `None` where it is what is served.
    pub fn of(resource: &builtin::Resource) -> Option<StoredAs> {
        let conversion = convert::of(resource.group, resource.version, resource.kind)?;
        let (group, version) = (conversion.stored_group, conversion.stored_version);
        let ty = builtin::table().kind(group, version, conversion.kind)?.ty;
        Some(StoredAs { ty, conversion })
    }

    /// The kind that is stored.
    pub fn gvk(&self) -> GroupVersionKind {
        let Conversion { stored_group, stored_version, kind, .. } = self.conversion;
        GroupVersionKind::new(stored_group, stored_version, kind)
    }
}

impl Catalog {
    /// A catalog of `served`, as of `revision` of the CRDs.
    pub fn new(served: impl IntoIterator<Item = Served>, revision: Option<Revision>) -> Catalog {
        Catalog::from_shared(served.into_iter().map(Arc::new), revision)
    }

    /// A catalog of what is shared with an earlier one, and what is new.
    pub fn from_shared(served: impl IntoIterator<Item = Arc<Served>>, revision: Option<Revision>) -> Catalog {
        let served = served.into_iter().map(|served| (key_of(&served), served)).collect();
        Catalog { served, revision }
    }

    /// The resource `plural` in `group` and `version`.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        self.served.get(&(Arc::from(group), Arc::from(version), Arc::from(plural)))
    }

    /// Everything, ordered by group, version and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.served.values()
    }

    /// Whether `group` has `version`.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        let from = (Arc::from(group), Arc::from(version), Arc::from(""));
        self.served.range(from..).next().is_some_and(|((g, v, _), _)| &**g == group && &**v == version)
    }

    /// The stores, each once.
    pub fn stores(&self) -> Vec<Arc<Store>> {
        let mut known = Seen::default();
        let stores = self.served.values().filter_map(|served| served.store.as_ref());
        stores.filter(|store| !known.again(Arc::as_ptr(store))).cloned().collect()
    }
}

fn key_of(served: &Served) -> Coordinates {
    (served.gvr.group.clone(), served.gvr.version.clone(), served.gvr.resource.clone())
}

impl Served {
    pub fn subresource(&self, name: &str) -> Option<&SubresourceInfo> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }

    /// Group of the resource; empty for core.
    pub fn group(&self) -> &str {
        &self.gvr.group
    }

    /// Plural name of the resource.
    pub fn resource(&self) -> &str {
        &self.gvr.resource
    }

    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.group() == group && self.resource() == resource
    }
}
