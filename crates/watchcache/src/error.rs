//! Why a read of the cache failed.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_rt::Duration;

#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The cache is being filled, for `since` now; the same read may succeed later.
    #[error("storage is (re)initializing")]
    NotReady { since: Duration },
    /// History before `oldest` is gone; list again.
    #[error("too old resource version: {asked} ({oldest})")]
    Expired { asked: Revision, oldest: Revision },
    /// Not reached before the deadline; the same read may succeed later.
    #[error("Too large resource version: {asked}, current: {current}")]
    TooLarge { asked: Revision, current: Revision },
    /// It could not be proved in time that the state is current. The client may come again after so many
    /// seconds.
    #[error("the watch cache could not be proved to be current in time")]
    Stale { retry_after_seconds: u32 },
    /// Too many readers read past states from the store already. The client may come again after so many
    /// seconds.
    #[error("too many reads of past states, please try again later")]
    Busy { retry_after_seconds: u32 },
    /// There is a value in reach that cannot be decrypted now: nobody is told the others as if they were all.
    /// The same read may succeed later.
    #[error("unable to transform key \"{key}\": {why}")]
    Undecrypted { key: Key, why: Arc<str> },
    /// The store could not say what is current.
    #[error("{0}")]
    Store(#[from] forebay_backend::ReadError),
    /// The resource is no longer served.
    #[error("the watch cache is closed")]
    Closed,
}
