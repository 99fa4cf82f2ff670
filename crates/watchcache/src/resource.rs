//! What a cache is a cache of, and whose the history of its store is.
//!
//! In: what whoever starts a cache says. Out: the same, as data. Never: state.

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
    /// Those of the layout's fields whose values LISTs look up: an entry for each object and field.
    pub indexed: Vec<usize>,
    /// [`limits::PACE`], but in tests.
    pub pace: limits::Pace,
    pub history: History,
    /// The memory that objects outside of blocks may take, in all caches of a server.
    pub room: Arc<Room>,
    /// Who of all caches of a server may read early history.
    pub early: Arc<EarlyReaders>,
}

/// Whose the store's history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// This process's: it is given up once nobody needs it. A hole in it is a mistake, and everybody is told.
    #[default]
    Own,
    /// Others write and give up history, too, and it comes over a network: who has missed nothing that is known goes on across
    /// a hole, and the cache is held against the store every so often.
    Shared { check_every: Duration },
}
