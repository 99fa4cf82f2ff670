//! Writes of each kind against what kube-apiserver says of them.
//!
//! In: writes as text. Out: nothing. Never: what only a store can tell.

mod api_service;
mod binding;
mod cluster_role;
mod cluster_role_binding;
mod custom;
mod deletion;
mod endpoint_slice;
mod event;
mod eviction;
mod horizontal_pod_autoscaler;
mod horizontal_pod_autoscaler_v1;
mod lease;
mod linear;
mod pod_disruption_budget;
mod priority_class;
mod privileged;
mod role;
mod role_binding;
mod runtime_class;
mod scale;
