//! What comes of a stage.

use forebay_api::Eventual;
use forebay_apimachinery::Status;

/// What comes of a stage, now or later.
pub(crate) type Passed<'a> = Eventual<'a, Result<Flow, Status>>;

/// Where a write goes from a stage that does not refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// There is no telling what it takes before somebody looks, which who claims does.
    ToClaim,
    /// What it was decided by has changed: the round begins again.
    Again,
}
