//! The storage contract: what the server asks of a store, whichever it is.
//!
//! In: [`Txn`], [`Range`], a prefix to feed from. Out: [`TxnResponse`], [`RangePage`], a [`Feed`] of
//! [`Change`]s, and a barrier that proves freshness. Engines: `embedded`, `etcd`, later `upstream`. Never:
//! names an engine.
//!
//! What every engine promises:
//! - One commit counter for the whole store. A commit's revision is above every earlier one, restarts
//!   included.
//! - **Durable, then visible, then acknowledged**: a reply means that the commit survives a crash, and a feed
//!   that is hastened has it, soon after the reply or before.
//! - A store may be put back to an earlier state only while nobody reads it, or it ends its feeds: whoever
//!   asks sees a barrier below what it had reached, and forgets everything.
//! - A feed yields every change of its prefix once, in order, whole revisions at a time, or says that it
//!   cannot.

mod contract;
mod error;
mod feed;
mod layer;
mod pages;
mod told;
mod txn;
mod undecrypted;

pub use contract::{Backend, Sent, Size};
pub use error::{FeedError, ReadError, TxnError};
pub use feed::{Backlog, Feed, FeedStep, Follow};
pub use layer::Layer;
pub use pages::Pages;
pub use told::{GiveWay, Rewrite, Tell, Told};
pub use txn::{BoxFuture, Change, Expect, Op, Range, RangePage, Txn, TxnResponse, Versioned};
pub use undecrypted::{undecrypted, why_undecrypted};
