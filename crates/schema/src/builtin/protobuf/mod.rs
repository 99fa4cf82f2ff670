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
pub use decode::{decode, decode_known};
pub use encode::{encode, encode_json};
pub use envelope::{
    ENCRYPTED_PREFIX, ENVELOPE_PREFIX, Unknown, WatchEvent, decode_envelope, decode_watch_event,
};
pub use error::DecodeError;
pub use frame::{Envelope, ListForm, metadata_field, open_watch_frame, with_resource_version};
pub use plan::is_message;
pub use straight::stored_json;

/// What becomes of a field that the table does not have, which a server of another version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// As gogo-protobuf does: nothing is left of it.
    PassedOver,
    /// The message is not read.
    Refused,
}

/// JSON objects that a message of any size may hold.
const OBJECTS_FREE: usize = 1 << 16;

/// A message may hold another JSON object for each of so many bytes. An object takes up to 700 bytes of memory
/// and as little as 2 of a message: a body of 3 MiB becomes at most 262,144 objects, 180 MB, rather than 1 GB. Real
/// objects have more than 30 bytes. What has more is refused.
const BYTES_PER_OBJECT: usize = 16;
