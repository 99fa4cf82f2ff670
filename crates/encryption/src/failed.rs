//! Why a value cannot be sealed or opened.

use forebay_grpc::{CallError, status_name};

/// Why, in upstream's words, and as its metrics name it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SealError {
    pub why: String,
    /// The name of a gRPC status, or that there was none.
    pub status: &'static str,
    /// The same may be done later: a plugin does not answer.
    pub passes: bool,
}

/// What metrics say of what failed before a plugin was asked.
const NO_STATUS: &str = "unknown-non-grpc";

impl SealError {
    pub fn new(why: impl Into<String>) -> SealError {
        SealError { why: why.into(), status: NO_STATUS, passes: false }
    }

    /// What a plugin did not do, said behind `what`.
    pub fn of_call(what: &str, error: &CallError) -> SealError {
        SealError { why: format!("{what}: {error}"), status: call_status(Some(error)), passes: passes(error) }
    }
}

impl From<&str> for SealError {
    fn from(why: &str) -> SealError {
        SealError::new(why)
    }
}

/// How metrics name what came of a call.
pub(crate) fn call_status(error: Option<&CallError>) -> &'static str {
    match error {
        None => status_name(0),
        Some(CallError::Status { code, .. }) => status_name(*code),
        // As gRPC for Go has it, which waits for a connection until it is late.
        Some(CallError::Unreachable { .. }) => status_name(4),
        Some(CallError::Lost { .. }) => status_name(14),
        Some(CallError::Long { .. }) => status_name(8),
        Some(CallError::Compressed) => status_name(12),
    }
}

/// Whether the same call may be answered later. A plugin that says of a key that it is not there, or not to
/// be used, says so again; one that says that it does not know why may have lost its way to the key.
fn passes(error: &CallError) -> bool {
    const INVALID: u32 = 3;
    const NOT_FOUND: u32 = 5;
    const DENIED: u32 = 7;
    const PRECONDITION: u32 = 9;
    const OUT_OF_RANGE: u32 = 11;
    const UNIMPLEMENTED: u32 = 12;
    const DATA_LOSS: u32 = 15;
    match error {
        CallError::Status { code, .. } => !matches!(
            *code,
            INVALID | NOT_FOUND | DENIED | PRECONDITION | OUT_OF_RANGE | UNIMPLEMENTED | DATA_LOSS
        ),
        CallError::Long { .. } | CallError::Compressed => false,
        CallError::Unreachable { .. } | CallError::Lost { .. } => true,
    }
}
