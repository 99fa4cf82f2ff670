//! What admission policies have against a write, and what they make of it.
//!
//! In: a write, the policies that are in force. Out: the write with what they fill in, refusals, warnings.
//! Never: evaluates by itself, which `policy` does; looks for policies, which `policy_source.rs` does.

mod judge;
mod mutate;
mod params;

pub(super) use judge::validate;
pub(super) use mutate::{Round, Unknown, mutate, take};
