//! The history that a feed is given before its log begins: rows of a prefix, page by page, in revision order.
//!
//! In: the index, rows. Out: changes. A page waits for the disk: whoever takes from a feed that begins with
//! history does so where that is allowed.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backlog, Change, FeedError};

use crate::error::StoreError;
use crate::limits::{BACKLOG_BYTES_MAX, BACKLOG_ROWS_MAX, INDEX_KEYS_A_HOLD};
use crate::row;
use crate::shared::Shared;
use crate::store::Rows;

/// See the module's doc.
pub(crate) struct History {
    shared: Arc<Shared>,
    prefix: Box<str>,
    // Revisions still to be read, newest first.
    revisions: Vec<u64>,
}

impl History {
    /// Every change below `prefix` in `(after, upto]`; `None` when there is none.
    ///
    /// # Errors
    /// [`FeedError::Compacted`] when some of them are gone.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        prefix: Box<str>,
        (after, upto): (u64, u64),
    ) -> Result<Option<History>, FeedError> {
        let (mut revisions, mut from) = (Vec::new(), None::<Key>);
        loop {
            let view = shared.view();
            from = view.index.walk_history(
                &prefix,
                from.as_ref(),
                (after, upto),
                INDEX_KEYS_A_HOLD,
                &mut revisions,
            );
            if from.is_none() {
                break;
            }
        }
        // The index forgets only what was given up before; so if it is still there now, nothing was missed.
        still_kept(shared, after)?;
        revisions.sort_unstable_by(|a, b| b.cmp(a));
        revisions.dedup();
        let history = History { shared: shared.clone(), prefix, revisions };
        Ok((!history.revisions.is_empty()).then_some(history))
    }

    fn read(&mut self, rows: &Rows) -> Result<Vec<Change>, StoreError> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for _ in 0..BACKLOG_ROWS_MAX {
            if bytes >= BACKLOG_BYTES_MAX {
                break;
            }
            let Some(revision) = self.revisions.pop() else { break };
            let row = rows.get_owned(revision)?.ok_or(StoreError::Missing { revision })?;
            for change in row::decode(revision, row.value())? {
                if !change.key.starts_with(&*self.prefix) {
                    continue;
                }
                let value = change.put.map(|put| put.value()).transpose()?;
                bytes += value.as_ref().map_or(0, bytes::Bytes::len);
                let revision = Revision::from_log(revision);
                changes.push(Change { key: Key::new(change.key), revision, value });
            }
        }
        Ok(changes)
    }
}

impl Backlog for History {
    fn page(&mut self) -> Result<Vec<Change>, FeedError> {
        let Some(next) = self.revisions.last().copied() else { return Ok(Vec::new()) };
        let rows = self.shared.view().rows.clone().ok_or(FeedError::Closed)?;
        // `rows` has all that was kept when it was taken, so only what was given up before that can be
        // missing.
        still_kept(&self.shared, next - 1)?;
        self.read(&rows).map_err(|error| FeedError::Failed { cause: error.to_string() })
    }
}

/// Whether everything after `after` is kept.
fn still_kept(shared: &Shared, after: u64) -> Result<(), FeedError> {
    let oldest = shared.compacted();
    if after < oldest {
        return Err(FeedError::Compacted { oldest: Revision::from_log(oldest) });
    }
    Ok(())
}
