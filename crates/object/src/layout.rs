//! How the objects of one resource are kept.
//!
//! In: what a resource is. Out: what its objects are read by. Never: reads one.

/// How the objects of one resource are kept: made once per resource.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Length of the storage prefix, `/registry/pods/`.
    pub prefix_len: usize,
    pub scope: Scope,
    pub form: Form,
    /// Paths of the fields that selectors may name, each split at its dots.
    pub fields: Vec<Vec<String>>,
}

/// Whether a key below the prefix is `namespace/name` or `name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// How an object's bytes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A built-in kind: struct order, and the type is left off, because a LIST's items go without it.
    Typed,
    /// A custom resource: all members, sorted, the type among them.
    Whole,
}
