//! What is asked of a store and what it answers: changes, transactions, pages.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};

/// A boxed future, so that the contract can be a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One key at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    pub revision: Revision,
    /// The value that was put; `None` when the key was deleted or has expired.
    pub value: Option<Bytes>,
}

/// A key's value and the revision that put it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub revision: Revision,
    pub value: Bytes,
}

/// One compare-and-set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    pub key: Key,
    pub expect: Expect,
    pub op: Op,
}

/// What must hold for a [`Txn`] to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key has no value.
    Absent,
    /// The key's value was put at this revision.
    At(Revision),
}

/// What a [`Txn`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets the value; after `ttl` the key is deleted by the store. A put without one clears an earlier one.
    Put { value: Bytes, ttl: Option<Duration> },
    /// Deletes the key.
    Delete,
}

/// What became of a [`Txn`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxnResponse {
    /// It is durable, at this revision.
    Committed(Revision),
    /// The expectation did not hold; this is what is there instead. That, too, is durable.
    Conflict(Option<Versioned>),
}

/// A page of keys below a prefix, in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Keys begin with this; it ends with `/`.
    pub prefix: Key,
    /// Keys come after this one; `None` begins at the first.
    pub start_after: Option<Key>,
    /// Keys at most; at least 1.
    pub limit: usize,
    /// The state as of this revision; `None` is the current one.
    pub at: Option<Revision>,
}

/// What a [`Range`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangePage {
    /// The revision of the state that was read.
    pub revision: Revision,
    pub items: Vec<(Key, Versioned)>,
    /// Whether keys follow the last one.
    pub more: bool,
}

impl Range {
    /// Leaves what comes after `page`, of the same state.
    pub fn pass(&mut self, page: &RangePage) {
        self.pass_to(page.revision, page.items.last().map(|(last, _)| last.clone()));
    }

    /// Leaves what comes after `last` in the state at `revision`; all of what it had, when nothing was found.
    /// A page that has more has a key, though the store may have others that are none of ours.
    pub fn pass_to(&mut self, revision: Revision, last: Option<Key>) {
        self.at = Some(revision);
        if last.is_some() {
            self.start_after = last;
        }
    }
}
