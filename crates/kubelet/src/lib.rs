//! What only the node of a pod can answer: `log`, `exec`, `attach`, `portforward`.
//!
//! In: a request that this server has let in, pods and nodes as it has them. Out: the kubelet's answer as it
//! comes. Never: decides whether somebody may; tells a kubelet who asks; translates a protocol into another.

mod connect;
pub mod limits;
mod place;

pub use connect::{KubeletConfig, Kubelets};
