//! The same bodies in protobuf: `application/vnd.kubernetes.protobuf`.
//!
//! In: a body in pieces. Out: the [`Frame`]s and [`Part`]s that the JSON of it would be cut into, whose
//! objects are [`ObjectMessage`]s: their bytes, and what they are called. What a kind's fields are is not
//! known here but for `ObjectMeta`, `ListMeta` and `Status`. Never: waits; recurses; holds more than the
//! longest object and a piece.
//!
//! Source: apimachinery v0.36 `runtime/serializer/protobuf`, `meta/v1/generated.proto`, `runtime/generated.proto`.

mod fields;
mod list;
mod object;
mod status;
#[cfg(test)]
mod tests;
mod watch;

pub use list::MessageItems;
pub use object::ObjectMessage;
pub use watch::MessageFrames;

pub(super) use status::refused;
