//! YAML, as kube-apiserver reads and writes it: the dialect of Go's yaml.v2, by way of JSON.
//!
//! In: bodies of clients, and our own JSON for those who ask for YAML. Out: the other one. Bounded in nodes,
//! depth and size, aliases included.

mod expand;
#[cfg(test)]
mod fuzz;
pub mod length;
pub mod limits;
mod read;
mod resolve;
mod tape;
mod words;
mod write;

pub use read::{Json, YamlError, to_json, work};
pub use write::{flow_item, from_json, item, member};
