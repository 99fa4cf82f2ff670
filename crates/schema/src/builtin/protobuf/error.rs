//! What can be wrong with a message, in the words of gogo-protobuf's generated code where it has some.

use forebay_apimachinery::Exhausted;
use forebay_apimachinery::quantity::QuantityError;

/// The bytes are no message of the type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("empty data")]
    EmptyData,
    #[error("empty body")]
    EmptyBody,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoPrefix,
    #[error("unexpected EOF")]
    UnexpectedEof,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    #[error("proto: {message}: wiretype end group for non-group")]
    EndGroup { message: &'static str },
    #[error("proto: {message}: illegal tag {number} (wire type {tag})")]
    IllegalTag { message: &'static str, number: i32, tag: u64 },
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType { wire_type: u8, field: String },
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// Said by [`decode_known`](super::decode_known) alone.
    #[error("{message} has no field {number}")]
    UnknownField { message: &'static str, number: u32 },
    /// Where JSON is embedded as bytes.
    #[error("{field}: {why}")]
    Json { field: &'static str, why: String },
    #[error("impossible IntOrString.Type")]
    IntOrString,
    /// A time that RFC 3339 cannot name.
    #[error("time {seconds}s is not in the years 0 to 9999")]
    Time { seconds: i64 },
    /// A float that JSON cannot name.
    #[error("json: unsupported value: {0}")]
    Float(&'static str),
    #[error("exceeded max depth")]
    TooDeep,
    /// See the bounds of this module.
    #[error("the message holds too many objects for its size")]
    TooMany,
    /// The value would take more memory than its request may hold.
    #[error("{0}")]
    Exhausted(#[from] Exhausted),
}
