//! What waits for the writer thread: a bounded queue, filled by tasks, drained by one thread in batches.
//!
//! In: requests from any task, waiting for room at most [`QUEUE_WAIT_MS`]. Out: batches, in order, for the
//! writer.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::Key;
use forebay_backend::{Change, Expect, TxnError, TxnResponse};
use forebay_revlog::Log;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::limits::{BATCH_BYTES_MAX, BATCH_TXNS_MAX, QUEUE_KIB_MAX, QUEUE_WAIT_MS};
use crate::row::Stored;

/// A transaction that waits, its value already compressed.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) key: Key,
    pub(crate) expect: Expect,
    /// `None` deletes.
    pub(crate) put: Option<WaitingPut>,
    pub(crate) reply: oneshot::Sender<Result<TxnResponse, TxnError>>,
    /// Its room in the queue, given back when it is dropped.
    pub(crate) _room: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(crate) struct WaitingPut {
    pub(crate) value: Bytes,
    pub(crate) stored: Stored,
    pub(crate) ttl: Option<Duration>,
}

/// A log, what its reader says in it, a revision.
pub(crate) type Granted = (Log<Change>, Arc<AtomicU64>, u64);

/// A wish for the log of a prefix, made if there is none. Answered with the log and a revision that it
/// reaches back to and that is visible; the reader says in the number up to where it needs nothing any more.
#[derive(Debug)]
pub(crate) struct LogWish {
    pub(crate) prefix: Box<str>,
    pub(crate) reply: oneshot::Sender<Option<Granted>>,
}

/// What the writer thread is given at once.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) txns: Vec<Waiting>,
    pub(crate) wishes: Vec<LogWish>,
    /// Answered when everything that is due was done.
    pub(crate) settles: Vec<oneshot::Sender<()>>,
    /// Nothing more will come.
    pub(crate) closed: bool,
}

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    // One permit for each waiting transaction and each KiB of its value.
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct State {
    txns: VecDeque<Waiting>,
    wishes: Vec<LogWish>,
    settles: Vec<oneshot::Sender<()>>,
    closed: bool,
}

/// The queue takes no more: the store is closed.
#[derive(Debug)]
pub(crate) struct QueueClosed;

impl Queue {
    pub(crate) fn new() -> Queue {
        let room = Arc::new(Semaphore::new(QUEUE_KIB_MAX));
        Queue { state: Mutex::default(), filled: Condvar::new(), room }
    }

    /// Waits for room for a value of `bytes`. Cancel-safe: a dropped wait holds no room.
    ///
    /// # Errors
    /// [`TxnError::Busy`] when there was none in time, [`TxnError::Closed`].
    pub(crate) async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, TxnError> {
        let permits = 1 + (bytes / 1024) as u32;
        let room = self.room.clone();
        if let Ok(permit) = room.clone().try_acquire_many_owned(permits) {
            return Ok(permit);
        }
        let wait = Duration::from_millis(QUEUE_WAIT_MS);
        match tokio::time::timeout(wait, room.acquire_many_owned(permits)).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(TxnError::Closed),
            Err(_) => Err(TxnError::Busy),
        }
    }

    pub(crate) fn push_txn(&self, txn: Waiting) -> Result<(), QueueClosed> {
        self.push(|state| state.txns.push_back(txn))
    }

    pub(crate) fn push_wish(&self, wish: LogWish) -> Result<(), QueueClosed> {
        self.push(|state| state.wishes.push(wish))
    }

    pub(crate) fn push_settle(&self, settle: oneshot::Sender<()>) -> Result<(), QueueClosed> {
        self.push(|state| state.settles.push(settle))
    }

    fn push(&self, put: impl FnOnce(&mut State)) -> Result<(), QueueClosed> {
        let mut state = self.lock();
        if state.closed {
            return Err(QueueClosed);
        }
        put(&mut state);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Takes no more from now on; what waits is still drained.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room.close();
        self.filled.notify_one();
    }

    /// Closes, and drops what waits.
    pub(crate) fn abandon(&self) {
        self.close();
        let waiting = std::mem::take(&mut *self.lock());
        self.lock().closed = true;
        drop(waiting);
    }

    /// Takes what waits, within the limits of a batch; waits for something at most `wait`, or without end.
    pub(crate) fn take(&self, wait: Option<Duration>) -> Taken {
        let mut state = self.lock();
        while state.is_empty() && !state.closed {
            state = match wait {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => {
                    let waited =
                        self.filled.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
                    if waited.1.timed_out() {
                        return waited.0.into_batch();
                    }
                    waited.0
                }
            };
        }
        state.into_batch()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.txns.is_empty() && self.wishes.is_empty() && self.settles.is_empty()
    }
}

trait IntoBatch {
    fn into_batch(self) -> Taken;
}

impl IntoBatch for MutexGuard<'_, State> {
    fn into_batch(mut self) -> Taken {
        let (mut count, mut bytes) = (0, 0);
        for txn in self.txns.iter().take(BATCH_TXNS_MAX) {
            bytes += txn.put.as_ref().map_or(0, |put| put.value.len());
            if count > 0 && bytes > BATCH_BYTES_MAX {
                break;
            }
            count += 1;
        }
        let txns: Vec<_> = self.txns.drain(..count).collect();
        // Whoever waits for what is due waits for what was asked before, too.
        let settles = if self.txns.is_empty() { std::mem::take(&mut self.settles) } else { Vec::new() };
        let closed = self.closed && self.txns.is_empty();
        Taken { txns, wishes: std::mem::take(&mut self.wishes), settles, closed }
    }
}
