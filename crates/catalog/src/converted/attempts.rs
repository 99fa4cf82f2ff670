//! How the conversions of a view went, as who converts tells who reads.
//!
//! In: nothing. Out: a count and the last failure. Never: a queue of them.

use std::sync::Arc;

use forebay_apimachinery::Status;

/// How conversions went.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts {
    /// So many were begun.
    pub(super) begun: u64,
    /// The last one, if it failed.
    pub(super) failed: Option<(u64, Arc<Status>)>,
}
