//! Why an evaluation has no result.

use std::borrow::Cow;

use crate::limits::ERROR_BYTES_MAX;

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
    /// An error in these words, as many as [`ERROR_BYTES_MAX`] has.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Error {
        let mut message = message.into();
        if message.len() > ERROR_BYTES_MAX {
            let end = message.floor_char_boundary(ERROR_BYTES_MAX);
            message.to_mut().truncate(end);
        }
        Error::Failed(message)
    }

    pub(crate) fn no_such_overload() -> Error {
        Error::new("no such overload")
    }
}
