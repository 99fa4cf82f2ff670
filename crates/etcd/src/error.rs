//! What can go wrong with etcd, by type. The one file that compares etcd's texts.
//!
//! In: the code and text of a gRPC status, or what happened to a connection. Out: a [`RequestError`]. Each
//! kind of fault calls for a reaction of its own: only [`RequestError::Compacted`] means that something is
//! gone for good.
//! Source: etcd v3.7.3 `api/v3rpc/rpctypes/error.go`; the texts are the same since 3.4.

use forebay_apimachinery::Revision;
use forebay_backend::{FeedError, ReadError, TxnError};
use forebay_grpc::proto::Malformed;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The history that was asked for is gone.
    #[error("the revision is compacted")]
    Compacted,
    /// That revision is still to come.
    #[error("the revision is still to come")]
    Future,
    /// The cluster has no leader, or the member cannot reach it: wait, and ask another member.
    #[error("etcd has no leader: {text}")]
    NoLeader { text: String },
    /// More requests than etcd takes.
    #[error("etcd has too many requests waiting")]
    TooManyRequests,
    /// The quota is used up: reads and deletes go on.
    #[error("etcd has no space left")]
    NoSpace,
    /// The request is larger than etcd takes.
    #[error("the request is too large for etcd")]
    TooLarge,
    /// The lease is gone.
    #[error("the lease is gone")]
    NoLease,
    /// It was not answered in time, and may have been carried out.
    #[error("etcd did not answer in time: {text}")]
    Timeout { text: String },
    /// The connection was lost after the request was sent: it may have been carried out.
    #[error("etcd cannot be reached: {text}")]
    Lost { text: String },
    /// The request was never sent.
    #[error("etcd cannot be reached: {text}")]
    Unreachable { text: String },
    /// The member does not take our certificate, or wants one: nothing was sent. It may be the one member
    /// that does so.
    #[error("etcd does not let us in: {text}")]
    Refused { text: String },
    /// Whoever the certificate names may not do this.
    #[error("etcd does not let us in: {text}")]
    Denied { text: String },
    /// The member is of a version whose progress announcements cannot be trusted.
    #[error("{text}")]
    Untrusted { text: String },
    /// The member is of another cluster than the one that is in use: whatever it says is not to be mixed with
    /// that.
    #[error("the member is of another cluster: {text}")]
    OtherCluster { text: String },
    /// Another cluster than the one that was asked has answered, and has taken its place.
    #[error("etcd is another cluster than the one that was asked")]
    Replaced,
    /// The answer is longer than the limit.
    #[error("an answer of etcd has {bytes} bytes")]
    LongAnswer { bytes: usize },
    /// The member has no such method.
    #[error("etcd does not do that: {text}")]
    Unimplemented { text: String },
    /// Anything else that etcd says.
    #[error("etcd says (code {code}): {text}")]
    Other { code: u32, text: String },
}

/// Codes of gRPC.
mod code {
    pub const DEADLINE: u32 = 4;
    pub const PERMISSION: u32 = 7;
    pub const EXHAUSTED: u32 = 8;
    pub const UNIMPLEMENTED: u32 = 12;
    pub const UNAVAILABLE: u32 = 14;
    pub const UNAUTHENTICATED: u32 = 16;
}

type OfText = fn(String) -> RequestError;

/// A text of etcd, or its beginning, and what it means.
const TEXTS: &[(&str, OfText)] = &[
    ("etcdserver: mvcc: required revision has been compacted", |_| RequestError::Compacted),
    ("etcdserver: mvcc: required revision is a future revision", |_| RequestError::Future),
    ("etcdserver: mvcc: database space exceeded", |_| RequestError::NoSpace),
    ("etcdserver: no leader", |text| RequestError::NoLeader { text }),
    ("etcdserver: not leader", |text| RequestError::NoLeader { text }),
    ("etcdserver: leader changed", |text| RequestError::NoLeader { text }),
    ("etcdserver: too many requests", |_| RequestError::TooManyRequests),
    ("etcdserver: request is too large", |_| RequestError::TooLarge),
    ("grpc: received message larger than max", |_| RequestError::TooLarge),
    ("etcdserver: requested lease not found", |_| RequestError::NoLease),
    // Also "…, possibly due to previous leader failure" and the like.
    ("etcdserver: request timed out", |text| RequestError::Timeout { text }),
    ("etcdserver: permission denied", |text| RequestError::Denied { text }),
    ("etcdserver: user name is empty", |text| RequestError::Denied { text }),
    ("etcdserver: invalid auth token", |text| RequestError::Denied { text }),
    ("etcdserver: server stopped", |text| RequestError::Lost { text }),
    ("etcdserver: unhealthy cluster", |text| RequestError::Lost { text }),
];

impl RequestError {
    /// What a gRPC status means.
    pub fn of_status(code: u32, text: &str) -> RequestError {
        let text = text.to_string();
        if let Some((_, fault)) = TEXTS.iter().find(|(begin, _)| text.starts_with(begin)) {
            return fault(text);
        }
        match code {
            code::DEADLINE => RequestError::Timeout { text },
            code::PERMISSION | code::UNAUTHENTICATED => RequestError::Denied { text },
            code::EXHAUSTED => RequestError::TooManyRequests,
            code::UNIMPLEMENTED => RequestError::Unimplemented { text },
            code::UNAVAILABLE => RequestError::Lost { text },
            code => RequestError::Other { code, text },
        }
    }

    /// Whether another member may do better.
    pub fn is_of_the_member(&self) -> bool {
        matches!(
            self,
            RequestError::NoLeader { .. }
                | RequestError::Timeout { .. }
                | RequestError::Lost { .. }
                | RequestError::Unreachable { .. }
                | RequestError::Refused { .. }
                | RequestError::Untrusted { .. }
                | RequestError::OtherCluster { .. }
        )
    }

    /// As the failure of a commit.
    pub fn into_txn(self) -> TxnError {
        match self {
            RequestError::TooManyRequests => TxnError::Busy,
            RequestError::NoLeader { .. }
            | RequestError::Timeout { .. }
            | RequestError::Lost { .. }
            | RequestError::Unreachable { .. }
            | RequestError::Refused { .. }
            | RequestError::OtherCluster { .. }
            | RequestError::Replaced => TxnError::Unanswered { cause: self.to_string() },
            other => TxnError::Failed { cause: other.to_string() },
        }
    }

    /// As the failure of a read at `asked`.
    ///
    /// - `bound`: the oldest revision that is kept, or the current one, whichever the fault is about.
    pub fn into_read(self, asked: Option<Revision>, bound: Revision) -> ReadError {
        match (self, asked) {
            (RequestError::Compacted, Some(asked)) => ReadError::Compacted { asked, oldest: bound },
            (RequestError::Future, Some(asked)) => ReadError::Future { asked, current: bound },
            (fault, _)
                if fault.is_of_the_member()
                    || matches!(fault, RequestError::TooManyRequests | RequestError::Replaced) =>
            {
                ReadError::Unanswered { cause: fault.to_string() }
            }
            (fault, _) => ReadError::Failed { cause: fault.to_string() },
        }
    }

    /// As the failure of a feed, one that says nothing of the history.
    pub fn into_feed(self) -> FeedError {
        FeedError::Failed { cause: self.to_string() }
    }
}

impl From<Malformed> for RequestError {
    fn from(error: Malformed) -> RequestError {
        RequestError::Other { code: 0, text: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_etcd_has_its_kind() {
        let cases = [
            (11, "etcdserver: mvcc: required revision has been compacted", "Compacted"),
            (11, "etcdserver: mvcc: required revision is a future revision", "Future"),
            (14, "etcdserver: no leader", "NoLeader"),
            (9, "etcdserver: not leader", "NoLeader"),
            (14, "etcdserver: leader changed", "NoLeader"),
            (8, "etcdserver: too many requests", "TooManyRequests"),
            (8, "etcdserver: mvcc: database space exceeded", "NoSpace"),
            (3, "etcdserver: request is too large", "TooLarge"),
            (5, "etcdserver: requested lease not found", "NoLease"),
            (14, "etcdserver: request timed out", "Timeout"),
            (14, "etcdserver: request timed out, possibly due to previous leader failure", "Timeout"),
            (14, "etcdserver: request timed out, waiting for the applied index took too long", "Timeout"),
            (4, "context deadline exceeded", "Timeout"),
            (14, "etcdserver: server stopped", "Lost"),
            (14, "transport is closing", "Lost"),
            (7, "etcdserver: permission denied", "Denied"),
            (16, "etcdserver: invalid auth token", "Denied"),
            (3, "etcdserver: user name is empty", "Denied"),
            (8, "grpc: received message larger than max (9 vs. 8)", "TooLarge"),
            (8, "something is exhausted", "TooManyRequests"),
            (12, "unknown method RangeStream for service etcdserverpb.KV", "Unimplemented"),
            (13, "something new", "Other"),
        ];
        for (code, text, kind) in cases {
            let fault = format!("{:?}", RequestError::of_status(code, text));
            assert_eq!(fault.split([' ', '{']).next(), Some(kind), "{code} {text}");
        }
    }

    #[test]
    fn only_gone_history_is_told_as_gone_history() {
        // kubernetes PR 111387: a missing leader and a hole in history are not the same.
        let (asked, bound) = (Revision::from_log(5), Revision::from_log(9));
        let read = |code, text| RequestError::of_status(code, text).into_read(Some(asked), bound);
        let compacted = read(11, "etcdserver: mvcc: required revision has been compacted");
        assert!(matches!(FeedError::from(compacted), FeedError::Compacted { oldest } if oldest == bound));
        for text in ["etcdserver: no leader", "etcdserver: request timed out", "transport is closing"] {
            let error = FeedError::from(read(14, text));
            assert!(matches!(error, FeedError::Failed { .. }), "{text}: {error}");
            let txn = RequestError::of_status(14, text).into_txn();
            assert!(matches!(txn, TxnError::Unanswered { .. }), "{text}: {txn}");
        }
    }

    #[test]
    fn what_another_cluster_says_is_no_answer() {
        for fault in [RequestError::Replaced, RequestError::OtherCluster { text: String::new() }] {
            let read = fault.clone().into_read(Some(Revision::from_log(5)), Revision::FIRST);
            assert!(matches!(read, ReadError::Unanswered { .. }), "{read}");
            // It was carried out, where nobody looks.
            let txn = fault.clone().into_txn();
            assert!(matches!(txn, TxnError::Unanswered { .. }), "{txn}");
            assert_eq!(
                fault.is_of_the_member(),
                fault != RequestError::Replaced,
                "another member may be ours"
            );
        }
    }
}
