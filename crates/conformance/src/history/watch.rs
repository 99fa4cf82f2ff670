//! What one watch told, held against the log: etcd's guarantees, and those that selectors add.
//!
//! Source: etcd `tests/robustness/validate`, by name only; reference `reliability-tests.md` §1 and §7.

use std::collections::BTreeSet;

use super::{Log, Promise, Violation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One event. DELETED shows the last state that matched, at the revision of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchEvent {
    pub kind: EventKind,
    pub revision: u64,
    pub key: String,
    pub value: String,
    pub label: String,
}

/// One thing that a watch told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    Event(WatchEvent),
    Bookmark(u64),
    /// The bookmark that ends the initial state.
    InitialEnd(u64),
}

/// Where a watch was asked to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    After(u64),
    State,
}

/// One watch, from its request to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Who watched.
    pub name: String,
    pub start: Start,
    /// Objects with this label; `None` is all.
    pub label: Option<String>,
    pub items: Vec<Notification>,
    /// Whether it was cut off where it happened to be, and not ended.
    pub cut: bool,
}

impl Stream {
    /// The revision from which its client goes on.
    pub fn reached(&self) -> Option<u64> {
        let later = self.later_events().last().map(|event| event.revision);
        let marks = self.items.iter().rev().find_map(|item| match item {
            Notification::Bookmark(revision) | Notification::InitialEnd(revision) => Some(*revision),
            Notification::Event(_) => None,
        });
        let asked = match self.start {
            Start::After(revision) => Some(revision),
            Start::State => None,
        };
        later.max(marks).max(asked)
    }

    /// Judges it.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn check(&self, log: &Log) -> Result<(), Violation> {
        let mut judge = match self.start {
            Start::After(revision) => Judge::after(self, log, revision, 0),
            Start::State => match self.initial(log)? {
                Some((revision, place)) => Judge::after(self, log, revision, place),
                // It broke off before its state was whole, which then means nothing.
                None => return Ok(()),
            },
        };
        while let Some(item) = self.items.get(judge.item) {
            match item {
                Notification::Event(event) => judge.event(event)?,
                Notification::Bookmark(revision) | Notification::InitialEnd(revision) => {
                    judge.bookmark(*revision)?
                }
            }
            judge.item += 1;
        }
        judge.end()
    }

    /// Judges the initial state. Returns its revision, and where events begin.
    fn initial(&self, log: &Log) -> Result<Option<(u64, usize)>, Violation> {
        let broken = |what: String| Violation::new(Promise::Initial, format!("{}: {what}", self.name));
        let end = self.items.iter().enumerate().find_map(|(place, item)| match item {
            Notification::InitialEnd(revision) => Some((*revision, place)),
            _ => None,
        });
        let Some((revision, place)) = end else { return Ok(None) };
        let mut told = Vec::new();
        for item in &self.items[..place] {
            match item {
                Notification::Event(event) if event.kind == EventKind::Added => told.push(event),
                other => return Err(broken(format!("{other:?} within the initial state"))),
            }
        }
        if !told.is_sorted_by(|one, two| one.key < two.key) {
            return Err(broken("its state is not in key order".to_string()));
        }
        let state = log.state(self.label.as_deref(), revision);
        let said = told
            .iter()
            .map(|event| (event.key.clone(), (event.revision, event.value.clone(), event.label.clone())));
        let said = said.collect();
        match state == said {
            true => Ok(Some((revision, place + 1))),
            false => Err(broken(format!("its state at {revision} is {said:?}, not {state:?}"))),
        }
    }
}

/// Goes through a stream beside what is to be told.
struct Judge<'a> {
    stream: &'a Stream,
    expected: Vec<WatchEvent>,
    /// In `expected`.
    place: usize,
    /// In the stream's items.
    item: usize,
    first: bool,
    reached: u64,
    bookmark: u64,
    seen: BTreeSet<(u64, &'a str)>,
}

impl<'a> Judge<'a> {
    fn after(stream: &'a Stream, log: &Log, revision: u64, item: usize) -> Judge<'a> {
        let expected = log.told(stream.label.as_deref(), revision);
        let (bookmark, seen) = (0, BTreeSet::new());
        Judge { stream, expected, place: 0, item, first: true, reached: revision, bookmark, seen }
    }

    fn broken(&self, promise: Promise, what: String) -> Violation {
        let Stream { name, start, label, .. } = self.stream;
        Violation::new(
            promise,
            format!("{name} (from {start:?}, label {label:?}), item {}: {what}", self.item),
        )
    }

    fn event(&mut self, event: &'a WatchEvent) -> Result<(), Violation> {
        if !self.seen.insert((event.revision, &event.key)) {
            return Err(self.broken(Promise::Unique, format!("{event:?} came before")));
        }
        if event.revision < self.reached.max(self.bookmark) || event.revision <= self.bookmark {
            let after = format!("{event:?} after {}", self.reached.max(self.bookmark));
            let promise =
                if event.revision <= self.bookmark { Promise::Bookmarkable } else { Promise::Ordered };
            return Err(self.broken(promise, after));
        }
        let found = self.expected[self.place..]
            .iter()
            .position(|expected| (expected.revision, &expected.key) == (event.revision, &event.key));
        let skipped = found.ok_or_else(|| {
            self.broken(
                Promise::Filter,
                format!("{event:?} is nothing that is watched, or was told before it began"),
            )
        })?;
        let expected = &self.expected[self.place];
        if skipped > 0 {
            let promise = match (self.first, expected.revision == event.revision) {
                (_, true) => Promise::Atomic,
                (true, false) => Promise::Resumable,
                (false, false) => Promise::Reliable,
            };
            return Err(self.broken(promise, format!("{event:?} where {expected:?} is next")));
        }
        if event.kind != expected.kind {
            return Err(self.broken(Promise::Transition, format!("{event:?}, not {expected:?}")));
        }
        if event != expected {
            return Err(self.broken(Promise::State, format!("{event:?}, not {expected:?}")));
        }
        (self.place, self.first, self.reached) = (self.place + 1, false, event.revision);
        Ok(())
    }

    fn bookmark(&mut self, revision: u64) -> Result<(), Violation> {
        let what = match self.expected.get(self.place) {
            _ if revision < self.reached.max(self.bookmark) => {
                format!("a bookmark of {revision} after {}", self.reached.max(self.bookmark))
            }
            Some(next) if next.revision <= revision => {
                format!("a bookmark of {revision} before {next:?}")
            }
            _ => {
                self.bookmark = revision;
                return Ok(());
            }
        };
        Err(self.broken(Promise::Bookmarkable, what))
    }

    /// Who comes back from where it ended must not miss the rest of a revision.
    fn end(&self) -> Result<(), Violation> {
        match (self.place.checked_sub(1), self.expected.get(self.place)) {
            (Some(last), Some(next)) if !self.stream.cut && self.expected[last].revision == next.revision => {
                Err(self.broken(Promise::Atomic, format!("ended before {next:?}")))
            }
            _ => Ok(()),
        }
    }
}
