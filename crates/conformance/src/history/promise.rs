//! What a server promises, and that it did not keep it.

/// What a server promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// Single keys read and write as if one operation came after the other, each between its call and its
    /// answer.
    Linearizable,
    /// A write that began after another was answered has a higher revision.
    RealTime,
    /// What was acknowledged is in the log, as it was acknowledged.
    Durable,
    /// What is in the log was asked for by somebody.
    Asked,
    /// All who saw a revision saw the same in it.
    Agreed,
    /// An event matches what was watched.
    Filter,
    /// Revisions never go back.
    Ordered,
    /// No event comes twice.
    Unique,
    /// A revision comes whole or not at all.
    Atomic,
    /// The first event is the first one after the revision that was asked for.
    Resumable,
    /// No event is missing between two that came.
    Reliable,
    /// Nothing up to a bookmark is missing before it or comes after it.
    Bookmarkable,
    /// ADDED, MODIFIED and DELETED are what the object's coming into and going out of the selection make of
    /// it.
    Transition,
    /// An event shows the object of its revision, DELETED the last one that matched.
    State,
    /// A watch that begins with the state begins with that of one revision, in key order.
    Initial,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub promise: Promise,
    /// By whom, and how.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(promise: Promise, what: impl Into<String>) -> Violation {
        Violation { promise, what: what.into() }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.what)
    }
}
