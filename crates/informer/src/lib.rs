//! What a controller is made of, against any Kubernetes API server: a work queue so far.
//!
//! In: keys there is work for. Out: one worker a key. Never: knows which server it is.

pub mod work_queue;
