//! What can keep an informer from answering.

use forebay_apimachinery::Revision;
use forebay_rt::Duration;
use forebay_watchcache::ReadError;

use crate::ceiling::OverLimit;
use crate::progress::Refused;

/// See each variant.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// No whole state has come yet; [`Informer::synced`](crate::Informer::synced) waits for it.
    #[error("no whole state has come for {since:?}")]
    NotSynced { since: Duration },
    /// What was waited for did not come in time; [`Informer::health`](crate::Informer::health) may say why.
    #[error("revision {asked} was not seen in time; what is known is of {current}")]
    Late { asked: Revision, current: Revision },
    /// What this program wrote of an object was not seen in time: its watch is behind, or the object does not
    /// match.
    #[error("what was written of {object} was not seen in time")]
    NotInSight { object: String },
    /// Nothing is held, because what there is is more than the informer may hold; it is tried again some
    /// time.
    #[error("{} bytes are more than the {} that may be held", over.held_bytes, over.max_bytes)]
    OverLimit { over: OverLimit },
    /// Nothing is held, because the file in which it was did not give back what was put there: see
    /// [`AtLimit::Spill`](crate::AtLimit::Spill). It is asked for again some time.
    #[error("what was put into a file did not come back as it was")]
    SpillLost,
    /// The factory was stopped, or the informer's last handle dropped.
    #[error("the informer was stopped")]
    Stopped,
    /// Not among the indexes that it was made with.
    #[error("there is no index {name:?}")]
    NoIndex { name: String },
    /// A selector that cannot be read.
    #[error("{selector:?} is no label selector: {why}")]
    Selector { selector: String, why: String },
    /// A path that cannot be read.
    #[error("{path:?} is no path of a field: {why}")]
    Path { path: String, why: String },
}

impl From<Refused> for Error {
    fn from(why: Refused) -> Error {
        match why {
            Refused::OverLimit(over) => Error::OverLimit { over },
            Refused::SpillLost => Error::SpillLost,
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        match error {
            ReadError::NotReady { since } => Error::NotSynced { since },
            ReadError::TooLarge { asked, current } => Error::Late { asked, current },
            // A cache that is told is asked for nothing that could expire, and asks no store.
            ReadError::Closed
            | ReadError::Expired { .. }
            | ReadError::Stale { .. }
            | ReadError::Busy { .. }
            | ReadError::Undecrypted { .. }
            | ReadError::Store(_) => Error::Stopped,
        }
    }
}
