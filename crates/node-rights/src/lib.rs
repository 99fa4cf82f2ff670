//! What a node may do, as pure data: the objects that its pods lead to, and the rules for all nodes.
//!
//! In: pods, volumes, attachments and slices as the bytes that are stored, as they come and go; questions.
//! Out: decisions in upstream's words. Never: IO, a store, a clock, the name of an HTTP code.
//!
//! ```text
//! node ◄─ pod ◄─ secret, configmap, service account, resource claim
//!          └──◄─ claim ◄─ volume ◄─ secret
//! node ◄─ volume attachment, resource slice
//! ```
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/node`.

mod decide;
mod graph;
mod names;
mod pods;
mod published;
mod rules;
mod volumes;

pub use decide::{NodeRuling, decide};
pub use graph::{NodeGraph, Related};
pub use pods::PodLinks;
pub use published::NodesInForce;
pub use volumes::{VolumeLinks, node_of_attachment, node_of_slice};
