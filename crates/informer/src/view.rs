//! The objects of an informer at one moment.
//!
//! In: snapshots, one for each namespace that is watched by itself. Out: [`Handle`]s. Never: changes; reads
//! an object before somebody asks for what is in it.

use std::marker::PhantomData;
use std::sync::Arc;

use forebay_apimachinery::selector::LabelSelector;
use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;
use forebay_view::{Handle, TypeMeta};
use forebay_watchcache::{FieldSource, FieldTerm, Interest, Reach, Snapshot};

use crate::change::key;
use crate::error::Error;
use crate::shared::Shared;

/// See the module's doc. Cheap to clone; it keeps what has been replaced since for as long as it is held.
pub struct View<K> {
    shared: Arc<Shared>,
    kind: Arc<TypeMeta>,
    snapshots: Vec<Arc<Snapshot>>,
    of: PhantomData<fn() -> K>,
}

impl<K> Clone for View<K> {
    fn clone(&self) -> View<K> {
        View::new(self.shared.clone(), self.kind.clone(), self.snapshots.clone())
    }
}

impl<K> View<K> {
    pub(crate) fn new(shared: Arc<Shared>, kind: Arc<TypeMeta>, snapshots: Vec<Arc<Snapshot>>) -> View<K> {
        View { shared, kind, snapshots, of: PhantomData }
    }

    /// The revision of the state; the lowest where several namespaces are watched, each by itself.
    pub fn revision(&self) -> Option<Revision> {
        self.snapshots.iter().map(|snapshot| snapshot.revision()).min()
    }

    /// Objects in it.
    pub fn len(&self) -> usize {
        self.snapshots.iter().map(|snapshot| snapshot.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One object. O(log n), nothing is read or copied.
    ///
    /// - `namespace`: empty for a kind without namespaces.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Handle<K>> {
        let key = key(namespace, name);
        let found = self.snapshots.iter().find_map(|snapshot| snapshot.get(&key))?;
        Some(self.handle(found))
    }

    /// All objects, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = Handle<K>> {
        self.matching(Interest::all(Reach::Below(Key::from("/"))))
    }

    /// Those of a namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = Handle<K>> {
        self.matching(Interest::all(Reach::Below(Key::from(format!("/{namespace}/")))))
    }

    /// Those whose labels match, as `kubectl -l` takes it, by namespace and name. A requirement of one value
    /// for a label that there is an index of finds its objects by that; otherwise each is looked at, without
    /// reading it.
    ///
    /// # Errors
    /// [`Error::Selector`].
    pub fn labelled(&self, selector: &str) -> Result<impl Iterator<Item = Handle<K>>, Error> {
        let labels = LabelSelector::parse(selector)
            .map_err(|why| Error::Selector { selector: selector.into(), why })?;
        let by_label = |(at, path): (usize, &String)| {
            let name = label_of(path)?;
            labels.exact(name).map(|value| equal(at, value))
        };
        let fields: Vec<FieldTerm> =
            self.shared.indexes.iter().enumerate().filter_map(by_label).take(1).collect();
        let reach = Reach::Below(Key::from("/"));
        Ok(self.matching(Interest { reach, labels: Arc::new(labels), fields: fields.into() }))
    }

    /// Those with `value` at a path that the informer has an index of. O(log n + what is found).
    ///
    /// - `path`: as it was given to [`Watched::index`](crate::Watched::index).
    ///
    /// # Errors
    /// [`Error::NoIndex`].
    pub fn indexed(&self, path: &str, value: &str) -> Result<impl Iterator<Item = Handle<K>>, Error> {
        let at = self.shared.indexes.iter().position(|index| index == path);
        let at = at.ok_or_else(|| Error::NoIndex { name: path.into() })?;
        let (reach, labels) = (Reach::Below(Key::from("/")), Arc::new(LabelSelector::everything()));
        Ok(self.matching(Interest { reach, labels, fields: [equal(at, value)].into() }))
    }

    fn matching(&self, interest: Interest) -> impl Iterator<Item = Handle<K>> {
        self.snapshots.iter().flat_map(move |snapshot| {
            let found = snapshot.candidates(&interest, None).filter(|object| interest.selects(object));
            found.map(|object| self.handle(object)).collect::<Vec<_>>()
        })
    }

    fn handle(&self, object: &Arc<Object>) -> Handle<K> {
        Handle::new(object.clone(), self.kind.clone())
    }
}

fn equal(index: usize, value: &str) -> FieldTerm {
    let field = FieldSource::Indexed { fields: [index].into(), absent: "" };
    FieldTerm { field, equal: true, value: value.into() }
}

/// The label that an index is of, if it is one of a label.
fn label_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("metadata.labels")?;
    name.strip_prefix('.').or_else(|| name.strip_prefix("['")?.strip_suffix("']"))
}
