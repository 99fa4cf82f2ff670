//! YAML, as kube-apiserver reads and writes it: the dialect of Go's yaml.v2, by way of JSON.
//!
//! In: bodies of clients, and our own JSON for those who ask for YAML. Out: the other one. Bounded in nodes, depth and
//! size, aliases included.

mod expand;
mod list;
mod read;
mod resolve;
mod tape;
mod write;

pub use list::YamlList;
pub use read::{to_json, work};
pub use write::from_json;
