//! The model: every change that the store has shown, and what follows from it for a LIST, a WATCH and a GET.
//!
//! In: changes, in order, as a feed of the whole store tells them. Out: the state at a revision, the events
//! of a selection after a place. It knows nothing of caches, windows and logs: it replays.

use std::collections::BTreeMap;
use std::rc::Rc;

use forebay_backend::Change;
use serde_json::Value;

use crate::resources::{Collection, Selection};

/// A key's value and the revision that put it.
#[derive(Clone, Debug)]
pub struct Version {
    pub revision: u64,
    pub value: Rc<Value>,
}

/// One change of a key, with what was there before.
#[derive(Clone, Debug)]
pub struct Transition {
    pub revision: u64,
    pub key: Rc<str>,
    pub previous: Option<Version>,
    pub current: Option<Rc<Value>>,
    /// When it was shown, ms.
    pub at_ms: u64,
}

/// What a WATCH says of an entry.
#[derive(Clone, Debug)]
pub struct Expected {
    pub kind: &'static str,
    pub key: Rc<str>,
    pub revision: u64,
    pub value: Rc<Value>,
}

/// See the module's doc.
#[derive(Default)]
pub struct History {
    // All changes of the store, in order, as (revision, when it was shown).
    shown: Vec<(u64, u64)>,
    // resource -> its changes, in order
    entries: BTreeMap<Collection, Vec<Transition>>,
    // key -> what it has now
    now: BTreeMap<Rc<str>, Version>,
    // The store's revision.
    visible: u64,
    // The newest revision that a client was told of as its own write's.
    acknowledged: u64,
}

impl History {
    /// The store has shown `change`.
    pub fn push(&mut self, change: &Change, at_ms: u64) {
        let (key, revision): (Rc<str>, u64) = (Rc::from(change.key.as_str()), change.revision.get());
        self.shown.push((revision, at_ms));
        self.visible = self.visible.max(revision);
        let current =
            change.value.as_ref().and_then(|value| serde_json::from_slice::<Value>(value).ok()).map(Rc::new);
        let previous = match &current {
            Some(value) => self.now.insert(key.clone(), Version { revision, value: value.clone() }),
            None => self.now.remove(&key),
        };
        if let Some(resource) = Collection::of(&key) {
            let entry = Transition { revision, key, previous, current, at_ms };
            self.entries.entry(resource).or_default().push(entry);
        }
    }

    /// The store is as it was at `revision`; what came later never was.
    pub fn go_back(&mut self, revision: u64) {
        self.shown.retain(|(shown, _)| *shown <= revision);
        self.now.clear();
        for entries in self.entries.values_mut() {
            entries.retain(|entry| entry.revision <= revision);
            for Transition { revision, key, current, .. } in &*entries {
                match current {
                    Some(value) => {
                        let version = Version { revision: *revision, value: value.clone() };
                        self.now.insert(key.clone(), version)
                    }
                    None => self.now.remove(key),
                };
            }
        }
        (self.visible, self.acknowledged) = (revision, self.acknowledged.min(revision));
    }

    pub fn set_visible(&mut self, revision: u64) {
        self.visible = self.visible.max(revision);
    }

    pub fn visible(&self) -> u64 {
        self.visible
    }

    pub fn acknowledge(&mut self, revision: u64) {
        self.acknowledged = self.acknowledged.max(revision);
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The newest revision at which something changed.
    pub fn last(&self) -> u64 {
        self.shown.last().map_or(0, |(revision, _)| *revision)
    }

    pub fn now(&self, key: &str) -> Option<&Version> {
        self.now.get(key)
    }

    pub fn entries(&self, resource: Collection) -> &[Transition] {
        self.entries.get(&resource).map_or(&[], Vec::as_slice)
    }

    /// Where in [`History::entries`] what comes after `revision` begins.
    pub fn place_after(&self, resource: Collection, revision: u64) -> usize {
        self.entries(resource).partition_point(|entry| entry.revision <= revision)
    }

    /// The objects of `selection` as of `revision`, by key.
    pub fn state(&self, selection: &Selection, revision: u64) -> BTreeMap<Rc<str>, Version> {
        let mut state = BTreeMap::new();
        for entry in self.entries(selection.resource).iter().take_while(|entry| entry.revision <= revision) {
            match &entry.current {
                Some(value) => {
                    let version = Version { revision: entry.revision, value: value.clone() };
                    state.insert(entry.key.clone(), version)
                }
                None => state.remove(&entry.key),
            };
        }
        state.retain(|key, version| selection.matches(key, &version.value));
        state
    }

    /// The first event of `selection` at `place` or later, and the place behind it.
    pub fn next(&self, selection: &Selection, place: usize) -> Option<(Expected, usize)> {
        let entries = self.entries(selection.resource);
        let found = entries.iter().enumerate().skip(place);
        found.filter_map(|(at, entry)| Some((entry.seen_by(selection)?, at + 1))).next()
    }

    /// When the first change of the store after `revision` was shown: until then `revision` was current.
    pub fn superseded_ms(&self, revision: u64) -> Option<u64> {
        let at = self.shown.partition_point(|(shown, _)| *shown <= revision);
        self.shown.get(at).map(|(_, at_ms)| *at_ms)
    }

    /// Whether `key` was absent at some moment from `from` on.
    pub fn was_absent(&self, key: &str, from: u64) -> bool {
        let Some(resource) = Collection::of(key) else { return true };
        let of_key = || self.entries(resource).iter().filter(|entry| &*entry.key == key);
        let then = of_key().rev().find(|entry| entry.revision <= from);
        then.is_none_or(|entry| entry.current.is_none())
            || of_key().any(|entry| entry.revision > from && entry.current.is_none())
    }
}

impl Transition {
    /// What a watch of `selection` says of it.
    fn seen_by(&self, selection: &Selection) -> Option<Expected> {
        let matching = |value: &&Rc<Value>| selection.matches(&self.key, value);
        let previous = self.previous.as_ref().map(|version| &version.value).filter(matching);
        let current = self.current.as_ref().filter(matching);
        let (kind, value) = match (previous, current) {
            (None, Some(value)) => ("ADDED", value),
            (Some(_), Some(value)) => ("MODIFIED", value),
            (Some(value), None) => ("DELETED", value),
            (None, None) => return None,
        };
        Some(Expected { kind, key: self.key.clone(), revision: self.revision, value: value.clone() })
    }
}
