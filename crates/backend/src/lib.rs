//! The storage contract: one trait, its types and errors, and the contract's tests.
