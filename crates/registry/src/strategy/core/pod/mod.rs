//! Pods, and what is inside everything that makes pods.
//!
//! In: pods and pod templates. Out: defaults, the lifecycle of a pod, causes. Never: what a controller asks of its template
//! beyond that.

mod affinity;
mod container;
pub mod defaults;
mod env;
mod image;
pub mod lifecycle;
mod mounts;
mod probe;
mod qos;
pub mod resources;
mod security;
mod spec;
mod status;
mod template;
mod update;
mod volumes;

pub use template::{only_always, shown, template_not_selected, template_shown, validate_template};
pub use update::{validate_create, validate_update};
