//! Which caches of a server may read early history now: the events from before they were filled.
//!
//! None of them until the server serves, and then a few at once. For each cache that asks, etcd looks through
//! its whole history, the changes of every other resource included, and before that the largest cache is
//! still being filled.
//!
//! In: that the server serves. Out: permits. Never: reads. Owner: whoever puts the caches of a server
//! together.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits;

/// See the module's doc.
#[derive(Debug)]
pub struct EarlyReaders {
    turns: Semaphore,
    are_let_in: AtomicBool,
}

impl EarlyReaders {
    /// Nobody may read until [`EarlyReaders::let_in`] is called.
    pub const fn held_back() -> EarlyReaders {
        EarlyReaders { turns: Semaphore::const_new(0), are_let_in: AtomicBool::new(false) }
    }

    /// A few may read at once from the beginning, for caches that belong to no server.
    pub fn admitted() -> EarlyReaders {
        let readers = EarlyReaders::held_back();
        readers.let_in();
        readers
    }

    /// From now on [`limits::EARLY_READERS_MAX`] caches may read early history at once.
    pub fn let_in(&self) {
        if !self.are_let_in.swap(true, Ordering::Relaxed) {
            self.turns.add_permits(limits::EARLY_READERS_MAX);
        }
    }

    /// Waits for a permit, which is given back when it is dropped. Cancel-safe. It is never `None`, because
    /// nobody closes the semaphore.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }
}
