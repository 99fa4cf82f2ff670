//! Failures of the rooms below, as the `Status` a client is told.

use forebay_apimachinery::{Cause, CauseReason, GroupResource, Reason, Status};
use forebay_backend as backend;
use forebay_watchcache as watchcache;

/// A commit that did not happen.
pub fn txn(error: &backend::TxnError) -> Status {
    match error {
        backend::TxnError::TooLarge { .. } => Status::new(Reason::RequestEntityTooLarge, error.to_string()),
        backend::TxnError::Busy => Status::new(
            Reason::TooManyRequests,
            "the store has too many writes waiting, please try again later",
        )
        .retry_after(1),
        // Whether it was written is not known: the client looks, as after any timeout.
        backend::TxnError::Unanswered { .. } => unanswered(error),
        backend::TxnError::Closed => shutting_down(),
        backend::TxnError::ReadOnly { .. } | backend::TxnError::Failed { .. } => Status::internal(error),
    }
}

/// A read of the store that failed.
pub fn read(error: &backend::ReadError) -> Status {
    match error {
        backend::ReadError::Compacted { .. } => list_expired(),
        backend::ReadError::Future { asked, current } => too_large(*asked, *current),
        backend::ReadError::Unanswered { .. } => unanswered(error),
        backend::ReadError::Failed { .. } => Status::internal(error),
        backend::ReadError::Closed => shutting_down(),
    }
}

/// The store did not answer in time.
fn unanswered(error: &dyn std::error::Error) -> Status {
    Status::new(Reason::Timeout, format!("Timeout: {error}")).retry_after(1)
}

/// A read of the cache that failed.
pub fn cache(error: &watchcache::ReadError) -> Status {
    match error {
        watchcache::ReadError::NotReady { since } => {
            // Reference §1.3: the longer it takes, the later the client is asked to come again.
            let seconds = (0.06 * since.as_secs_f64()).exp().clamp(1.0, 30.0) as u32;
            Status::new(Reason::TooManyRequests, "storage is (re)initializing").retry_after(seconds)
        }
        watchcache::ReadError::Expired { .. } => Status::new(Reason::Expired, error.to_string()),
        watchcache::ReadError::TooLarge { asked, current } => too_large(*asked, *current),
        watchcache::ReadError::Stale { retry_after_seconds }
        | watchcache::ReadError::Busy { retry_after_seconds } => {
            Status::new(Reason::TooManyRequests, error.to_string()).retry_after(*retry_after_seconds)
        }
        watchcache::ReadError::Undecrypted { .. } => Status::internal(error),
        watchcache::ReadError::Store(error) => read(error),
        watchcache::ReadError::Closed => shutting_down(),
    }
}

/// There are values that cannot be read where all of them were asked for.
pub fn unreadable(resource: &GroupResource) -> Status {
    Status::new(Reason::StorageReadError, format!("failed to read one or more {resource} from the storage"))
}

/// The history that a LIST asked for is gone.
pub fn list_expired() -> Status {
    Status::new(Reason::Expired, "The resourceVersion for the provided list is too old.")
}

/// The history that a continue token names is gone; `token` goes on with what is there now.
pub fn continue_expired(token: String) -> Status {
    let mut status = Status::new(
        Reason::Expired,
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status.continue_token = token.into();
    status
}

/// A revision that this server has not reached.
pub fn too_large(asked: forebay_apimachinery::Revision, current: forebay_apimachinery::Revision) -> Status {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let cause = Cause::new(CauseReason::ResourceVersionTooLarge, "", "Too large resource version");
    Status::new(Reason::Timeout, message).because([cause]).retry_after(1)
}

/// The server is on its way out.
pub fn shutting_down() -> Status {
    Status::new(Reason::ServiceUnavailable, "apiserver is shutting down").retry_after(1)
}

/// Too many concurrent writers of one object.
pub fn too_contended() -> Status {
    Status::new(Reason::ServerTimeout, "the object is being changed by too many writers, please try again")
        .retry_after(1)
}
