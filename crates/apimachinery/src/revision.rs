//! The store's commit counter, and how clients write it.

use std::fmt;
use std::num::NonZeroU64;

/// The store's commit counter; never 0, never goes back. Clients see it as a decimal `resourceVersion`
/// (KEP-5504).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(NonZeroU64);

impl Revision {
    /// The revision of an empty store, as in etcd.
    pub const FIRST: Revision = Revision(NonZeroU64::MIN);

    /// `None` for 0.
    pub const fn new(number: u64) -> Option<Revision> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Revision(number)),
            None => None,
        }
    }

    /// A revision from a log's counter.
    ///
    /// # Panics
    /// On 0: a log begins at [`Revision::FIRST`].
    pub fn from_log(number: u64) -> Revision {
        Revision::new(number).expect("a log's revisions begin at 1")
    }

    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The next one.
    pub fn next(self) -> Revision {
        Revision(self.0.checked_add(1).expect("2^64 commits do not happen"))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
