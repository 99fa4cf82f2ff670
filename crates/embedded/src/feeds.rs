//! The logs of changes, one for each prefix that is fed. The writer thread owns them.
//!
//! In: the changes of each batch, once they are durable. Out: logs that cursors read. Every log whose prefix
//! the key begins with gets the change; a prefix ends with `/`, so a key has as many as it has slashes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use forebay_apimachinery::Revision;
use forebay_backend::Change;
use forebay_revlog::{Limits, Log, Writer};

use crate::limits::{LOG_AGE_MS_MAX, LOG_BYTES_MAX, LOG_ITEMS_MAX, LOG_LOOK_MS, LOGS_MAX};
use crate::row::NewChange;

/// What each change costs beside its key and value.
const OVERHEAD_BYTES: usize = 96;

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Feeds {
    limits: Limits,
    // prefix -> its log; ordered, so that a simulation wakes readers in the same order again
    logs: BTreeMap<Box<str>, Feed>,
    // When it is looked next for what need not be held, in the writer's ms, and how long after the last look
    // that is.
    stale_ms: Option<u64>,
    look_ms: u64,
}

#[derive(Debug)]
struct Feed {
    writer: Writer<Change>,
    // What the current batch adds.
    batch: Vec<(u64, Change, usize)>,
    // Up to which revision each reader has taken everything; 0 until it says so.
    readers: Vec<Weak<AtomicU64>>,
}

impl Feeds {
    pub(crate) fn new() -> Feeds {
        let limits =
            Limits { items_max: LOG_ITEMS_MAX, bytes_max: LOG_BYTES_MAX, age_ms_max: LOG_AGE_MS_MAX };
        Feeds { limits, logs: BTreeMap::new(), stale_ms: None, look_ms: LOG_LOOK_MS }
    }

    /// The log of `prefix`; a new one begins after `revision`, the current one. Nothing later is given back
    /// before its reader has said in the number that it was taken, or has dropped it. `None` when there are
    /// too many.
    pub(crate) fn log(&mut self, prefix: Box<str>, revision: u64) -> Option<(Log<Change>, Arc<AtomicU64>)> {
        if !self.logs.contains_key(&prefix) && self.logs.len() >= LOGS_MAX {
            return None;
        }
        let limits = self.limits;
        let new = || Feed { writer: Writer::new(revision, limits), batch: Vec::new(), readers: Vec::new() };
        let feed = self.logs.entry(prefix).or_insert_with(new);
        let taken = Arc::new(AtomicU64::new(0));
        feed.readers.retain(|reader| reader.strong_count() > 0);
        feed.readers.push(Arc::downgrade(&taken));
        Some((feed.writer.log(), taken))
    }

    /// Appends the changes of a batch that ends at `revision`, and announces it to every log.
    pub(crate) fn publish(&mut self, changes: &[(u64, NewChange)], revision: u64, now_ms: u64) {
        for (revision, change) in changes {
            self.route(*revision, change);
        }
        for feed in self.logs.values_mut() {
            if !feed.batch.is_empty() {
                feed.release();
                feed.writer.append(feed.batch.drain(..), now_ms);
                self.look_ms = LOG_LOOK_MS;
                let look_ms = now_ms.saturating_add(LOG_LOOK_MS);
                self.stale_ms = Some(self.stale_ms.map_or(look_ms, |stale_ms| stale_ms.min(look_ms)));
            }
            feed.writer.announce(revision);
        }
    }

    /// When [`Feeds::evict`] has something to do.
    pub(crate) fn stale_ms(&self) -> Option<u64> {
        self.stale_ms
    }

    /// Gives back what every reader has taken, and what has grown old.
    pub(crate) fn evict(&mut self, now_ms: u64) {
        if self.stale_ms.is_none_or(|stale_ms| stale_ms > now_ms) {
            return;
        }
        self.stale_ms = None;
        self.look_ms = (self.look_ms * 2).min(LOG_AGE_MS_MAX + 1);
        for feed in self.logs.values_mut() {
            feed.release();
            feed.writer.evict(now_ms);
            feed.batch = Vec::new();
            // The newest change always stays.
            if feed.writer.usage().items > 1 {
                self.stale_ms = Some(now_ms.saturating_add(self.look_ms));
            }
        }
    }

    fn route(&mut self, revision: u64, change: &NewChange) {
        let key = change.key.as_str();
        for (slash, _) in key.match_indices('/') {
            let Some(feed) = self.logs.get_mut(&key[..=slash]) else { continue };
            let value = change.put.as_ref().map(|put| put.value.clone());
            let bytes = OVERHEAD_BYTES + key.len() + value.as_ref().map_or(0, bytes::Bytes::len);
            let change = Change { key: change.key.clone(), revision: Revision::from_log(revision), value };
            feed.batch.push((revision, change, bytes));
        }
    }
}

impl Feed {
    /// Gives back what every reader has taken: who wants it again reads it from disk.
    fn release(&mut self) {
        let taken = self.readers.iter().filter_map(Weak::upgrade).map(|taken| taken.load(Ordering::Acquire));
        self.writer.release(taken.min().unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Key;
    use forebay_revlog::Step;

    use super::*;

    #[test]
    fn what_every_reader_has_taken_is_given_back() {
        let mut feeds = Feeds::new();
        let change = |revision: u64| (revision, change("/a/x"));
        let (log, slow) = feeds.log("/a/".into(), 1).expect("room");
        let (_, quick) = feeds.log("/a/".into(), 1).expect("room");
        feeds.publish(&[change(2), change(3), change(4)], 4, 0);
        assert_eq!(feeds.stale_ms(), Some(LOG_LOOK_MS));
        quick.store(4, Ordering::Release);
        feeds.evict(LOG_LOOK_MS);
        assert_eq!(log.usage().items, 3, "the other has taken nothing");
        assert_eq!(feeds.stale_ms(), Some(3 * LOG_LOOK_MS));
        slow.store(2, Ordering::Release);
        feeds.evict(3 * LOG_LOOK_MS);
        assert_eq!((log.usage().items, log.oldest()), (2, 2));
        drop(slow);
        feeds.evict(7 * LOG_LOOK_MS);
        assert_eq!((log.usage().items, log.oldest(), feeds.stale_ms()), (1, 3, None), "it is gone");
        assert_eq!(log.usage().pressed_out, 0);
        feeds.publish(&[change(5)], 5, 8 * LOG_LOOK_MS);
        feeds.publish(&[change(6)], 6, 8 * LOG_LOOK_MS);
        let mut cursor = log.cursor(4).expect("the quick one is at 4");
        assert!(matches!(cursor.try_next(), Some(Step::Item(5, _))));
    }

    fn change(key: &str) -> NewChange {
        NewChange { key: Key::new(key), put: None }
    }
}
