//! Why a body cannot be read on.

use crate::limits::OBJECT_BYTES_MAX;

/// The body is not what was asked for. It stays so: whatever is pushed behind it, the same error comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No server of this API writes such a body.
    #[error("the body is garbled: {what}")]
    Garbled { what: &'static str },
    /// An object, or what stands around them, is longer than what is taken in.
    #[error("the body has an object of more than {OBJECT_BYTES_MAX} bytes")]
    TooLong,
}

pub(super) fn garbled<T>(what: &'static str) -> Result<T, WireError> {
    Err(WireError::Garbled { what })
}
