//! What runs behind objects: what only the node of a pod can answer, `log`, `exec`, `attach`, `portforward`,
//! and what listens in pods, behind services and on nodes, `proxy`.
//!
//! In: a request that this server has let in, pods, services and nodes as it has them. Out: the answer of the
//! kubelet, or of who listens, as it comes; the links of the latter lead back here. Never: decides whether
//! somebody may; tells a kubelet who asks; translates a protocol into another.

mod connect;
mod credentials;
mod ends;
pub mod limits;
mod log;
mod members;
mod place;
mod refusal;

pub use connect::{KubeletConfig, Kubelets};
pub use credentials::KubeletCredentials;
