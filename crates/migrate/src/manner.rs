//! How a state is to be moved.

use crate::at_rest::AtRest;
use crate::moved::Strictness;

/// See the module's doc.
pub struct Manner {
    /// Of all objects' keys, without a slash behind.
    pub prefix: String,
    pub existing: Existing,
    pub strictness: Strictness,
    /// What is encrypted, on both sides.
    pub at_rest: AtRest,
}

/// What becomes of keys that are in etcd already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// There are none, or nothing is done.
    Refused,
    /// They go first.
    Deleted,
    /// Those of an interrupted run stay if they are what they are to be.
    Resumed,
}
