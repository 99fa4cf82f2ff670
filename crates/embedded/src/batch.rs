//! One batch: what became of each waiting transaction, and the rows to write. Pure: no IO, no clock.
//!
//! In: transactions in order, the index. Out: rows and changes at their revisions; replies, each with what it
//! must wait for. A transaction is compared against the index and what came before it in the batch.

use std::collections::HashMap;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Expect, TxnError, TxnResponse, Versioned};
use tokio::sync::oneshot;

use crate::index::Index;
use crate::queue::{Waiting, WaitingPut};
use crate::row::{self, NewChange, NewPut};

pub(crate) type Reply = oneshot::Sender<Result<TxnResponse, TxnError>>;

/// A refusal that may be answered at once: nothing of this batch led to it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) key: Key,
    /// The revision of the value that is there.
    pub(crate) revision: Option<u64>,
    pub(crate) reply: Reply,
}

/// What a batch writes, and what it answers when that is durable.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The revision of the newest row, or of the store when there is none.
    pub(crate) revision: u64,
    /// (revision, row), ascending.
    pub(crate) rows: Vec<(u64, Vec<u8>)>,
    /// (revision, change), in the order of the rows.
    pub(crate) changes: Vec<(u64, NewChange)>,
    pub(crate) replies: Vec<(Reply, TxnResponse)>,
    pub(crate) refusals: Vec<Refusal>,
    // key -> its newest change in `changes`
    newest: HashMap<Key, usize>,
}

impl Batch {
    /// An empty batch of a store that is at `revision`.
    pub(crate) fn new(revision: u64) -> Batch {
        Batch {
            revision,
            rows: Vec::new(),
            changes: Vec::new(),
            replies: Vec::new(),
            refusals: Vec::new(),
            newest: HashMap::new(),
        }
    }

    /// Deletes `keys`, whose time has come, at one revision.
    pub(crate) fn expire(&mut self, keys: Vec<Key>) {
        if !keys.is_empty() {
            self.write(keys.into_iter().map(|key| NewChange { key, put: None }).collect());
        }
    }

    /// Commits or refuses `txn`; `now_ms` is when a time to live begins.
    pub(crate) fn decide(&mut self, txn: Waiting, index: &Index, now_ms: u64) {
        let Waiting { key, expect, put, reply, _room } = txn;
        let pending = self.newest.get(&key).map(|at| &self.changes[*at]);
        let current = match pending {
            Some((revision, change)) => change.put.is_some().then_some(*revision),
            None => {
                index.newest(key.as_str()).filter(|newest| newest.is_put()).map(|newest| newest.revision())
            }
        };
        let holds = match expect {
            Expect::Absent => current.is_none(),
            Expect::At(revision) => current == Some(revision.get()),
        };
        if holds {
            self.write(vec![NewChange { key, put: put.map(|put| new_put(put, now_ms)) }]);
            self.replies.push((reply, TxnResponse::Committed(Revision::from_log(self.revision))));
        } else if let Some((revision, change)) = pending {
            let there = change.put.as_ref().map(|put| versioned(*revision, put.value.clone()));
            self.replies.push((reply, TxnResponse::Conflict(there)));
        } else {
            self.refusals.push(Refusal { key, revision: current, reply });
        }
    }

    fn write(&mut self, changes: Vec<NewChange>) {
        self.revision += 1;
        let mut row = Vec::new();
        row::encode(self.revision, &changes, &mut row);
        self.rows.push((self.revision, row));
        for change in changes {
            self.newest.insert(change.key.clone(), self.changes.len());
            self.changes.push((self.revision, change));
        }
    }
}

pub(crate) fn versioned(revision: u64, value: Bytes) -> Versioned {
    Versioned { revision: Revision::from_log(revision), value }
}

fn new_put(put: WaitingPut, now_ms: u64) -> NewPut {
    let WaitingPut { value, stored, ttl } = put;
    let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    NewPut { value, stored, expires_ms: ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms)) }
}
