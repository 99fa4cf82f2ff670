//! What can be typed: the table of flags, and how arguments, environment and file are read with it.
//!
//! Out of here comes [`layers::Raw`], which is what was typed; [`crate::config`] decides what it means.

mod accepted;
pub mod argv;
mod config_file;
pub mod gates;
pub mod help;
pub mod layers;
mod nearest;
pub mod options;
mod refused;
pub mod served;
mod served_audit;
mod served_tls;
pub mod spec;
pub mod table;
pub mod values;

pub use nearest::nearest;
