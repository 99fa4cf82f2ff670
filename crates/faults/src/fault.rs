//! The 24 kinds of fault, each with what it needs of a client. This is the table; what makes them is the
//! proxy.
//!
//! In: a name. Out: what is done, for how long, and how many lists are needed after it. Never: state.

use std::fmt;

/// What goes wrong.
///
/// "Open" is what there is when the fault begins. What is not said to last does what it does to all that is
/// open, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// Nobody listens. Open connections are reset.
    Refused,
    /// Connections are reset: open ones, and new ones as soon as they say something.
    Reset,
    /// Open connections are reset. New ones hear nothing until it ends, and then are served: so late a SYN is
    /// answered.
    Unreachable,
    /// Nobody listens, and the name does not resolve where a client lets us say so. Open connections are
    /// reset.
    NoName,
    /// Open connections are reset. New ones get a fatal alert instead of a ServerHello.
    Handshake,
    /// Open connections end by FIN, in the middle of their streams.
    Eof,
    /// GOAWAY, and the connection ends soon after. HTTP/1.1 has no such thing: its connection ends.
    GoAway,
    /// RST_STREAM on every open watch; over HTTP/1.1 the connection ends before the body does.
    StreamReset,
    /// Open connections carry nothing any more, either way, for ever: no PING is answered. New ones are
    /// served.
    PingLost,
    /// Every open watch has half a frame, and then nothing for ever; the connection lives, and the client has
    /// a timeout.
    Stall,
    /// Every open watch has half a frame, and then ends as if it were whole.
    HalfFrame,
    /// Open watches end. Watches get 429, in turn with `Retry-After` and without.
    TooManyRequests,
    /// Open watches end. All requests get 500, 502, 503 and 504 in turn, without `Retry-After`, as gateways
    /// do.
    ServerError,
    /// An ERROR event of 429 ends every open watch.
    ErrorTooManyRequests,
    /// An ERROR event of 500 that tells of an etcd without a leader ends every open watch.
    ErrorNoLeader,
    /// An ERROR event of 410 ends every open watch.
    ErrorExpired,
    /// Open watches end. From then on watches that go on from the revision that an informer asks for first,
    /// or from before, get
    /// 410. The whole state, not older than that, is to be had.
    Expired,
    /// Open watches end. New ones end before their first event.
    EmptyWatches,
    /// Open watches end, as they do when the server's `timeoutSeconds` are over.
    CleanEnd,
    /// As [`Fault::Refused`], for much longer.
    Gone,
    /// Open watches end. What asks for a revision gets 504 with the cause that the server has not got there
    /// yet.
    TooLarge,
    /// An ERROR event of 410 ends every open watch. Those that are opened while it lasts have no bookmarks,
    /// not even the one that ends the initial state.
    NoBookmarks,
    /// Open watches end. All requests get 401.
    Unauthorized,
    /// A frame that nobody can read, in the middle of every open watch, which goes on.
    Undecodable,
}

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// It is over at once.
    Once,
    /// As long as other outages here.
    AWhile,
    /// As a machine that is replaced.
    Long,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FaultSpec {
    pub fault: Fault,
    /// On the command line.
    pub name: &'static str,
    /// In the table.
    pub what: &'static str,
    pub lasts: Lasts,
    /// Lists of the whole state that a client needs, each informer.
    pub needed: u64,
}

const fn row(fault: Fault, name: &'static str, what: &'static str, lasts: Lasts, needed: u64) -> FaultSpec {
    FaultSpec { fault, name, what, lasts, needed }
}

/// All of them, as [`Fault`] has them.
pub const ROWS: [FaultSpec; 24] = [
    row(Fault::Refused, "refused", "connection refused", Lasts::AWhile, 0),
    row(Fault::Reset, "reset", "connection reset by peer", Lasts::AWhile, 0),
    row(Fault::Unreachable, "unreachable", "unreachable: connections are never answered", Lasts::AWhile, 0),
    row(Fault::NoName, "no-name", "the name does not resolve", Lasts::AWhile, 0),
    row(Fault::Handshake, "handshake", "TLS handshake fails", Lasts::AWhile, 0),
    row(Fault::Eof, "eof", "EOF in the middle of the streams", Lasts::Once, 0),
    row(Fault::GoAway, "goaway", "GOAWAY, then the connection ends", Lasts::Once, 0),
    row(Fault::StreamReset, "stream-reset", "RST_STREAM", Lasts::Once, 0),
    row(Fault::PingLost, "ping-lost", "black hole: HTTP/2 PING unanswered", Lasts::Once, 0),
    row(Fault::Stall, "stall", "half a frame, then the client's timeout", Lasts::Once, 0),
    row(Fault::HalfFrame, "half-frame", "half a frame, then the end", Lasts::Once, 0),
    row(Fault::TooManyRequests, "429", "HTTP 429 on watches, with Retry-After and without", Lasts::AWhile, 0),
    row(Fault::ServerError, "5xx", "HTTP 500, 502, 503, 504 in turn", Lasts::AWhile, 0),
    row(Fault::ErrorTooManyRequests, "error-429", "ERROR event 429", Lasts::Once, 0),
    row(Fault::ErrorNoLeader, "error-500", "ERROR event 500, \"no leader\"", Lasts::Once, 0),
    row(Fault::ErrorExpired, "error-410", "ERROR event 410", Lasts::Once, 1),
    row(Fault::Expired, "410", "HTTP 410", Lasts::AWhile, 1),
    row(Fault::EmptyWatches, "empty-watches", "watches end before their first event", Lasts::AWhile, 0),
    row(Fault::CleanEnd, "clean-end", "the server's clean end of watches", Lasts::Once, 0),
    row(Fault::Gone, "gone", "the server is gone for long, and comes back", Lasts::Long, 0),
    row(Fault::TooLarge, "too-large", "too large resource version", Lasts::AWhile, 0),
    row(Fault::NoBookmarks, "no-bookmarks", "410, and the end bookmark never comes", Lasts::AWhile, 1),
    row(Fault::Unauthorized, "401", "HTTP 401", Lasts::AWhile, 0),
    row(Fault::Undecodable, "undecodable", "an undecodable frame", Lasts::Once, 0),
];

impl Fault {
    pub fn row(self) -> &'static FaultSpec {
        // The order is the type's own, which a test holds.
        &ROWS[self as usize]
    }

    pub fn named(name: &str) -> Option<Fault> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.fault)
    }

    /// Whether nobody is to listen while it lasts.
    pub(crate) fn closes_the_port(self) -> bool {
        matches!(self, Fault::Refused | Fault::NoName | Fault::Gone)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.row().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_row_and_its_name() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.fault as usize, at, "{}", row.name);
            assert_eq!(row.fault.row().name, row.name);
            assert_eq!(Fault::named(row.name), Some(row.fault));
        }
        assert_eq!(Fault::named("nothing"), None);
    }

    #[test]
    fn only_a_hole_in_history_needs_a_list() {
        let needing: Vec<&str> = ROWS.iter().filter(|row| row.needed > 0).map(|row| row.name).collect();
        assert_eq!(needing, ["error-410", "410", "no-bookmarks"]);
    }
}
