//! When keys expire. The writer thread owns it and commits what is due as deletes.
//!
//! In: puts with a time to live, at commit and at start. Out: the keys that are due and still have the value
//! whose time has come. A put or a delete that comes first leaves an entry that no longer counts; such
//! entries are skipped when they come up, and dropped together when they are too many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use forebay_apimachinery::Key;

use crate::index::{Index, Version};
use crate::limits::EXPIRY_STALE_MAX;

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Expiry {
    // (unix ms, revision that put the value, key), soonest first
    heap: BinaryHeap<Reverse<(u64, u64, Key)>>,
    // Entries at which those that no longer count are dropped.
    sift_at: usize,
}

impl Expiry {
    pub(crate) fn new() -> Expiry {
        Expiry { heap: BinaryHeap::new(), sift_at: EXPIRY_STALE_MAX }
    }

    /// `key`, put at `revision`, expires at `at_ms`.
    pub(crate) fn add(&mut self, at_ms: u64, revision: u64, key: Key) {
        self.heap.push(Reverse((at_ms, revision, key)));
    }

    /// When the next key may be due, unix ms.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ms, ..))| *at_ms)
    }

    /// Takes out the keys that are due at `now_ms`, at most `max`.
    pub(crate) fn take_due(&mut self, now_ms: u64, max: usize, index: &Index) -> Vec<Key> {
        let mut due = Vec::new();
        while due.len() < max && self.next_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            let Some(Reverse((_, revision, key))) = self.heap.pop() else { break };
            if index.newest(key.as_str()) == Some(Version::new(revision, true)) {
                due.push(key);
            }
        }
        due
    }

    /// Drops entries that no longer count, when there may be as many of them as of the others.
    pub(crate) fn sift(&mut self, index: &Index) {
        if self.heap.len() < self.sift_at {
            return;
        }
        self.heap.retain(|Reverse((_, revision, key))| {
            index.newest(key.as_str()) == Some(Version::new(*revision, true))
        });
        self.heap.shrink_to(self.heap.len() * 2);
        self.sift_at = self.heap.len() * 2 + EXPIRY_STALE_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(keys: Vec<Key>) -> Vec<String> {
        keys.iter().map(Key::to_string).collect()
    }

    #[test]
    fn only_the_value_that_was_put_with_it_expires() {
        let (mut index, mut expiry) = (Index::default(), Expiry::new());
        for (revision, key) in [(2, "/a"), (3, "/b"), (4, "/c"), (5, "/d")] {
            index.learn(Key::new(key), Version::new(revision, true));
            expiry.add(100 + revision, revision, Key::new(key));
        }
        index.learn(Key::new("/b"), Version::new(6, true));
        index.learn(Key::new("/c"), Version::new(7, false));
        assert_eq!(expiry.next_ms(), Some(102));
        assert_eq!(names(expiry.take_due(101, 9, &index)), [""; 0]);
        assert_eq!(names(expiry.take_due(104, 9, &index)), ["/a"]);
        assert_eq!(names(expiry.take_due(200, 9, &index)), ["/d"]);
        assert_eq!(expiry.next_ms(), None);
    }

    #[test]
    fn no_more_than_asked_for_are_taken_at_once() {
        let (mut index, mut expiry) = (Index::default(), Expiry::new());
        for revision in 2..7 {
            index.learn(Key::new(&format!("/{revision}")), Version::new(revision, true));
            expiry.add(100, revision, Key::new(&format!("/{revision}")));
        }
        assert_eq!(names(expiry.take_due(100, 3, &index)), ["/2", "/3", "/4"]);
        assert_eq!(names(expiry.take_due(100, 3, &index)), ["/5", "/6"]);
    }

    #[test]
    fn entries_that_no_longer_count_do_not_pile_up() {
        let (mut index, mut expiry) = (Index::default(), Expiry::new());
        for revision in 2..3 * EXPIRY_STALE_MAX as u64 {
            index.learn(Key::new("/busy"), Version::new(revision, true));
            expiry.add(1_000_000, revision, Key::new("/busy"));
            expiry.sift(&index);
            assert!(expiry.heap.len() <= EXPIRY_STALE_MAX + 2);
        }
        assert_eq!(names(expiry.take_due(2_000_000, 9, &index)), ["/busy"]);
    }
}
