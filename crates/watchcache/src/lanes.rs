//! The lanes of one cache: the narrow parts of its window that watchers read, such as one namespace or one
//! object.
//!
//! An event is routed to the lanes of its previous and of its current object. A lane is opened by its first
//! reader and closed once nobody reads it.
//!
//! How a lane begins without a gap: under one lock the ingest task finds the lanes of a batch, and notes the
//! revision up to which events were routed. A reader that opens a lane takes that revision as the lane's
//! beginning. Every later event is routed to the lane; the earlier ones are in the log, where the lane's
//! cursor begins ([`lane_cursor`](forebay_revlog::Log::lane_cursor)).
//!
//! In: interests, batches of events. Out: lanes. Never: holds an event, waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;
use forebay_revlog::{Lane, LaneReader};

use crate::event::Event;
use crate::interest::{FieldSource, Interest, Reach};
use crate::limits;

/// By what a lane is narrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Dimension {
    Key,
    Field(FieldSource),
}

/// The lanes as watchers see them.
#[derive(Debug)]
pub(crate) struct Lanes(Mutex<Table>);

/// The lanes as the ingest task sees them. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Router(Arc<Lanes>);

#[derive(Debug)]
struct Table {
    // dimension that somebody asked for -> value -> lane. Few dimensions; LANES_MAX lanes at most.
    lanes: Vec<(Dimension, HashMap<Box<str>, Lane>)>,
    count: usize,
    // Every event up to here was routed.
    routed: Revision,
    closed: bool,
}

impl Router {
    /// No lanes yet, for events after `routed`.
    pub(crate) fn new(routed: Revision) -> Router {
        let table = Table { lanes: Vec::new(), count: 0, routed, closed: false };
        Router(Arc::new(Lanes(Mutex::new(table))))
    }

    pub(crate) fn lanes(&self) -> Arc<Lanes> {
        self.0.clone()
    }

    /// The lanes that each event of a batch belongs to, by the event's index. The caller has to append the
    /// events to them next.
    pub(crate) fn route(&self, events: &[(u64, Arc<Event>, usize)]) -> Vec<(usize, Lane)> {
        let mut table = self.0.table();
        if let Some((_, last, _)) = events.last() {
            table.routed = last.revision;
        }
        let mut routes = Vec::new();
        if table.count > 0 {
            for (index, (_, event, _)) in events.iter().enumerate() {
                table.find(event, |lane| routes.push((index, lane.clone())));
            }
        }
        routes
    }

    /// Closes the lanes that nobody reads; calls `keep` with the others.
    pub(crate) fn sweep(&self, keep: impl Fn(&Lane)) {
        let mut table = self.0.table();
        table.lanes.retain_mut(|(_, lanes)| {
            lanes.retain(|_, lane| lane.is_read());
            lanes.shrink_to(2 * lanes.len());
            !lanes.is_empty()
        });
        table.count = table.lanes.iter().map(|(_, lanes)| lanes.len()).sum();
        table.lanes.iter().flat_map(|(_, lanes)| lanes.values()).for_each(keep);
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let mut table = self.0.table();
        table.closed = true;
        table.lanes.clear();
    }
}

impl Lanes {
    /// The narrowest lane that has every event that matters to `interest`, opened if nobody reads it yet.
    /// `None` when that is the whole log.
    ///
    /// - `prefix_len`: the length of the resource's storage prefix.
    /// - `indexed`: the fields that have many values.
    pub(crate) fn join(
        &self,
        interest: &Interest,
        prefix_len: usize,
        indexed: &[usize],
    ) -> Option<LaneReader> {
        let (dimension, value) = narrowest(interest, prefix_len, indexed)?;
        self.table().join(dimension, value)
    }

    /// How many lanes there are.
    pub(crate) fn count(&self) -> usize {
        self.table().count
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn join(&mut self, dimension: Dimension, value: &str) -> Option<LaneReader> {
        if self.closed {
            return None;
        }
        let known = self.lanes.iter().position(|(known, _)| *known == dimension);
        if let Some(lane) = known.and_then(|at| self.lanes[at].1.get(value)) {
            return Some(lane.reader());
        }
        if self.count >= limits::LANES_MAX {
            return None;
        }
        let at = known.unwrap_or_else(|| {
            self.lanes.push((dimension, HashMap::new()));
            self.lanes.len() - 1
        });
        let lane = Lane::new(self.routed.get());
        let reader = lane.reader();
        self.lanes[at].1.insert(value.into(), lane);
        self.count += 1;
        Some(reader)
    }

    /// Calls `found` once with each lane that `event` is in.
    fn find(&self, event: &Event, mut found: impl FnMut(&Lane)) {
        for (dimension, lanes) in &self.lanes {
            if let Some(hidden) = &event.hidden {
                match dimension.value_in(&hidden.key) {
                    Some(value) => lanes.get(value).into_iter().for_each(&mut found),
                    // Nobody knows which.
                    None => lanes.values().for_each(&mut found),
                }
                continue;
            }
            let value = |object: &'_ Arc<Object>| lanes.get_key_value(dimension.value(object));
            let previous = event.previous.as_ref().and_then(value);
            let current = event.current.as_ref().and_then(value);
            if let Some((_, lane)) = previous {
                found(lane);
            }
            if let Some((text, lane)) = current
                && previous.is_none_or(|(known, _)| known != text)
            {
                found(lane);
            }
        }
    }
}

impl Dimension {
    fn value<'o>(&'o self, object: &'o Object) -> &'o str {
        match self {
            Dimension::Key => object.key().as_str(),
            Dimension::Field(field) => field.value(object),
        }
    }

    /// What every object at `key` has there; `None` where that depends on the object.
    fn value_in<'k>(&self, key: &'k Key) -> Option<&'k str> {
        let mut parts = key.as_str().rsplit('/');
        match self {
            Dimension::Key => Some(key.as_str()),
            Dimension::Field(FieldSource::Name) => parts.next(),
            // Of what has no namespace there is no lane of one.
            Dimension::Field(FieldSource::Namespace) => parts.nth(1),
            Dimension::Field(FieldSource::Indexed { .. }) => None,
        }
    }
}

/// The dimension that narrows `interest` most, and its value there.
fn narrowest<'i>(
    interest: &'i Interest,
    prefix_len: usize,
    indexed: &[usize],
) -> Option<(Dimension, &'i str)> {
    let field = |wanted: fn(&FieldSource, &[usize]) -> bool| {
        let mut pinned = interest.fields.iter().filter(|term| term.equal);
        let term = pinned.find(|term| wanted(&term.field, indexed))?;
        Some((Dimension::Field(term.field.clone()), term.value.as_str()))
    };
    match &interest.reach {
        Reach::One(key) => Some((Dimension::Key, key.as_str())),
        Reach::Below(prefix) => {
            let namespace = prefix.as_str().get(prefix_len..).and_then(|rest| rest.strip_suffix('/'));
            let namespace = namespace.map(|name| (Dimension::Field(FieldSource::Namespace), name));
            field(|source, _| *source == FieldSource::Name)
                .or_else(|| field(|source, indexed| source.index(indexed).is_some()))
                .or(namespace)
                .or_else(|| field(|_, _| true))
        }
    }
}
