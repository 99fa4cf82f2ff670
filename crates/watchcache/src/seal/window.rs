//! What only the window still holds: objects that were replaced or deleted some seconds ago, deflated with those that were
//! replaced at about the same time.
//!
//! An object is in the window as the `current` of its own event and as the `previous` of the one that replaced it; both
//! get the sealed one in its place.
//!
//! In: the window's events, oldest first. Out: the same events with less behind them. Never: touches the state, or an event
//! that is younger than [`limits::SEAL_MS`].

use std::sync::Arc;

use forebay_apimachinery::Object;
use forebay_apimachinery::object::{RecentBlocks, Sealer};
use forebay_revlog::Writer;

use crate::event::Event;
use crate::limits;

#[derive(Default)]
pub(super) struct Replaced {
    // The window's item to go on at.
    next_seq: u64,
}

/// Objects that are to be sealed.
pub(super) struct Found {
    // The item of the event that replaced the object, and the object.
    found: Vec<(u64, Arc<Object>)>,
}

/// What became of each.
pub(super) struct Batch {
    found: Vec<(u64, Arc<Object>)>,
    sealed: Vec<Arc<Object>>,
}

impl Replaced {
    pub(super) fn is_behind(&self, window: &Writer<Arc<Event>>) -> bool {
        self.next_seq < window.next_seq()
    }

    pub(super) fn next_job(&mut self, window: &Writer<Arc<Event>>, until_ms: u64) -> Option<Found> {
        for _ in 0..limits::SEAL_LOOKS {
            let settled = window.settled(self.next_seq, until_ms, limits::SEAL_BATCH);
            let (last, _) = settled.last()?;
            let (next_seq, whole) = (last + 1, settled.len() == limits::SEAL_BATCH);
            let replaced = |(seq, event): (u64, Arc<Event>)| Some((seq, event.previous.clone()?));
            let found: Vec<(u64, Arc<Object>)> = settled.into_iter().filter_map(replaced).collect();
            let bytes: usize = found.iter().map(|(_, object)| object.body_len()).sum();
            let worth_it = bytes >= limits::SEAL_BYTES_MIN;
            let patience_ms = until_ms.saturating_sub(limits::SEAL_PATIENCE_MS);
            if !worth_it && !whole && window.settled(self.next_seq, patience_ms, 1).is_empty() {
                // A trickle: more may come to be sealed with it.
                return None;
            }
            self.next_seq = next_seq;
            if worth_it {
                return Some(Found { found });
            }
        }
        None
    }
}

impl Found {
    /// One that was in a block of the state's leaves it, so that the block can go when its other objects have.
    pub(super) fn seal(self, recent: Arc<RecentBlocks>) -> Batch {
        let objects: Vec<Arc<Object>> = self.found.iter().map(|(_, object)| object.clone()).collect();
        let sealed = Sealer::new(recent).seal(&objects);
        Batch { found: self.found, sealed }
    }
}

impl Batch {
    pub(super) fn put_in_place(self, window: &mut Writer<Arc<Event>>) {
        for ((seq, old), new) in self.found.into_iter().zip(self.sealed) {
            if !Arc::ptr_eq(&old, &new) {
                renew(window, &old, &new, Some(seq));
            }
        }
    }
}

/// Puts another form of an object in its place in the window.
///
/// - `replaced`: the item of the event that replaced it.
pub(super) fn renew(
    window: &mut Writer<Arc<Event>>,
    old: &Arc<Object>,
    new: &Arc<Object>,
    replaced: Option<u64>,
) {
    let is_it = |object: &Option<Arc<Object>>| object.as_ref().is_some_and(|it| Arc::ptr_eq(it, old));
    let mut seqs: Vec<u64> = window.seqs_at(old.revision().get()).collect();
    seqs.extend(replaced);
    window.replace(&seqs, |event| {
        let (previous, current) = (is_it(&event.previous), is_it(&event.current));
        let pick = |is_it, there: &Option<Arc<Object>>| if is_it { Some(new.clone()) } else { there.clone() };
        let renewed = Event {
            revision: event.revision,
            previous: pick(previous, &event.previous),
            current: pick(current, &event.current),
        };
        let bytes = renewed.cost_bytes();
        (previous || current).then(|| (Arc::new(renewed), bytes))
    });
}
