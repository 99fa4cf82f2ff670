//! The Pod Security Standards: which level a namespace is at, by its labels, and what a pod has that the
//! level forbids.
//!
//! In: labels, pods. Out: levels, faults in kube-apiserver's words. Never: IO; decides what becomes of a pod.
//!
//! Source: pod-security-admission v0.36.3.

mod checks;
mod configuration;
mod level;
mod metrics;
mod pod;
mod standards;

pub use configuration::{SecurityConfiguration, SecurityDefaults};
pub use level::{LevelVersion, SecurityLevel, Standards};
pub use metrics::{Evaluation, JudgedWrite, SecurityCounted, SecurityMetrics, SecurityMode};
pub use pod::{changes_images, spec_and_meta};
pub use standards::{Violations, faults};
