//! The failures that must not happen, each made to happen as far as it can: what goes wrong in
//! kube-apiserver's LIST and WATCH path, by the numbers of `docs/robustness.md`.
//!
//! In: a store that stalls, fails and forgets, a clock that a test moves. Out: what clients are told then.
//! Never: a real clock, a thread, a port; those failures that need them are in
//! `crates/forebay/tests/failures.rs`.

mod crd_ends;
mod crds;
mod ends;
mod hooks;
mod lost;
mod old;
mod patched;
mod stale;
mod store;
mod unseen;
mod world;
