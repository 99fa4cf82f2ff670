//! Writes of each kind of this group against what kube-apiserver says of them.
//!
//! In: writes as text. Out: nothing. Never: what only a store can tell.

mod cron_job;
mod job;
