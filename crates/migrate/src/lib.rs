//! States on their way: out of a data directory or a snapshot into etcd, out of etcd into a data directory,
//! into a snapshot and back.
//!
//! In: where from, where to, and how ([`Manner`]). Out: the same keys and values on the other side; what was
//! left out, by key; a digest of both sides; a file or a store that is whole or not there. The source is only
//! read. After a move clients list again: no number of before means anything else afterwards (ADR 35). Never:
//! reads what was typed; changes a source.

mod at_rest;
pub mod data_dir;
mod error;
mod file;
mod from_etcd;
mod into_etcd;
mod left;
pub mod live;
mod manner;
mod moved;
mod progress;
mod restore;
mod save;
mod source;

pub use at_rest::AtRest;
pub use error::{Error, line};
pub use file::{store_of, verified};
pub use from_etcd::from_etcd;
pub use into_etcd::into_etcd;
pub use manner::{Existing, Manner};
pub use moved::{Moved, Strictness};
pub use restore::{BUMP_MAX, restore};
pub use save::save;
pub use source::Location;
