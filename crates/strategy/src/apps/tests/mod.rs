//! Writes of each kind of this group against what kube-apiserver says of them.
//!
//! In: writes as text. Out: nothing. Never: what only a store can tell.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;
