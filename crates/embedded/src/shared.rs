//! What the writer thread publishes and every reader sees.
//!
//! Owner: the writer thread writes; readers take the view's lock for a few lines and read rows outside of it.
//! Two rules keep a version that was found in the index readable: a put enters the index after its row is
//! durable, together with a table that has it; a dead version leaves the index before its row is deleted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::ReadError;
use tokio::sync::Semaphore;

use crate::error::StoreError;
use crate::guard::Guard;
use crate::index::Index;
use crate::limits::READERS_MAX;
use crate::queue::Queue;
use crate::row::{self, RowPut};
use crate::store::Rows;

/// See the module's doc.
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    /// Held by each read that may wait for the disk.
    pub(crate) readers: Arc<Semaphore>,
    view: RwLock<View>,
    // The newest revision that is durable and in every log.
    visible: AtomicU64,
    // The visible revision, or the one that is being put into the logs now.
    told: AtomicU64,
    // History up to here is given up.
    compacted: AtomicU64,
    pub(crate) live_bytes: AtomicU64,
    file_bytes: AtomicU64,
    // Why nothing is written any more, once nothing is.
    failure: Mutex<Option<String>>,
}

pub(crate) struct View {
    pub(crate) index: Index,
    /// The rows of every version in the index; `None` when the store is closed.
    pub(crate) rows: Option<Arc<Rows>>,
}

impl Shared {
    pub(crate) fn new(
        guard: &Guard,
        index: Index,
        rows: Rows,
        (visible, compacted): (u64, u64),
        live_bytes: u64,
    ) -> Shared {
        Shared {
            queue: Queue::new(),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
            view: RwLock::new(View { index, rows: Some(Arc::new(rows)) }),
            visible: AtomicU64::new(visible),
            told: AtomicU64::new(visible),
            compacted: AtomicU64::new(compacted),
            live_bytes: AtomicU64::new(live_bytes),
            file_bytes: AtomicU64::new(guard.used_bytes()),
            failure: Mutex::new(None),
        }
    }

    pub(crate) fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the writer thread only.
    pub(crate) fn view_mut(&self) -> RwLockWriteGuard<'_, View> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// No log has told of a later revision than this.
    pub(crate) fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    /// The logs are about to tell of `revision`. For the writer thread only.
    pub(crate) fn set_told(&self, revision: u64) {
        self.told.store(revision, Ordering::Release);
    }

    /// For the writer thread only.
    pub(crate) fn set_visible(&self, revision: u64) {
        let before = self.visible.swap(revision, Ordering::AcqRel);
        assert!(before <= revision, "revision {revision} after {before}");
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted.load(Ordering::Acquire)
    }

    /// For the writer thread only.
    pub(crate) fn set_compacted(&self, revision: u64) {
        self.compacted.store(revision, Ordering::Release);
    }

    /// How much space the file takes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// For the writer thread only.
    pub(crate) fn set_file_bytes(&self, guard: &Guard) {
        self.file_bytes.store(guard.used_bytes(), Ordering::Relaxed);
    }

    /// Why nothing is written any more.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on nothing is written; the first cause stays.
    pub(crate) fn fail(&self, cause: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
    }

    /// The value of `key` now, and the revision that put it.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<(u64, Bytes)>, ReadError> {
        let (revision, rows) = {
            let view = self.view();
            let rows = view.rows.clone().ok_or(ReadError::Closed)?;
            match view.index.newest(key.as_str()).filter(|newest| newest.is_put()) {
                Some(newest) => (newest.revision(), rows),
                None => return Ok(None),
            }
        };
        Ok(Some((revision, value(&rows, revision, key)?)))
    }

    /// The state as of `at`, or now: the revision that was read, and up to `limit` keys below `prefix`, in
    /// order, with the revisions of their values; and whether more follow.
    pub(crate) fn walk(
        &self,
        prefix: &str,
        start_after: Option<&Key>,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<Walked, ReadError> {
        loop {
            let revision = self.readable(at)?;
            let mut walked = Walked { revision, items: Vec::new(), more: false, rows: None };
            let mut after = start_after.cloned();
            loop {
                let view = self.view();
                walked.rows = Some(view.rows.clone().ok_or(ReadError::Closed)?);
                let want = limit.saturating_add(1) - walked.items.len();
                let looks = crate::limits::INDEX_KEYS_A_HOLD;
                let found = view.index.walk(prefix, after.as_ref(), revision, want, looks);
                drop(view);
                walked.items.extend(found.items);
                after = found.next;
                if after.is_none() || walked.items.len() > limit {
                    break;
                }
            }
            // What was compacted meanwhile may be missing; the index forgets it only after saying so.
            if self.compacted() <= revision {
                walked.more = walked.items.len() > limit;
                walked.items.truncate(limit);
                return Ok(walked);
            }
        }
    }

    /// How many keys below `prefix` come after `start_after` as of `at`, or now. O(keys), a piece under each
    /// hold of the lock, without reading one value.
    pub(crate) fn count(
        &self,
        prefix: &str,
        start_after: Option<Key>,
        at: Option<Revision>,
    ) -> Result<u64, ReadError> {
        loop {
            let revision = self.readable(at)?;
            let (mut count, mut after) = (0, start_after.clone());
            loop {
                let view = self.view();
                let looks = crate::limits::INDEX_KEYS_A_HOLD;
                let (found, next) = view.index.count(prefix, after.as_ref(), revision, looks);
                count += found;
                after = next;
                if after.is_none() {
                    break;
                }
            }
            if self.compacted() <= revision {
                return Ok(count);
            }
        }
    }

    /// The revision to read at, if it can be.
    fn readable(&self, at: Option<Revision>) -> Result<u64, ReadError> {
        let current = self.visible();
        let Some(at) = at else { return Ok(current) };
        let oldest = self.compacted();
        if at.get() > current {
            return Err(ReadError::Future { asked: at, current: Revision::from_log(current) });
        }
        if at.get() < oldest {
            return Err(ReadError::Compacted { asked: at, oldest: Revision::from_log(oldest) });
        }
        Ok(at.get())
    }
}

/// What [`Shared::walk`] found.
pub(crate) struct Walked {
    pub(crate) revision: u64,
    /// (key, revision that put its value)
    pub(crate) items: Vec<(Key, u64)>,
    pub(crate) more: bool,
    /// The table that has the rows of `items`.
    pub(crate) rows: Option<Arc<Rows>>,
}

/// The value that `key` was put at `revision`.
pub(crate) fn value(rows: &Rows, revision: u64, key: &Key) -> Result<Bytes, ReadError> {
    read_value(rows, revision, key).map_err(|error| failed(key, &error))
}

/// The same, and when it expires, unix ms.
pub(crate) fn expiring(rows: &Rows, revision: u64, key: &Key) -> Result<(Bytes, Option<u64>), ReadError> {
    read_put(rows, revision, key, |put| Ok((put.value()?, put.expires_ms)))
        .map_err(|error| failed(key, &error))
}

fn read_value(rows: &Rows, revision: u64, key: &Key) -> Result<Bytes, StoreError> {
    read_put(rows, revision, key, |put| Ok(put.value()?))
}

fn read_put<T>(
    rows: &Rows,
    revision: u64,
    key: &Key,
    read: impl FnOnce(RowPut<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let row = rows.get_owned(revision)?.ok_or(StoreError::Missing { revision })?;
    let changes = row::decode(revision, row.value())?;
    let change = changes.iter().find(|change| change.key == key.as_str());
    read(change.and_then(|change| change.put).ok_or(StoreError::Missing { revision })?)
}

fn failed(key: &Key, error: &StoreError) -> ReadError {
    ReadError::Failed { cause: format!("{key}: {error}") }
}
