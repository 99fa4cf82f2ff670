//! What is served right now: every resource in every served version. Immutable; published whole.
//!
//! In: the built-in table and the established CRDs. Out: look-ups by group, version and plural. Owner: the
//! CRD controller builds a new one and publishes it; everyone else reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::{GroupVersionKind, Revision, Seen};

use crate::served::Served;
use crate::store::Store;

/// Group, version and plural, or kind.
type Coordinates = (Arc<str>, Arc<str>, Arc<str>);

/// Everything that is served. Cheap to share, never changed.
#[derive(Clone, Default)]
pub struct Catalog {
    served: BTreeMap<Coordinates, Arc<Served>>,
    // By group, version and kind: the first of those that are stored.
    kinds: BTreeMap<Coordinates, Arc<Served>>,
    /// The CRD resource's revision up to which CRDs are taken into account.
    pub revision: Option<Revision>,
}

impl Catalog {
    /// A catalog of `served`, as of `revision` of the CRDs.
    pub fn new(served: impl IntoIterator<Item = Served>, revision: Option<Revision>) -> Catalog {
        Catalog::from_shared(served.into_iter().map(Arc::new), revision)
    }

    /// A catalog of what is shared with an earlier one, and what is new.
    pub fn from_shared(served: impl IntoIterator<Item = Arc<Served>>, revision: Option<Revision>) -> Catalog {
        let served: BTreeMap<_, _> = served.into_iter().map(|served| (key_of(&served), served)).collect();
        let mut kinds = BTreeMap::new();
        for served in served.values().filter(|served| served.store.is_some()) {
            let GroupVersionKind { group, version, kind } = served.gvk.clone();
            kinds.entry((group, version, kind)).or_insert_with(|| served.clone());
        }
        Catalog { served, kinds, revision }
    }

    /// What stores objects of a kind.
    pub fn stored_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Served>> {
        self.kinds.get(&(Arc::from(group), Arc::from(version), Arc::from(kind)))
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
