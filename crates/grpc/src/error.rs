//! Why a call failed, before anybody knows what the service means by it.

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It was never sent.
    #[error("not reachable: {text}")]
    Unreachable { text: String },
    /// The connection was lost after it was sent: it may have been carried out.
    #[error("connection lost: {text}")]
    Lost { text: String },
    #[error("a message of {bytes} bytes")]
    Long { bytes: usize },
    /// Nobody asked for that.
    #[error("a compressed message")]
    Compressed,
    /// What the other side says, in the words of gRPC for Go.
    #[error("rpc error: code = {} desc = {text}", status_name(*code))]
    Status { code: u32, text: String },
}

/// The name of a status, as gRPC for Go writes it.
pub fn status_name(code: u32) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    ];
    usize::try_from(code).ok().and_then(|code| NAMES.get(code)).copied().unwrap_or("Unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_told_as_go_tells_it() {
        let said = CallError::Status { code: 14, text: "no key".into() }.to_string();
        assert_eq!(said, "rpc error: code = Unavailable desc = no key");
        assert_eq!([status_name(0), status_name(16), status_name(99)], ["OK", "Unauthenticated", "Unknown"]);
    }
}
