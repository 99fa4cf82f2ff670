//! How often a write is tried.
//!
//! In: nothing. Out: limits. Never: what is beyond them.

/// Retries of one guarded update against concurrent writers. Each lost round means that another write won, so the
/// system as a whole moves; beyond this the client is told to try again.
pub const ROUNDS_MAX: usize = 1_000;
