//! What a fault does: to an open connection, to a new one, to an open watch, and to a request. Pure, and the
//! only place that says.
//!
//! In: a fault. Out: what to do. Never: does it.

use bytes::Bytes;

use super::asked::{RequestInfo, RequestKind};
use super::frames::{ErrorStatus, Serialization};
use crate::fault::Fault;

/// What becomes of a connection that is open when the fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfConnection {
    Stays,
    /// RST.
    Reset,
    /// FIN.
    Closed,
    /// GOAWAY, then FIN.
    SentAway,
    /// Open, and silent for ever.
    Held,
}

/// What becomes of a connection that is opened while the fault lasts, if it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfNew {
    Served,
    /// RST, once it has said something.
    Reset,
    /// A fatal alert, once it has said something.
    Alert,
    /// Served when the fault is over.
    Waits,
}

/// What becomes of a watch that is open when the fault begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfWatch {
    GoesOn,
    /// As when the server ends it.
    Ends,
    /// RST_STREAM.
    Reset,
    /// A last frame, or half of one, and the end.
    EndsWith(Bytes),
    /// Half a frame, and nothing for ever.
    StallsWith(Bytes),
    /// A frame among the others.
    GoesOnWith(Bytes),
}

/// What becomes of a request that comes while the fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfRequest {
    Forwarded,
    /// A Status.
    Refused(ErrorStatus),
    /// What a gateway says that knows no Status.
    Gateway(u16),
    /// A success without a single event.
    Empty,
    /// Refused with [`EXPIRED`] if it goes on from no later than its informer did first; see
    /// [`super::state`].
    IfNotExpired,
    /// Without bookmarks.
    ForwardedWithoutBookmarks,
}

/// History is gone.
pub const EXPIRED: ErrorStatus =
    status(410, "Expired", "The resourceVersion for the provided watch is too old.", None, None);
const TOO_MANY: ErrorStatus =
    status(429, "TooManyRequests", "too many requests, please try again later", None, None);
const NO_LEADER: ErrorStatus = status(500, "InternalError", "etcdserver: no leader", None, None);

const fn status(
    code: u16,
    reason: &'static str,
    message: &'static str,
    retry_after: Option<u32>,
    cause: Option<&'static str>,
) -> ErrorStatus {
    ErrorStatus { code, reason, message, retry_after, cause }
}

impl Fault {
    pub fn of_connection(self) -> OfConnection {
        match self {
            Fault::Refused
            | Fault::Reset
            | Fault::Unreachable
            | Fault::NoName
            | Fault::Handshake
            | Fault::Gone => OfConnection::Reset,
            Fault::Eof => OfConnection::Closed,
            Fault::GoAway => OfConnection::SentAway,
            Fault::PingLost => OfConnection::Held,
            _ => OfConnection::Stays,
        }
    }

    pub fn of_new(self) -> OfNew {
        match self {
            // Where nobody listens only one comes that the kernel had taken already.
            Fault::Refused | Fault::Reset | Fault::NoName | Fault::Gone => OfNew::Reset,
            Fault::Handshake => OfNew::Alert,
            Fault::Unreachable => OfNew::Waits,
            _ => OfNew::Served,
        }
    }

    pub fn of_watch(self, serialization: Serialization) -> OfWatch {
        match self {
            Fault::StreamReset => OfWatch::Reset,
            Fault::Stall => OfWatch::StallsWith(serialization.half()),
            Fault::HalfFrame => OfWatch::EndsWith(serialization.half()),
            Fault::ErrorTooManyRequests => OfWatch::EndsWith(serialization.error(&TOO_MANY)),
            Fault::ErrorNoLeader => OfWatch::EndsWith(serialization.error(&NO_LEADER)),
            Fault::ErrorExpired | Fault::NoBookmarks => OfWatch::EndsWith(serialization.error(&EXPIRED)),
            Fault::Undecodable => OfWatch::GoesOnWith(serialization.garbage()),
            Fault::TooManyRequests
            | Fault::ServerError
            | Fault::Expired
            | Fault::EmptyWatches
            | Fault::CleanEnd
            | Fault::TooLarge
            | Fault::Unauthorized => OfWatch::Ends,
            // Ends with its connection.
            Fault::Refused
            | Fault::Reset
            | Fault::Unreachable
            | Fault::NoName
            | Fault::Handshake
            | Fault::Eof
            | Fault::GoAway
            | Fault::PingLost
            | Fault::Gone => OfWatch::GoesOn,
        }
    }

    /// - `turn`: how many requests came before while the fault lasts.
    pub fn of_request(self, asked: &RequestInfo, turn: u64) -> OfRequest {
        let is_watch = asked.watches();
        match self {
            Fault::TooManyRequests if is_watch => OfRequest::Refused(ErrorStatus {
                retry_after: turn.is_multiple_of(2).then_some(1),
                ..TOO_MANY
            }),
            Fault::ServerError => match turn % 4 {
                0 => OfRequest::Refused(status(500, "InternalError", "an error on the server", None, None)),
                1 => OfRequest::Gateway(502),
                2 => OfRequest::Gateway(503),
                _ => OfRequest::Refused(status(504, "Timeout", "the request timed out", None, None)),
            },
            // A state that is not older than a revision is to be had, however old that is.
            Fault::Expired if asked.kind == RequestKind::Watch => OfRequest::IfNotExpired,
            Fault::EmptyWatches if is_watch => OfRequest::Empty,
            Fault::TooLarge if asked.revision.is_some() => OfRequest::Refused(status(
                504,
                "Timeout",
                "Too large resource version",
                Some(1),
                Some("ResourceVersionTooLarge"),
            )),
            Fault::NoBookmarks if is_watch => OfRequest::ForwardedWithoutBookmarks,
            Fault::Unauthorized => {
                OfRequest::Refused(status(401, "Unauthorized", "Unauthorized", None, None))
            }
            _ => OfRequest::Forwarded,
        }
    }
}
