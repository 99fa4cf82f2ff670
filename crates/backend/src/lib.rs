//! The storage contract: what the server asks of a store, whichever it is.
//!
//! In: [`Txn`], [`Range`], a prefix to feed from. Out: [`Outcome`], [`RangePage`], a [`Feed`] of [`Change`]s, and a
//! barrier that proves freshness. Engines: `embedded`, `etcd`, later `upstream`. Never: names an engine.
//!
//! What every engine promises:
//! - One commit counter for the whole store. A commit's revision is above every earlier one, restarts included.
//! - **Durable, then visible, then acknowledged**: a reply means that the commit survives a crash, and a feed that is
//!   hastened has it, soon after the reply or before.
//! - A store may be put back to an earlier state only while nobody reads it, or it ends its feeds: whoever asks sees a
//!   barrier below what it had reached, and forgets everything.
//! - A feed yields every change of its prefix once, in order, whole revisions at a time, or says that it cannot.

mod error;
mod feed;
mod layer;
mod pages;
mod told;

pub use error::{FeedError, ReadError, TxnError};
pub use feed::{Backlog, Feed, FeedStep, Follow};
pub use layer::Layer;
pub use pages::Pages;
pub use told::{GiveWay, Rewrite, Tell, Told};

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
pub enum Outcome {
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

/// How large the store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes on disk.
    pub file_bytes: u64,
    /// Bytes on disk that hold live keys or kept history.
    pub live_bytes: u64,
    /// Keys with a value; 0 where nobody counts them.
    pub keys: u64,
}

/// What a store that is elsewhere was sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests, other than those of open feeds.
    pub requests: u64,
    /// Quorum reads that were tried, each for all who waited for it: for [`Backend::barrier`], and the store's own.
    pub barriers: u64,
    /// Feeds that were opened again.
    pub reopened: u64,
}

/// Keys read at a time by an engine that has no other way to count them.
const COUNT_PAGE: usize = 500;

/// A store. Shared by reference; every method may be called from any task.
pub trait Backend: Send + Sync + 'static {
    /// Commits or refuses `txn`. Not cancel-safe in one sense: a dropped call may still commit.
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, TxnError>>;

    /// Reads one key as of now, at quorum.
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>>;

    /// Reads a page.
    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>>;

    /// Reads all that `range` has, whatever its limit, as one state. Engines that have a shorter way than page by page take it.
    fn pages<'a>(&'a self, range: Range) -> Box<dyn Pages + 'a> {
        Box::new(pages::Ranges::new(self, range))
    }

    /// As [`Backend::range`], but values may be left out. Engines that can do without reading them do.
    fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        self.range(range)
    }

    /// How many keys `range` has, whatever its limit. Engines that can count without reading values do.
    fn count(&self, range: Range) -> BoxFuture<'_, Result<u64, ReadError>> {
        Box::pin(async move {
            let mut next = Range { limit: COUNT_PAGE, ..range };
            let mut count = 0;
            loop {
                let page = self.range(next.clone()).await?;
                count += page.items.len() as u64;
                if !page.more {
                    return Ok(count);
                }
                next.pass(&page);
            }
        })
    }

    /// A revision no older than any commit acknowledged before the call, nor than what any feed had told by then: a lower
    /// one means that the store was put back. Every feed reaches it without further
    /// writes, at the latest when it is hastened: it announces progress up to it.
    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>>;

    /// The oldest revision that [`Backend::feed`] may start after and [`Backend::range`] may read at.
    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>>;

    /// No history before this is kept, as far as is known without asking: [`Backend::oldest`], or what that was a while ago.
    fn oldest_known(&self) -> Revision;

    /// Every change below `prefix` (it ends with `/`) after `after`, then what is committed from now on.
    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>>;

    /// The collection below `prefix`, for a store that tells states and changes on one way; then neither a feed nor a page of it is
    /// asked for. A new one begins with a state.
    fn tell(&self, prefix: &str) -> Option<Box<dyn Tell>> {
        let _ = prefix;
        None
    }

    /// How large the store is now.
    fn size(&self) -> Size;

    /// What it was sent, if it is elsewhere.
    fn sent(&self) -> Option<Sent> {
        None
    }
}
