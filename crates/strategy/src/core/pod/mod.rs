//! Pods, and what is inside everything that makes pods.
//!
//! In: pods and pod templates. Out: defaults, the lifecycle of a pod, causes. Never: what a controller asks
//! of its template beyond that.

mod affinity;
mod annotations;
pub mod app_armor;
mod container;
mod container_status;
pub mod defaults;
mod env;
mod image;
mod iscsi_name;
pub mod lifecycle;
mod mounts;
mod os;
mod overlaps;
mod placement;
mod ports;
mod probe;
pub mod qos;
mod resize;
pub mod resources;
mod security;
mod sources;
mod spec;
mod status;
mod template;
#[cfg(test)]
mod tests;
mod totals;
mod update;
mod volumes;
pub mod warnings;

pub use placement::node_selector;
pub use sources::{csi_driver_name, path_name, persistent_source};
pub use spec::toleration_rules;
pub use template::{only_always, template_not_selected, validate_template};
pub use update::{validate_create, validate_update};
