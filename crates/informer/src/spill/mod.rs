//! Where an informer keeps what is more than it may hold in memory.
//!
//! In: deflated blocks. Out: where they are. Owner: the driver of one collection, and every block that is
//! there. Never: says that something is there that was not written whole, reads ahead, keeps what it read.

mod file;
mod space;

pub(crate) use file::{Budget, SpillFile};
