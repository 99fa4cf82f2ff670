//! Who may read early history now, of all caches of a server.
//!
//! Nobody until the server serves: for each cache that asks, etcd looks through all of its history, the changes of every other
//! resource too, while the largest cache is still being filled. Then a few at once.
//!
//! In: that the server serves. Out: turns. Owner: whoever puts the caches of a server together.

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
    /// Readers that wait for [`EarlyReaders::let_in`].
    pub const fn held_back() -> EarlyReaders {
        EarlyReaders { turns: Semaphore::const_new(0), are_let_in: AtomicBool::new(false) }
    }

    /// Readers of caches that no server is waited for with.
    pub fn admitted() -> EarlyReaders {
        let readers = EarlyReaders::held_back();
        readers.let_in();
        readers
    }

    /// Lets [`limits::EARLY_READERS_MAX`] caches read early history at once from now on.
    pub fn let_in(&self) {
        if !self.are_let_in.swap(true, Ordering::Relaxed) {
            self.turns.add_permits(limits::EARLY_READERS_MAX);
        }
    }

    /// Waits for a turn, which ends when it is dropped. Cancel-safe. `None` is never: nobody closes them.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }
}
