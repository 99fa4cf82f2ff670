//! What can go wrong in a store. The kinds that call for different reactions are different variants.

use forebay_apimachinery::Revision;

/// Why a commit did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TxnError {
    /// An earlier write could not be made durable; nothing is written until the server is started again.
    #[error("the store takes no more writes: {cause}")]
    ReadOnly { cause: String },
    /// This write failed and left nothing behind; a later one may succeed.
    #[error("the write failed and was undone: {cause}")]
    Failed { cause: String },
    /// No answer came in time: it may have been written, or may be yet.
    #[error("the store did not answer: {cause}")]
    Unanswered { cause: String },
    /// The value is larger than the store takes.
    #[error("the value has {bytes} bytes, the limit is {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    /// The store is overloaded; the caller may retry.
    #[error("too many writes are waiting")]
    Busy,
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
}

/// Why a read failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// History before `oldest` is gone.
    #[error("revision {asked} is compacted; the oldest kept is {oldest}")]
    Compacted { asked: Revision, oldest: Revision },
    /// Not committed yet.
    #[error("revision {asked} is ahead of the current revision {current}")]
    Future { asked: Revision, current: Revision },
    /// The store cannot be reached, or did not answer in time; the same read may succeed later.
    #[error("the store did not answer: {cause}")]
    Unanswered { cause: String },
    /// The store answered nonsense; the message names the key where there is one.
    #[error("the store cannot be read: {cause}")]
    Failed { cause: String },
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
}

/// Why a feed ended. Only the cache reacts: to `Compacted` by a feed from where it is, and if that is gone
/// too, by reading the state again; to `WentBack` by forgetting everything.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FeedError {
    /// The changes asked for, or those that come next, are gone.
    #[error("history before revision {oldest} is gone")]
    Compacted { oldest: Revision },
    /// The store is at an older revision than it was: it was put back to an earlier state, and `reached` is
    /// of a future that never was.
    #[error("the store went back from revision {reached} to {current}")]
    WentBack { reached: Revision, current: Revision },
    /// The history could not be read.
    #[error("the history cannot be read: {cause}")]
    Failed { cause: String },
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
}

impl From<ReadError> for FeedError {
    fn from(error: ReadError) -> FeedError {
        match error {
            ReadError::Compacted { oldest, .. } => FeedError::Compacted { oldest },
            ReadError::Closed => FeedError::Closed,
            ReadError::Future { .. } | ReadError::Unanswered { .. } | ReadError::Failed { .. } => {
                FeedError::Failed { cause: error.to_string() }
            }
        }
    }
}
