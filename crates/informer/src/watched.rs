//! What is to be watched: a kind, which of its objects, and how they are to be found.

use std::marker::PhantomData;

use forebay_client::Collection;
use forebay_view::TypeMeta;
use kube::Resource;
use kube::core::ApiResource;

use crate::ceiling::AtLimit;

/// A kind's objects: all of them, or those of some namespaces and selectors.
#[derive(Clone, Debug)]
pub struct Watched<K> {
    kind: TypeMeta,
    collection: Collection,
    namespaces: Vec<String>,
    indexes: Vec<String>,
    cut: Cut,
    limit: Option<(usize, AtLimit)>,
    of: PhantomData<fn() -> K>,
}

/// What of an object is not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cut {
    pub(crate) dropped: Vec<String>,
    pub(crate) kept: Option<Vec<String>>,
}

impl Cut {
    /// No more than metadata of what it leaves, and what there are indexes of.
    pub(crate) fn to_metadata(&self, indexes: &[String]) -> Cut {
        let is_metadata = |path: &&String| {
            let rest = path.strip_prefix("metadata");
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let kept = match &self.kept {
            Some(kept) => kept.iter().filter(is_metadata).cloned().collect(),
            None => vec!["metadata".to_owned()],
        };
        Cut { dropped: self.dropped.clone(), kept: Some([kept, indexes.to_vec()].concat()) }
    }
}

/// What an informer is one of: those that are the same share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Wanted {
    pub(crate) collections: Vec<Collection>,
    pub(crate) indexes: Vec<String>,
    pub(crate) cut: Cut,
    pub(crate) limit: Option<(usize, AtLimit)>,
}

impl<K: Resource<DynamicType = ()>> Watched<K> {
    /// All objects of a kind that is known at compile time.
    pub fn all() -> Watched<K> {
        Watched::of(&ApiResource {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
        })
    }
}

impl<K> Watched<K> {
    /// All objects of a kind that is known when the program runs: of `DynamicObject`, `serde_json::Value`, or
    /// `PartialObjectMeta`, which all kinds can be read as.
    pub fn of(resource: &ApiResource) -> Watched<K> {
        Watched {
            kind: TypeMeta::new(&resource.kind, &resource.api_version),
            collection: Collection::all(&resource.group, &resource.version, &resource.plural),
            namespaces: Vec::new(),
            indexes: Vec::new(),
            cut: Cut::default(),
            limit: None,
            of: PhantomData,
        }
    }

    /// Only those of `namespace`, and of the other namespaces that are named so: a watch for each.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Watched<K> {
        self.namespaces.push(namespace.into());
        self
    }

    /// Only those whose labels match, as `kubectl -l` takes it.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Watched<K> {
        self.collection.label_selector = selector.into();
        self
    }

    /// Only those whose fields match, as `kubectl --field-selector` takes it; which fields there are is the
    /// server's to say.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Watched<K> {
        self.collection.field_selector = selector.into();
        self
    }

    /// Keeps an index by the field at `path`: `spec.nodeName`, `metadata.labels['app.kubernetes.io/name']`.
    /// Objects without the field have the empty value. Asked for by [`View::indexed`](crate::View::indexed).
    /// About 24 bytes an object.
    #[must_use]
    pub fn index(mut self, path: &str) -> Watched<K> {
        self.indexes.push(path.into());
        self
    }

    /// Does not store the field at `path`: `metadata.managedFields`, which is often a quarter of an object,
    /// `metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']`, `spec.containers[*].env`.
    #[must_use]
    pub fn drop_field(mut self, path: &str) -> Watched<K> {
        self.cut.dropped.push(path.into());
        self
    }

    /// Stores no more than what is at the paths that are named so, and what an object is: kind, name,
    /// namespace, uid and resourceVersion. Labels and fields that are looked for have to be among them.
    #[must_use]
    pub fn keep_field(mut self, path: &str) -> Watched<K> {
        self.cut.kept.get_or_insert_default().push(path.into());
        self
    }

    /// Stores metadata alone.
    #[must_use]
    pub fn metadata_only(self) -> Watched<K> {
        self.keep_field("metadata")
    }

    /// Holds no more than so many bytes at rest, of all its namespaces together, also while a state comes:
    /// then `at_limit` is done. Counted as [`Informer::held_bytes`](crate::Informer::held_bytes), but for
    /// what came last and is not at rest yet, which is within [`Options::loose_bytes_max`](crate::Options).
    /// Takes the place of the factory's.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize, at_limit: AtLimit) -> Watched<K> {
        self.limit = Some((bytes, at_limit));
        self
    }

    pub(crate) fn kind(&self) -> &TypeMeta {
        &self.kind
    }

    pub(crate) fn wanted(&self) -> Wanted {
        let mut namespaces: Vec<Option<String>> = self.namespaces.iter().cloned().map(Some).collect();
        namespaces.sort();
        namespaces.dedup();
        if namespaces.is_empty() {
            namespaces.push(None);
        }
        let of = |namespace| Collection { namespace, ..self.collection.clone() };
        Wanted {
            collections: namespaces.into_iter().map(of).collect(),
            indexes: self.indexes.clone(),
            cut: self.cut.clone(),
            limit: self.limit.clone(),
        }
    }
}
