//! What goes wrong when an object is looked at.

use std::sync::Arc;

use forebay_apimachinery::PathError;
use forebay_apimachinery::json::Unexpected;
use forebay_object::Damaged;

/// The object does not read as what it was to be. It stays so: the same handle gives the same error again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{kind} {namespace}/{name} does not read as {wanted}{}", if *is_partial { ": no more than its metadata is held" } else { "" })]
pub struct DecodeError {
    pub kind: String,
    /// Empty for cluster scope.
    pub namespace: String,
    pub name: String,
    /// The Rust type.
    pub wanted: &'static str,
    /// No more than its metadata is held: the whole of all objects is more than may be.
    pub is_partial: bool,
    /// Its bytes were put into a file and did not come back: the informer asks for it again.
    pub is_damaged: bool,
    /// Where and why.
    #[source]
    pub cause: Arc<serde_json::Error>,
}

/// A field could not be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// What was given as a path is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// `[*]` is many fields.
    #[error("a path with [*] is not one field")]
    Many,
    /// No more than metadata is held of the object: what is there is not known.
    #[error("no more than metadata is held of the object")]
    Partial,
    /// Its bytes were put into a file and did not come back: the informer asks for it again.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The object is no JSON there, or is nested deeper than [`DEPTH_MAX`](crate::limits::DEPTH_MAX).
    #[error("a field cannot be looked for in the object")]
    Garbled(#[from] Unexpected),
}
