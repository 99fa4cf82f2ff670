//! Which key is worked on next: the rules, without tasks and without a clock.
//!
//! In: keys, and the time. Out: the key to work on. Owned by one caller (`&mut`). Never: waits, asks for the
//! time, or gives a key to a second worker.
//!
//! There is one entry a key, however often and in how many ways it was added: about 100 B and at most three
//! copies of the key (in the table, among those ready, among those due). The bound is therefore the number of
//! keys there are, which is the number of objects for whoever adds the keys of a cache.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use forebay_rt::{Duration, Instant};

use super::limits;
use super::metrics::{Metrics, Spans};

/// The higher, the sooner. A key of a lower one waits for as long as there are keys of a higher one.
pub type Priority = i32;

/// Keys to work on.
///
/// - A key that is added twice before it is worked on is worked on once, with the higher priority, in the
///   place of the first.
/// - A key that is added while it is worked on is worked on once more afterwards, and never by two at a time.
/// - What is due later has a time besides: a key that is added now is worked on now and once more at that
///   time. Of two times the sooner one counts.
/// - Once it is shut down nothing is added any more, and what is due later is forgotten; what is ready is
///   still given out.
///
/// Source: client-go `util/workqueue/queue.go`, `delaying_queue.go`; priorities: controller-runtime
/// `pkg/controller/priorityqueue`.
#[derive(Debug)]
pub struct Queue<K> {
    // key -> its entry; what there is nothing to do for has none
    entries: HashMap<K, Entry>,
    // By priority, then by arrival; exactly the keys that are Ready.
    ready: BTreeMap<(Reverse<Priority>, u64), K>,
    // By time, then by arrival; exactly the keys that have a Due.
    due: BTreeMap<(Instant, u64), K>,
    // Since when, and which; exactly the keys that are Busy, as many as there are workers.
    busy: BTreeSet<(Instant, u64)>,
    // Of those the ones that were added again.
    again: usize,
    // Arrivals so far.
    arrivals: u64,
    is_shut: bool,
    adds: u64,
    retries: u64,
    panics: u64,
    latency: Spans,
    work: Spans,
}

/// What there is for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// A key, out until [`Queue::done`], and the priority it was added with.
    Key(K, Priority),
    /// Nothing until then, or until something is added.
    Later(Instant),
    /// Nothing until something is added.
    Nothing,
    /// Nothing any more.
    Shut,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    due: Option<Due>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Only due.
    Idle,
    Ready {
        added: Added,
        number: u64,
    },
    Busy {
        since: Instant,
        number: u64,
        again: Option<Added>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Added {
    priority: Priority,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    number: u64,
    priority: Priority,
}

impl<K> Default for Queue<K> {
    fn default() -> Queue<K> {
        Queue {
            entries: HashMap::new(),
            ready: BTreeMap::new(),
            due: BTreeMap::new(),
            busy: BTreeSet::new(),
            again: 0,
            arrivals: 0,
            is_shut: false,
            adds: 0,
            retries: 0,
            panics: 0,
            latency: Spans::default(),
            work: Spans::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new() -> Queue<K> {
        Queue::default()
    }

    /// There is work for `key`, now.
    pub fn add(&mut self, key: K, priority: Priority, now: Instant) {
        if !self.is_shut {
            self.put(key, Added { priority, at: now });
        }
    }

    /// There is work for `key` at `at`.
    ///
    /// - `at`: not after `now` is the same as [`Queue::add`].
    pub fn add_at(&mut self, key: K, priority: Priority, at: Instant, now: Instant) {
        if self.is_shut {
            return;
        }
        self.retries += 1;
        if at <= now {
            return self.put(key, Added { priority, at: now });
        }
        let number = self.arrive();
        let entry = self.entries.entry(key.clone()).or_insert(Entry { place: Place::Idle, due: None });
        let mut due = Due { at, number, priority };
        if let Some(before) = entry.due {
            due.priority = before.priority.max(priority);
            if before.at <= at {
                (due.at, due.number) = (before.at, before.number);
            }
            self.due.remove(&(before.at, before.number));
        }
        entry.due = Some(due);
        self.due.insert((due.at, due.number), key);
    }

    /// What there is to work on at `now`.
    pub fn next(&mut self, now: Instant) -> Next<K> {
        self.take_in(now);
        let Some((_, key)) = self.ready.pop_first() else {
            return match self.next_due() {
                Some(at) => Next::Later(at),
                None if self.is_shut => Next::Shut,
                None => Next::Nothing,
            };
        };
        let number = self.arrive();
        let place = self.place_of(&key);
        let Place::Ready { added, .. } =
            std::mem::replace(place, Place::Busy { since: now, number, again: None })
        else {
            unreachable!("what is among the ready is ready");
        };
        self.busy.insert((now, number));
        self.latency.note(now.saturating_duration_since(added.at));
        Next::Key(key, added.priority)
    }

    /// Takes back a key that [`Queue::next`] gave out; nothing happens with any other.
    pub fn done(&mut self, key: &K, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Place::Busy { since, number, again } = entry.place else { return };
        entry.place = Place::Idle;
        let is_left = entry.due.is_none() && again.is_none();
        self.busy.remove(&(since, number));
        self.work.note(now.saturating_duration_since(since));
        if let Some(added) = again {
            self.again -= 1;
            self.line_up(key.clone(), added);
        }
        if is_left {
            self.entries.remove(key);
            self.give_room_back();
        }
    }

    /// When the next key is due that was to be added later.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Keys that a worker would be given now.
    pub fn len(&mut self, now: Instant) -> usize {
        self.take_in(now);
        self.ready.len()
    }

    /// Whether there is nothing for a worker now.
    pub fn is_empty(&mut self, now: Instant) -> bool {
        self.len(now) == 0
    }

    /// Takes nothing in any more, and forgets what is due later.
    pub fn shut_down(&mut self) {
        self.is_shut = true;
        self.due.clear();
        self.entries.retain(|_, entry| {
            entry.due = None;
            !matches!(entry.place, Place::Idle)
        });
    }

    /// Whether it was shut down.
    pub fn is_shut(&self) -> bool {
        self.is_shut
    }

    /// Whether it was shut down and all that was ready then is done.
    pub fn is_drained(&self) -> bool {
        self.is_shut && self.ready.is_empty() && self.busy.is_empty()
    }

    /// Whether a worker would be given a key, of those known to be ready.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A worker's reconcile panicked.
    pub fn note_panic(&mut self) {
        self.panics += 1;
    }

    /// The numbers at `now`. Cost: O(keys that are worked on, and those that have become due).
    pub fn metrics(&mut self, now: Instant) -> Metrics {
        self.take_in(now);
        let since = |(since, _): &(Instant, u64)| now.saturating_duration_since(*since);
        Metrics {
            depth: self.ready.len() + self.again,
            ready: self.ready.len(),
            waiting: self.due.len(),
            busy: self.busy.len(),
            adds: self.adds,
            retries: self.retries,
            latency: self.latency.clone(),
            work: self.work.clone(),
            unfinished: self.busy.iter().map(since).sum(),
            longest_running: self.busy.first().map_or(Duration::ZERO, since),
            panics: self.panics,
        }
    }

    /// What has become due is added.
    fn take_in(&mut self, now: Instant) {
        while let Some(first) = self.due.first_entry().filter(|first| first.key().0 <= now) {
            let ((at, _), key) = first.remove_entry();
            let Some(due) = self.entries.get_mut(&key).and_then(|entry| entry.due.take()) else { continue };
            self.put(key, Added { priority: due.priority, at });
        }
    }

    fn put(&mut self, key: K, added: Added) {
        let entry = self.entries.entry(key.clone()).or_insert(Entry { place: Place::Idle, due: None });
        match &mut entry.place {
            Place::Idle => {
                self.adds += 1;
                self.line_up(key, added);
            }
            Place::Ready { added: before, number } if before.priority < added.priority => {
                let (place, number) = ((Reverse(before.priority), *number), *number);
                before.priority = added.priority;
                self.ready.remove(&place);
                self.ready.insert((Reverse(added.priority), number), key);
            }
            Place::Ready { .. } => {}
            Place::Busy { again: Some(before), .. } => before.priority = before.priority.max(added.priority),
            Place::Busy { again, .. } => {
                *again = Some(added);
                self.again += 1;
                self.adds += 1;
            }
        }
    }

    fn line_up(&mut self, key: K, added: Added) {
        let number = self.arrive();
        *self.place_of(&key) = Place::Ready { added, number };
        self.ready.insert((Reverse(added.priority), number), key);
    }

    fn place_of(&mut self, key: &K) -> &mut Place {
        &mut self.entries.get_mut(key).expect("what is lined up has an entry").place
    }

    fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    fn give_room_back(&mut self) {
        if self.entries.is_empty() {
            self.entries.shrink_to(limits::ROOM_KEPT);
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
