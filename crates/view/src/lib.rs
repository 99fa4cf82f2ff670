//! Objects as their types, when somebody asks.
//!
//! In: an `Object`, which is bytes, and which type it is of. Out: a [`Handle`], which decodes the whole
//! object once as a Rust type of the caller's, its [`Metadata`] alone, or a [field](Handle::field) by its
//! path, and writes the object out as a client gets it. Never: decodes what nobody asked for; holds what it
//! decoded longer than the last handle; panics over what a server sent; builds a tree on the way to a type.

mod error;
mod field;
mod handle;
pub mod limits;
mod metadata;
mod partial;
#[cfg(test)]
mod tests;
mod type_meta;

pub use error::{DecodeError, FieldError};
pub use field::Scalar;
pub use forebay_apimachinery::{FieldPath, PathError, PathStep};
pub use handle::{Checked, Handle};
pub use metadata::{Metadata, OwnerReference};
pub use partial::PARTIAL_HEAD;
pub use type_meta::TypeMeta;
