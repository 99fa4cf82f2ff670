//! Custom resources: what a CRD's version says of its objects.
//!
//! In: a CRD that is established. Out: its served versions, each of which normalizes, judges and prints its objects. The
//! schema itself is understood by `forebay_schema::crd`; this file fits it to the verbs.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::{Cause, GroupVersionKind, GroupVersionResource, Lease, Revision};
use forebay_object::Object;
use forebay_printers::duration;
use forebay_rt::Stagger;
use forebay_schema::crd::field;
use forebay_schema::crd::{Definition, Version};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::catalog::{Served, Source, SubresourceInfo};
use crate::store::{SelectableField, Store};
use forebay_strategy::{CustomRules, ScalePaths};

/// What ends watches of a version when its CRD changes, one after the other: their clients do not all come back at once
/// (kubernetes#123074).
pub(crate) struct Ending {
    ended: watch::Sender<Ended>,
    // Of watches that have been told.
    turns: Arc<Stagger>,
}

/// Which watches of a version are to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ended {
    /// All: the version is no more.
    all: bool,
    /// Tables: the columns are others.
    tables: bool,
    /// Those that select by these of [`Served::selectable`], which are no more.
    fields: Vec<usize>,
}

impl Ending {
    fn new() -> Ending {
        Ending { ended: watch::Sender::new(Ended::default()), turns: Arc::default() }
    }

    /// Waits until a watch is to end that shows Tables, or does not, and selects by `fields`; how much later it is its
    /// turn.
    pub(crate) fn told(&self, is_table: bool, fields: Vec<usize>) -> impl Future<Output = Duration> + use<> {
        let (mut ended, turns) = (self.ended.subscribe(), self.turns.clone());
        async move {
            let concerns = |ended: &Ended| {
                ended.all
                    || ended.tables && is_table
                    || fields.iter().any(|field| ended.fields.contains(field))
            };
            // What ended without a word is no more, either.
            let _told = ended.wait_for(concerns).await.is_ok();
            turns.next()
        }
    }

    /// How much later a watch is to end that ends now.
    pub(crate) fn turn(&self) -> Duration {
        self.turns.next()
    }

    fn raise(&self, ended: Ended) {
        self.ended.send_if_modified(|known| {
            let changed = *known != ended;
            *known = ended;
            changed
        });
    }
}

/// Tells the watches of `before` that have to end that they do. A change of the schema alone ends none: what they send is
/// what is stored.
pub(crate) fn retire(before: &[Arc<Served>], now: &[Arc<Served>]) {
    for old in before {
        let Source::Custom(custom) = &old.source else { continue };
        let successor = now.iter().find(|new| new.gvr == old.gvr && new.gvk == old.gvk);
        custom.ending.raise(match successor.map(|new| (new, &new.source)) {
            Some((new, Source::Custom(after))) => {
                let gone = |label: &str| new.selectable.iter().all(|field| field.label != label);
                let fields = old.selectable.iter().enumerate().filter(|(_, field)| gone(&field.label));
                Ended {
                    all: false,
                    tables: after.columns != custom.columns,
                    fields: fields.map(|(index, _)| index).collect(),
                }
            }
            _ => Ended { all: true, ..Ended::default() },
        });
    }
}

/// As discovery lists them.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// One version of a CRD.
pub struct Custom {
    definition: Arc<Definition>,
    version: usize,
    rules: CustomRules,
    /// The CRD is being deleted: nothing new is taken.
    pub terminating: bool,
    /// What was stored before it may lack defaults that the schema has now, and hold fields that it has no more.
    since: Revision,
    /// Ends its watches.
    pub(crate) ending: Ending,
    columns: Value,
}

/// The versions of `crd` that are served, on `store`, whose layout keeps `fields`.
///
/// Objects that only a webhook can convert are served in the version that they are stored in.
///
/// - `fields`: sorted.
/// - `since`: the revision at which the CRD became what it is.
pub(crate) fn served(
    crd: &Value,
    store: &Arc<Store>,
    fields: &[String],
    since: Revision,
) -> Vec<Arc<Served>> {
    let definition = Arc::new(Definition::compile(crd));
    let terminating = crd["metadata"]["deletionTimestamp"].is_string();
    let versions = definition.versions.iter().enumerate();
    versions
        .filter(|(_, version)| version.served && (version.storage || !definition.webhook_conversion))
        .map(|(index, version)| Arc::new(one(&definition, index, version, terminating, store, fields, since)))
        .collect()
}

fn one(
    definition: &Arc<Definition>,
    index: usize,
    version: &Version,
    terminating: bool,
    store: &Arc<Store>,
    fields: &[String],
    since: Revision,
) -> Served {
    let scale = version.scale.as_ref().map(|scale| ScalePaths {
        spec_replicas: format!(".{}", scale.spec_replicas),
        status_replicas: format!(".{}", scale.status_replicas),
        label_selector: scale.label_selector.as_ref().map(|path| format!(".{path}")),
    });
    let rules = CustomRules { namespaced: definition.namespaced, status_subresource: version.status, scale };
    let gvk = GroupVersionKind::new(&definition.group, &version.name, &definition.kind);
    let selectable = version.selectable_fields.iter().filter_map(|path| {
        let place = fields.binary_search(path).ok()?;
        Some(SelectableField { label: path.clone(), fields: Box::new([place]), absent: "" })
    });
    Served {
        gvr: GroupVersionResource::new(&definition.group, &version.name, &definition.plural),
        list_kind: definition.list_kind.clone(),
        singular: definition.singular.clone(),
        namespaced: definition.namespaced,
        short_names: definition.short_names.clone(),
        categories: definition.categories.clone(),
        verbs: VERBS.to_vec(),
        subresources: subresources(version, &gvk),
        gvk,
        selectable: selectable.collect(),
        source: Source::Custom(Custom {
            columns: version.column_definitions(),
            definition: definition.clone(),
            version: index,
            rules,
            terminating,
            since,
            ending: Ending::new(),
        }),
        store: Some(store.clone()),
    }
}

fn subresources(version: &Version, gvk: &GroupVersionKind) -> Vec<SubresourceInfo> {
    let subresource = |name: &str, gvk| SubresourceInfo {
        name: name.into(),
        gvk,
        verbs: SUBRESOURCE_VERBS.to_vec(),
        connect: false,
    };
    let status = version.status.then(|| subresource("status", gvk.clone()));
    let scale = version.scale.as_ref();
    let scale = scale.map(|_| subresource("scale", GroupVersionKind::new("autoscaling", "v1", "Scale")));
    status.into_iter().chain(scale).collect()
}

impl Custom {
    fn version(&self) -> &Version {
        &self.definition.versions[self.version]
    }

    /// The version that objects are stored in.
    pub fn storage_version(&self) -> &str {
        &self.definition.storage_version().name
    }

    /// What its strategy needs to know.
    pub fn rules(&self) -> &CustomRules {
        &self.rules
    }

    /// Whether `object` was stored before the CRD became what it is.
    pub fn is_older(&self, object: &Object) -> bool {
        object.revision() < self.since
    }

    /// What clients of this version are told, if it is deprecated.
    pub fn deprecation_warning(&self) -> Option<&str> {
        self.version().deprecation_warning.as_deref()
    }

    /// The schema of this version, for those who describe it.
    pub fn definition(&self) -> (&Definition, &Version) {
        (&self.definition, self.version())
    }

    /// Brings an object into the form of this version; what is unknown is dropped and named.
    ///
    /// - `lease`: what the defaults take is charged to it.
    ///
    /// # Errors
    /// Metadata of the wrong type, and defaults that take more than there may be.
    pub fn normalize(&self, value: &mut Value, lease: &Lease) -> Result<Vec<String>, String> {
        self.version().normalize(value, lease)
    }

    /// Brings what is stored into this version: the defaults are those of the version that it is stored in, and what this
    /// one does not know is dropped.
    ///
    /// # Errors
    /// Metadata of the wrong type; and defaults that take more than one tree may, as the schema may have got since: whoever
    /// asks shows what is stored.
    pub fn renew(&self, value: &mut Value) -> Result<(), String> {
        let (stored, shown) = (self.definition.storage_version(), self.version());
        stored.normalize(value, &Lease::of_one_tree())?;
        if stored.name != shown.name {
            shown.prune(value);
        }
        Ok(())
    }

    /// What the schema has against `value` in the place of `old`.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        field::causes(&self.version().validate(value, old))
    }

    /// As much of an object as [`Custom::cells`] needs; `None` where `text` is no JSON.
    pub fn read_shown(&self, text: &[u8]) -> Option<Value> {
        self.version().read_shown(text).ok()
    }

    /// A Table's cells.
    pub fn cells(&self, value: &Value, now: Timestamp) -> Vec<Value> {
        self.version().cells(value, now, |then, now| duration::since(Some(then), now))
    }

    /// A Table's columns.
    pub fn column_definitions(&self) -> Value {
        self.columns.clone()
    }
}
