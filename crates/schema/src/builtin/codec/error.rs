//! What can be wrong with a value, in the words that kube-apiserver's clients see.

use std::fmt;

use forebay_apimachinery::quantity::QuantityError;

use super::TimeError;
use super::text::go_quote;

/// The value cannot be decoded into the type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnmarshalError {
    /// JSON of one kind where the type has another.
    #[error("json: cannot unmarshal {value} into Go {place} of type {ty}")]
    Type {
        /// `string`, `number 1.5`, `bool`, `array` or `object`.
        value: String,
        /// `value` or `struct field PodSpec.spec.containers`.
        place: String,
        /// The Go type.
        ty: String,
    },
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error(transparent)]
    Time(#[from] TimeError),
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    #[error("boolean or JSON schema expected")]
    SchemaOrBool,
    #[error("exceeded max depth")]
    TooDeep,
}

/// A field that the type does not have; it was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// `spec.containers[0].foo`
    pub path: String,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field {}", go_quote(&self.path))
    }
}

/// The value is not what [`super::normalize`] leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("field {field:?} does not hold a value of its type")]
    Mismatch { field: &'static str },
    #[error("the object is not a JSON object")]
    NotAnObject,
    /// No member of metadata follows resourceVersion.
    #[error("metadata has no place for resourceVersion")]
    NoSlot,
    #[error("exceeded max depth")]
    TooDeep,
}
