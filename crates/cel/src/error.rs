//! Why an evaluation has no result.

use std::borrow::Cow;

/// What an evaluation ends with instead of a value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// It would have cost more than it may. No operator absorbs this.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
    /// A function is not for its arguments; whoever called it says which.
    #[error("no such overload")]
    Unsuited,
    /// As cel-go words it.
    #[error("{0}")]
    Failed(Cow<'static, str>),
}

impl Error {
    pub fn new(message: impl Into<Cow<'static, str>>) -> Error {
        Error::Failed(message.into())
    }

    pub(crate) fn no_such_overload() -> Error {
        Error::new("no such overload")
    }
}
