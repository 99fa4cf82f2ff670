//! The logs of changes, one for each prefix that is fed. The writer thread owns them.
//!
//! In: the changes of each batch, once they are durable. Out: logs that cursors read. Every log whose prefix the key
//! begins with gets the change; a prefix ends with `/`, so a key has as many as it has slashes.

use std::collections::BTreeMap;

use forebay_apimachinery::Revision;
use forebay_backend::Change;
use forebay_revlog::{Limits, Log, Writer};

use crate::limits::{LOG_AGE_MS_MAX, LOG_BYTES_MAX, LOG_ITEMS_MAX, LOGS_MAX};
use crate::row::NewChange;

/// What each change costs beside its key and value.
const OVERHEAD_BYTES: usize = 96;

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Feeds {
    limits: Limits,
    // prefix -> its log; ordered, so that a simulation wakes readers in the same order again
    logs: BTreeMap<Box<str>, Feed>,
    // When the oldest change that may be held comes of age, in the writer's ms.
    stale_ms: Option<u64>,
}

#[derive(Debug)]
struct Feed {
    writer: Writer<Change>,
    // What the current batch adds.
    batch: Vec<(u64, Change, usize)>,
}

impl Feeds {
    pub(crate) fn new() -> Feeds {
        let limits =
            Limits { items_max: LOG_ITEMS_MAX, bytes_max: LOG_BYTES_MAX, age_ms_max: LOG_AGE_MS_MAX };
        Feeds { limits, logs: BTreeMap::new(), stale_ms: None }
    }

    /// The log of `prefix`; a new one begins after `revision`, the current one. `None` when there are too many.
    pub(crate) fn log(&mut self, prefix: Box<str>, revision: u64) -> Option<Log<Change>> {
        if !self.logs.contains_key(&prefix) && self.logs.len() >= LOGS_MAX {
            return None;
        }
        let limits = self.limits;
        let new = || Feed { writer: Writer::new(revision, limits), batch: Vec::new() };
        Some(self.logs.entry(prefix).or_insert_with(new).writer.log())
    }

    /// Appends the changes of a batch that ends at `revision`, and announces it to every log.
    pub(crate) fn publish(&mut self, changes: &[(u64, NewChange)], revision: u64, now_ms: u64) {
        for (revision, change) in changes {
            self.route(*revision, change);
        }
        for feed in self.logs.values_mut() {
            if !feed.batch.is_empty() {
                feed.writer.append(feed.batch.drain(..), now_ms);
                self.stale_ms.get_or_insert(now_ms.saturating_add(LOG_AGE_MS_MAX + 1));
            }
            feed.writer.announce(revision);
        }
    }

    /// When [`Feeds::evict`] has something to do.
    pub(crate) fn stale_ms(&self) -> Option<u64> {
        self.stale_ms
    }

    /// Gives back what has grown old.
    pub(crate) fn evict(&mut self, now_ms: u64) {
        if self.stale_ms.is_none_or(|stale_ms| stale_ms > now_ms) {
            return;
        }
        self.stale_ms = None;
        for feed in self.logs.values_mut() {
            feed.writer.evict(now_ms);
            feed.batch = Vec::new();
            // The newest change always stays.
            if feed.writer.log().usage().items > 1 {
                self.stale_ms = Some(now_ms.saturating_add(LOG_AGE_MS_MAX + 1));
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
