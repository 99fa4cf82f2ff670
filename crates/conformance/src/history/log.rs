//! The log of a resource as its watchers saw it, held against what was written.
//!
//! In: streams of those who watch everything, operations. Out: entries in order of revision, and what is to
//! be told to whoever watches a part of them.

use std::collections::{BTreeMap, BTreeSet};

use super::watch::{EventKind, Notification, Stream, WatchEvent};
use super::{Call, Completion, Operation, Promise, Violation};

/// One key at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub revision: u64,
    pub key: String,
    /// The value and the label; `None` is deleted.
    pub current: Option<(String, String)>,
    pub previous: Option<(String, String)>,
}

/// All entries, in order of revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub entries: Vec<Entry>,
}

impl Log {
    /// A log of entries without their previous states, in order.
    pub fn of(entries: impl IntoIterator<Item = (u64, String, Option<(String, String)>)>) -> Log {
        let mut state = BTreeMap::new();
        let entries = entries.into_iter().map(|(revision, key, current)| {
            let previous = match &current {
                Some(object) => state.insert(key.clone(), object.clone()),
                None => state.remove(&key),
            };
            Entry { revision, key, current, previous }
        });
        Log { entries: entries.collect() }
    }

    /// What the streams that watch everything saw, put together.
    ///
    /// # Errors
    /// [`Promise::Agreed`]: two of them saw different things in one revision of a key.
    pub fn gather(streams: &[Stream]) -> Result<Log, Violation> {
        let mut seen: BTreeMap<(u64, String), Option<(String, String)>> = BTreeMap::new();
        for stream in streams.iter().filter(|stream| stream.label.is_none()) {
            for event in stream.later_events() {
                let current = match event.kind {
                    EventKind::Deleted => None,
                    EventKind::Added | EventKind::Modified => {
                        Some((event.value.clone(), event.label.clone()))
                    }
                };
                let place = (event.revision, event.key.clone());
                let known = seen.entry(place).or_insert_with(|| current.clone());
                if *known != current {
                    let what = format!("{}: {event:?}, to others {known:?}", stream.name);
                    return Err(Violation::new(Promise::Agreed, what));
                }
            }
        }
        Ok(Log::of(seen.into_iter().map(|((revision, key), current)| (revision, key, current))))
    }

    /// Whether what was acknowledged is in it, and nothing that was not asked for.
    ///
    /// # Errors
    /// [`Promise::Durable`], [`Promise::Asked`].
    pub fn holds(&self, operations: &[Operation]) -> Result<(), Violation> {
        let mut asked = BTreeSet::new();
        let mut deletes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let there: BTreeMap<(u64, &str), &Entry> =
            self.entries.iter().map(|entry| ((entry.revision, entry.key.as_str()), entry)).collect();
        for operation in operations {
            match (&operation.call, &operation.answer) {
                (Call::Create { value } | Call::Update { value, .. } | Call::Put { value, .. }, answer) => {
                    asked.insert((operation.key.as_str(), value.as_str()));
                    let Completion::Written { revision } = answer else { continue };
                    let entry = there.get(&(*revision, operation.key.as_str()));
                    let kept = entry.and_then(|entry| entry.current.as_ref()).map(|(value, _)| value);
                    if kept != Some(value) {
                        let what = format!("{operation:?} is {entry:?} in the log");
                        return Err(Violation::new(Promise::Durable, what));
                    }
                }
                (Call::Delete { .. }, Completion::Deleted) => {
                    deletes.entry(&operation.key).or_default().0 += 1
                }
                (Call::Delete { .. }, Completion::Unknown) => {
                    deletes.entry(&operation.key).or_default().1 += 1
                }
                _ => {}
            }
        }
        self.was_asked_for(&asked, &deletes)
    }

    fn was_asked_for(
        &self,
        asked: &BTreeSet<(&str, &str)>,
        deletes: &BTreeMap<&str, (usize, usize)>,
    ) -> Result<(), Violation> {
        let mut deleted: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &self.entries {
            match &entry.current {
                Some((value, _)) if !asked.contains(&(entry.key.as_str(), value.as_str())) => {
                    return Err(Violation::new(Promise::Asked, format!("{entry:?}: nobody wrote it")));
                }
                Some(_) => {}
                None => *deleted.entry(&entry.key).or_default() += 1,
            }
        }
        for key in deletes.keys().chain(deleted.keys()) {
            let (sure, perhaps) = deletes.get(key).copied().unwrap_or_default();
            let is = deleted.get(key).copied().unwrap_or_default();
            let what =
                || format!("{key} was deleted {is} times, {sure} acknowledged, {perhaps} without an answer");
            if is < sure {
                return Err(Violation::new(Promise::Durable, what()));
            }
            if is > sure + perhaps {
                return Err(Violation::new(Promise::Asked, what()));
            }
        }
        Ok(())
    }

    /// What is to be told to one who watches objects with this label, or all of them, after a revision.
    pub fn told(&self, label: Option<&str>, after: u64) -> Vec<WatchEvent> {
        let selects = |object: &Option<(String, String)>| {
            object.as_ref().filter(|(_, has)| label.is_none_or(|label| label == has)).cloned()
        };
        let later = self.entries.iter().filter(|entry| entry.revision > after);
        later
            .filter_map(|entry| {
                let (kind, (value, label)) = match (selects(&entry.previous), selects(&entry.current)) {
                    (None, Some(now)) => (EventKind::Added, now),
                    (Some(_), Some(now)) => (EventKind::Modified, now),
                    (Some(last), None) => (EventKind::Deleted, last),
                    (None, None) => return None,
                };
                Some(WatchEvent { kind, revision: entry.revision, key: entry.key.clone(), value, label })
            })
            .collect()
    }

    /// The objects with this label at a revision: key -> (revision, value, label).
    pub fn state(&self, label: Option<&str>, at: u64) -> BTreeMap<String, (u64, String, String)> {
        let mut state = BTreeMap::new();
        for entry in self.entries.iter().take_while(|entry| entry.revision <= at) {
            match &entry.current {
                Some((value, has)) if label.is_none_or(|label| label == has) => {
                    state.insert(entry.key.clone(), (entry.revision, value.clone(), has.clone()));
                }
                _ => drop(state.remove(&entry.key)),
            }
        }
        state
    }

    /// The last revision.
    pub fn last(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.revision)
    }
}

impl Stream {
    /// The events after the initial state.
    pub(crate) fn later_events(&self) -> impl Iterator<Item = &WatchEvent> {
        let end = self.items.iter().position(|item| matches!(item, Notification::InitialEnd(_)));
        let from = match (self.start, end) {
            (super::Start::After(_), _) => 0,
            (super::Start::State, Some(end)) => end,
            (super::Start::State, None) => self.items.len(),
        };
        self.items[from..].iter().filter_map(|item| match item {
            Notification::Event(event) => Some(event),
            _ => None,
        })
    }
}
