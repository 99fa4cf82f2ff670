//! Between JSON values and the bytes that kube-apiserver would write, driven by the table.
//!
//! In: `serde_json::Value`s and a [`TypeId`](super::TypeId). [`normalize`] checks an incoming value as Go's
//! decoder into the typed struct would and makes it canonical; [`encode`] writes a canonical value as Go's
//! encoder would. Never: defaulting, validation of contents, duplicate keys (a `Value` no longer has them).

mod base64;
mod encode;
mod error;
mod normalize;
#[cfg(test)]
mod tests;
mod text;
mod time;

pub(super) use encode::{Part, is_written, zero};
pub use encode::{Slot, encode, encode_new, encode_sorted, write_any, write_fields, write_json};
pub use error::{EncodeError, FieldProblem, UnmarshalError};
pub use normalize::{normalize, normalize_as_sent};
pub(crate) use text::go_quote;
pub(super) use text::{write_int, write_string, write_utf8};
pub use time::{TimeError, canonical_micro_time, canonical_time};

/// Levels of nesting that are read or written; the JSON parser in front of us allows 128.
pub const DEPTH_MAX: usize = 160;

/// Unknown fields reported for one object, as kube-apiserver does; more are dropped without a word.
pub const PROBLEMS_MAX: usize = 100;
