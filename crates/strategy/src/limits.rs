//! How much is said of one object.
//!
//! In: nothing. Out: limits. Never: what is beyond them.

/// Pairs of items of one list that are told to be in each other's way: there may be as many as the square of
/// the list. A client reads some dozens of warnings.
pub const PAIRS_MAX: usize = 1_000;
