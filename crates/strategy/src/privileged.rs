//! What a cluster's policy says of containers that nothing keeps from the node.
//!
//! In and out: the type alone. Never: a namespace's level; that is pod security's.

/// Whether a pod may have privileged containers (`--allow-privileged`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privileged {
    #[default]
    Allowed,
    Disallowed,
}
