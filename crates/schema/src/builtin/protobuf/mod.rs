//! Between JSON values and the protobuf messages that kube-apiserver reads and writes, driven by the table.
//!
//! In: messages as gogo-protobuf's generated code writes them, or canonical values (see
//! [`codec`](super::codec)). Out: the other. [`decode_envelope`] and [`Envelope`] are what a body of
//! `application/vnd.kubernetes.protobuf` is around its message. Never: defaulting, validation.

mod decode;
mod encode;
mod envelope;
mod error;
mod frame;
mod from_json;
#[cfg(test)]
mod golden;
mod plan;
mod reader;
mod special;
mod straight;
#[cfg(test)]
mod tests;
mod time;
mod tree;
mod writer;

pub use super::codec::EncodeError;
pub use decode::{UnknownFields, decode, decode_known};
pub use encode::{encode, encode_json};
pub use envelope::{
    ENCRYPTED_PREFIX, ENVELOPE_PREFIX, Unknown, WatchEvent, decode_envelope, decode_watch_event,
};
pub use error::DecodeError;
pub use frame::{Envelope, ListForm, metadata_field, open_watch_frame, with_resource_version};
pub use from_json::{FormError, from_json};
pub use plan::is_message;
pub use straight::stored_json;
