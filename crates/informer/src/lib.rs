//! What a controller is made of, against any Kubernetes API server: a work queue and leader election so far.
//!
//! In: keys there is work for, a Lease. Out: one worker a key, one leader at a time. Never: knows which server it is.

pub mod leader_election;
pub mod work_queue;
