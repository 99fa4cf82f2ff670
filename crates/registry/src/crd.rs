//! CustomResourceDefinitions: from stored objects to served resources.
//!
//! One task owns what is known of the CRDs. It follows them like any watcher, writes their conditions, and
//! publishes a new catalog. A client that wrote a CRD is answered once the catalog has taken it in, so that
//! what it created is served at once.

mod cleanup;
mod instances;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_apimachinery::{Reason, Revision, Status};
use forebay_catalog::crd::{BuiltInHas, LayoutKey, is_true, needs, text};
use forebay_catalog::errors;
use forebay_catalog::store::{Decision, Mode, Store};
use forebay_catalog::{Catalog, Served, custom_served, retire, table};
use forebay_crd::check::has_webhook_conversion;
use forebay_crd::conditions;
use forebay_object::Object;
use forebay_watchcache::{EventKind, Interest, ReadError, WatchStep, Watcher};
use serde_json::Value;

use self::cleanup::{Cleanup, Deletion, Going};
use self::instances::Instances;
use crate::context::Context;
use crate::conversion;
use crate::owners;

/// How long a new resource's cache is waited for before it is published all the same.
const READY_WAIT: Duration = Duration::from_secs(5);
/// Pause before the CRDs are read again that could not be read: as long as one failed read lets the others
/// fail.
const AGAIN_PAUSE: Duration = Duration::from_secs(1);

/// What the controller knows.
struct Controller {
    context: Arc<Context>,
    served: Arc<Served>,
    store: Arc<Store>,
    // name -> CRD, as stored last
    crds: BTreeMap<String, Known>,
    reached: Revision,
}

struct Known {
    value: Value,
    /// The resource's storage and what its layout was made from.
    storage: Option<(Arc<Store>, LayoutKey)>,
    /// The revision at which it became what it is; writes of its status alone do not count.
    since: Revision,
    /// The served versions of `value`; made once for each change.
    served: Option<Vec<Arc<Served>>>,
    /// What was served before the last changes, for as long as it is watched.
    past: Vec<Weak<Served>>,
    /// Its conditions are those of `value`.
    judged: bool,
    /// The deletion that a [`Cleanup`] was started for.
    deletion: Option<Deletion>,
}

impl Known {
    fn new(since: Revision) -> Known {
        Known {
            value: Value::Null,
            storage: None,
            since,
            served: None,
            past: Vec::new(),
            judged: false,
            deletion: None,
        }
    }

    /// Takes in the CRD as it was at `revision`. What is served is made anew only if it changes.
    fn take(&mut self, value: Value, revision: Revision) {
        let is_other = |pointer: &str| value.pointer(pointer) != self.value.pointer(pointer);
        let changed = is_other("/spec") || is_other("/status/acceptedNames");
        // Where a webhook converts, it counts what objects may be stored in.
        let restored = has_webhook_conversion(&value) && is_other("/status/storedVersions");
        let outdated =
            changed || restored || is_other("/metadata/deletionTimestamp") || is_other("/metadata/uid");
        if changed {
            self.since = revision;
        }
        if outdated {
            self.outdate();
        }
        self.value = value;
        self.judged = false;
    }

    /// Takes in the CRD as it is in a state that was read anew, at `revision`. What it was in between is not
    /// known, nor whether what is known was ever so: the store may have been put back.
    fn replace(&mut self, value: Value, revision: Revision) {
        let is_same = revision_of(&value) == revision_of(&self.value);
        self.take(value, revision);
        if !is_same {
            self.since = revision;
            self.outdate();
        }
    }

    /// Has what is served made anew.
    fn outdate(&mut self) {
        let served = self.served.take().unwrap_or_default();
        self.past.extend(served.iter().map(Arc::downgrade));
    }

    /// What goes with the CRD when it goes.
    fn going(&self) -> Going {
        if BuiltInHas::of(&self.value) == Some(BuiltInHas::Storage) {
            return Going::BuiltIn;
        }
        match &self.storage {
            Some((store, key)) => {
                Going::Instances(Instances { store: store.clone(), fields: key.fields.clone() })
            }
            None => Going::Nothing,
        }
    }
}

/// Serves the CRDs that are stored, and those that come.
///
/// # Errors
/// When the CRDs cannot be read.
pub(crate) async fn start_crds(context: &Arc<Context>) -> Result<(), Status> {
    let served =
        context.catalog().resource("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned();
    let served = served.ok_or_else(|| Status::internal("CRDs are not served"))?;
    let store = served.stored()?;
    let (crds, reached) = (BTreeMap::new(), Revision::FIRST);
    let mut controller = Controller { context: context.clone(), served, store, crds, reached };
    let mut watcher = controller.watch().await.map_err(|error| errors::cache(&error))?;
    controller.take_state(&mut watcher).await;
    context.tasks.spawn("crd controller", controller.run(watcher));
    Ok(())
}

impl Controller {
    /// Follows the CRDs for as long as their cache is there.
    async fn run(mut self, mut watcher: Watcher) {
        loop {
            watcher.ready().await;
            let open = self.take_events(&mut watcher);
            self.settle().await;
            if open {
                continue;
            }
            // The cache of CRDs was filled anew, or history ran away: begin again from the state.
            let Some(again) = self.watch_again().await else { return };
            watcher = again;
            self.take_state(&mut watcher).await;
        }
    }

    /// A watch that begins with the state as it is now, which is waited for. `None` when there is nothing to
    /// come: the store is closed.
    async fn watch_again(&self) -> Option<Watcher> {
        loop {
            self.store.cacher.wait_ready().await;
            if self.store.cacher.is_stopped() {
                return None;
            }
            match self.watch().await {
                Ok(watcher) => return Some(watcher),
                Err(error) => tracing::warn!(%error, "the CRDs cannot be read, trying again"),
            }
            self.context.clock.sleep(AGAIN_PAUSE).await;
        }
    }

    /// A watch that begins with the state as it is now.
    async fn watch(&self) -> Result<Watcher, ReadError> {
        let deadline = self.context.clock.now() + READY_WAIT;
        let snapshot = self.store.cacher.fresh(deadline).await?;
        let interest = Interest::all(self.store.reach(None, None));
        self.store.cacher.watch_list(interest, snapshot)
    }

    /// Takes the state that a watch begins with in the place of what is known, and publishes it once. That
    /// state may be older: of a store that was put back.
    async fn take_state(&mut self, watcher: &mut Watcher) {
        let mut gone: BTreeSet<String> = self.crds.keys().cloned().collect();
        while let Some(step) = watcher.try_next() {
            match step {
                WatchStep::Event { object, revision, .. } => {
                    gone.remove(object.name());
                    if let Some((known, value)) = self.known(&object) {
                        known.replace(value, revision);
                    }
                }
                WatchStep::InitialEventsEnd(revision) => {
                    self.reached = revision;
                    break;
                }
                // Comes behind the state only.
                WatchStep::Expired { .. } | WatchStep::Undecrypted { .. } | WatchStep::Closed => return,
            }
        }
        for name in &gone {
            self.forget(name);
        }
        self.settle().await;
    }

    /// Takes what the watch has now; false when it is at its end, which it says for ever.
    fn take_events(&mut self, watcher: &mut Watcher) -> bool {
        while let Some(step) = watcher.try_next() {
            if !self.take(step) {
                return false;
            }
        }
        true
    }

    /// Takes one step of the watch; false when the watch is at its end.
    fn take(&mut self, step: WatchStep) -> bool {
        match step {
            WatchStep::Event { kind: EventKind::Deleted, object, revision } => {
                self.forget(object.name());
                self.reached = self.reached.max(revision);
            }
            WatchStep::Event { object, revision, .. } => {
                self.reached = self.reached.max(revision);
                self.remember(&object);
            }
            WatchStep::InitialEventsEnd(revision) => self.reached = self.reached.max(revision),
            WatchStep::Expired { .. } | WatchStep::Undecrypted { .. } | WatchStep::Closed => return false,
        }
        true
    }

    fn remember(&mut self, object: &Object) {
        let Some((known, value)) = self.known(object) else { return };
        // An older echo of a status that this task has written already changes nothing.
        if revision_of(&value) >= revision_of(&known.value) {
            known.take(value, object.revision());
        }
    }

    /// What is known of the CRD that `object` is, and its value now; nothing if that cannot be read.
    fn known(&mut self, object: &Object) -> Option<(&mut Known, Value)> {
        let value = self.served.to_value(object).ok()?;
        let known = self.crds.entry(object.name().to_string());
        Some((known.or_insert_with(|| Known::new(object.revision())), value))
    }

    fn forget(&mut self, name: &str) {
        if let Some(Known { storage: Some((store, _)), .. }) = self.crds.remove(name) {
            store.cacher.stop();
        }
    }

    /// Brings conditions and catalog up to what is known.
    async fn settle(&mut self) {
        self.write_conditions().await;
        self.open_stores().await;
        self.publish();
        self.clean_up();
    }

    /// Writes what the conditions of the CRDs are now, in order of creation: of those that have changed, and
    /// of those that wait for a name, which another may have given up.
    async fn write_conditions(&mut self) {
        let mut order: Vec<(String, String)> = self
            .crds
            .iter()
            .filter(|(_, known)| !known.judged || !is_true(&known.value, "NamesAccepted"))
            .map(|(name, known)| {
                (text(&known.value, "/metadata/creationTimestamp").to_string(), name.clone())
            })
            .collect();
        order.sort();
        for (_, name) in order {
            let Some(known) = self.crds.get(&name) else { continue };
            let others: Vec<&Value> = self
                .crds
                .iter()
                .filter(|(other, _)| **other != name)
                .map(|(_, known)| &known.value)
                .collect();
            let needs = needs(&known.value);
            let more: Vec<_> = needs
                .iter()
                .map(|(kind, status, reason, why)| (*kind, *status, *reason, why.as_str()))
                .collect();
            let status = conditions::status(&known.value, &others, &more, &self.context.now_rfc3339());
            if status == known.value["status"] {
                if let Some(known) = self.crds.get_mut(&name) {
                    known.judged = true;
                }
                continue;
            }
            match self.write_status(&name, &status).await {
                Ok(Some((value, revision))) => {
                    if let Some(known) = self.crds.get_mut(&name) {
                        known.take(value, revision);
                    }
                }
                Ok(None) => {}
                Err(status) => {
                    tracing::warn!(crd = name, message = status.message, "its conditions were not written")
                }
            }
        }
    }

    /// Stores `status`; the CRD as stored then, or `None` when it has changed in the meantime, in which case
    /// an event is on its way.
    async fn write_status(&self, name: &str, status: &Value) -> Result<Option<(Value, Revision)>, Status> {
        let key = self.store.key("", name);
        let seen = self.crds.get(name).map(|known| known.value["metadata"]["resourceVersion"].clone());
        let done = self
            .store
            .guarded_update(&key, Mode::Commit, |current| {
                let Some(current) = current else { return Err(Status::new(Reason::NotFound, "gone")) };
                let mut value = self.served.to_value(&current.object)?;
                if Some(&value["metadata"]["resourceVersion"]) != seen.as_ref() {
                    return Err(Status::new(Reason::Conflict, "changed"));
                }
                let live = value.clone();
                value["status"] = status.clone();
                owners::by_server(
                    &self.context,
                    &self.served,
                    (owners::SERVER, "status"),
                    Some(&live),
                    &mut value,
                )?;
                Ok(Decision::Put { value: self.served.encode(value)?, ttl: None })
            })
            .await;
        match done {
            Ok(forebay_catalog::store::Done::Put { object }) => {
                self.served.to_value(&object).map(|value| Some((value, object.revision())))
            }
            Ok(_) => Ok(None),
            Err(status) if matches!(status.reason, Reason::NotFound | Reason::Conflict) => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Starts the caches of what has become served, and waits for them together.
    async fn open_stores(&mut self) {
        let mut opened = Vec::new();
        for known in self.crds.values_mut() {
            if !is_true(&known.value, "Established") {
                continue;
            }
            let built_in = BuiltInHas::of(&known.value);
            if built_in == Some(BuiltInHas::Storage) {
                // What is there is not of this definition, and no other store is opened on it.
                known.served.get_or_insert_default();
                continue;
            }
            let wanted = LayoutKey::of(&known.value);
            if known.storage.as_ref().is_none_or(|(_, key)| *key != wanted) {
                if let Some((old, key)) = known.storage.take()
                    && key.uid != wanted.uid
                {
                    old.cacher.stop();
                }
                // Else its watches go on where they are; it ends with the last of them.
                let store = Arc::new(wanted.open(&known.value, &self.context.opener));
                opened.push(store.clone());
                known.storage = Some((store, wanted));
                known.served = None;
            }
            if let (None, Some((store, key))) = (&known.served, &known.storage) {
                let conversion = conversion::of(&self.context, &known.value);
                let storage = (store, &*key.fields);
                known.served = Some(match built_in {
                    Some(_) => Vec::new(),
                    None => custom_served(&known.value, storage, known.since, conversion.as_ref()),
                });
            }
        }
        let deadline = self.context.clock.now() + READY_WAIT;
        for store in opened {
            tokio::select! {
                () = store.cacher.wait_ready() => {}
                () = self.context.clock.sleep_until(deadline) => return,
            }
        }
    }

    fn publish(&mut self) {
        let built_in = table::of(&self.context.catalog());
        let custom = self.crds.values().filter_map(|known| known.served.as_ref()).flatten().cloned();
        // What is built in comes last and stays.
        self.context.publish(Catalog::from_shared(custom.chain(built_in), Some(self.reached)));
        // Clients of what ends come back, and find what is served now.
        for known in self.crds.values_mut() {
            known.past.retain(|old| old.strong_count() > 0);
            let watched: Vec<Arc<Served>> = known.past.iter().filter_map(Weak::upgrade).collect();
            retire(&watched, known.served.as_deref().unwrap_or_default());
        }
    }

    /// Deletes the objects of every CRD that is being deleted.
    fn clean_up(&mut self) {
        for (name, known) in &mut self.crds {
            let due = Deletion::of(&known.value);
            if due == known.deletion {
                continue;
            }
            known.deletion = due.clone();
            let Some(deletion) = due else { continue };
            let cleanup = Cleanup {
                context: self.context.clone(),
                crds: self.store.clone(),
                served: self.served.clone(),
                name: name.clone(),
                deletion,
                going: known.going(),
            };
            self.context.tasks.spawn("crd cleanup", cleanup.run());
        }
    }
}

fn revision_of(value: &Value) -> u64 {
    text(value, "/metadata/resourceVersion").parse().unwrap_or(0)
}
