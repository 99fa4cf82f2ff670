//! Addresses and node ports of Services on the embedded engine in memory: never twice, never lost.
//!
//! A "crash" is a store that refuses every commit from the n-th on; the next registry on the same engine is
//! the restart.

mod advertised;
mod allocation;
mod claims;
mod repair;
mod world;
