//! Writes of each kind of this group against what kube-apiserver says of them.
//!
//! In: writes as text. Out: nothing. Never: what only a store can tell.

mod claim;
mod config_map;
mod controller;
mod endpoints;
mod event;
mod limit_range;
mod namespace;
mod node;
mod pod_template;
mod resource_quota;
mod secret;
mod service;
mod service_account;
mod service_allocation;
mod volume;
