//! Label and field selectors.
//!
//! In: the text of `labelSelector` and `fieldSelector`, or a `metav1.LabelSelector` in an object. Out:
//! requirements that are cheap to check, or kube-apiserver's message. Never: knows which fields a resource
//! has.

mod field;
mod label;
mod lexer;
mod parser;
mod validation;

pub use field::{FieldOperator, FieldRequirement, FieldSelector};
pub use label::{LabelOperator, LabelRequirement, LabelSelector};
pub use validation::{dns1123_subdomain_faults, label_key_faults, label_value_faults};

#[cfg(test)]
mod tests;
