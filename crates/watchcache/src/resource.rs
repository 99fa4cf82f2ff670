//! What a cache is a cache of, and who else writes to its store.
//!
//! In: the settings of whoever starts a cache. Out: the same, as data. Never: state.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_object::Layout;
use forebay_rt::Duration;

use crate::early_readers::EarlyReaders;
use crate::limits;
use crate::room::Room;

/// What a cache is a cache of.
#[derive(Clone, Debug)]
pub struct Resource {
    /// `pods`, `deployments.apps`: for logs.
    pub name: String,
    /// The storage prefix, `/registry/pods/`.
    pub prefix: Key,
    pub layout: Layout,
    /// The layout's fields by which LISTs look objects up. Each has an index, with an entry for each object.
    pub indexed: Vec<usize>,
    /// [`limits::PACE`]; tests have their own.
    pub pace: limits::Pace,
    pub history: History,
    /// The memory that objects outside of blocks may take, in all caches of a server.
    pub room: Arc<Room>,
    /// Permits to read early history, for all caches of a server.
    pub early: Arc<EarlyReaders>,
}

/// Who writes to the store, and gives its history up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// Only this process, which gives history up once nobody needs it. A hole in it is a mistake, and every
    /// watcher is told.
    #[default]
    Own,
    /// Other processes, too, and the store is reached over a network. A watcher that has missed no known
    /// change goes on across a hole in the history. The cache is compared with the store every so often.
    Shared { check_every: Duration },
}
