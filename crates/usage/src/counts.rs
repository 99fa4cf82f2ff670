//! What is counted of a client: how much it asked, how it asked, and why.
//!
//! Data. A new count is a variant before [`Count::CpuNanos`], and its place in the report.

/// One of the numbers that only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    Requests,
    /// Answered 429.
    Refused,
    /// Told that the place in history that it goes on from is gone.
    Expired,
    ListUnset,
    ListZero,
    ListAtLeast,
    ListExact,
    ListPage,
    CauseStart,
    CauseExpired,
    CauseAgain,
    /// Watches that began, and those of them that were sent the state first.
    WatchStarts,
    WatchLists,
    BytesSent,
    CpuNanos,
}

/// How many there are.
pub(crate) const COUNTS: usize = Count::CpuNanos as usize + 1;

/// All of them, by [`Count`].
pub(crate) type Counts = [u64; COUNTS];

/// Which state a LIST asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedAt {
    /// No resourceVersion: every write that was acknowledged.
    Unset,
    /// `resourceVersion=0`: whatever the cache has.
    Zero,
    /// At least some revision.
    AtLeast,
    /// Just that revision.
    Exact,
    /// A page behind another.
    Page,
}

/// Why a client reads a state, as far as a server can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It has not read this on its connection before: a program that has begun.
    Start,
    /// It was told that the place in history that it had is gone.
    Expired,
    /// Nothing forced it: it had read the same before on its connection.
    Again,
}

impl From<ListedAt> for Count {
    fn from(at: ListedAt) -> Count {
        match at {
            ListedAt::Unset => Count::ListUnset,
            ListedAt::Zero => Count::ListZero,
            ListedAt::AtLeast => Count::ListAtLeast,
            ListedAt::Exact => Count::ListExact,
            ListedAt::Page => Count::ListPage,
        }
    }
}

impl From<Cause> for Count {
    fn from(cause: Cause) -> Count {
        match cause {
            Cause::Start => Count::CauseStart,
            Cause::Expired => Count::CauseExpired,
            Cause::Again => Count::CauseAgain,
        }
    }
}

/// What came since `before`.
pub(crate) fn since(now: &Counts, before: &Counts) -> Counts {
    std::array::from_fn(|at| now[at].saturating_sub(before[at]))
}

pub(crate) fn add(to: &mut Counts, more: &Counts) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}
