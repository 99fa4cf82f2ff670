//! Writes of each kind of this group against what kube-apiserver says of them.
//!
//! In: writes as text. Out: nothing. Never: what only a store can tell.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;
