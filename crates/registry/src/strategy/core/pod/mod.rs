//! Pods, and what is inside everything that makes pods.
//!
//! In: pods and pod templates. Out: defaults, the lifecycle of a pod, causes. Never: what a controller asks of its template
//! beyond that.

mod affinity;
mod container;
mod defaults;
mod image;
mod lifecycle;
mod probe;
mod qos;
mod resources;
mod spec;
mod update;
mod volumes;

use crate_strategy::field::{Causes, Path};
