//! The rules of schemas in CEL, `x-kubernetes-validations`: compiled for a version of a CRD, evaluated on its
//! objects.
//!
//! In: structural schemas, objects before and after a write. Out: what upstream says of rules that cannot be,
//! and of objects that break them, within upstream's budgets. Never: the language itself, which is
//! `forebay-cel`'s.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/cel`.

mod compile;
mod declare;
mod ratchet;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) mod upstream_tests;
mod validator;

pub(super) use compile::{Compiling, Evaluated, Since, cardinality_max, count_below};
pub(super) use declare::Declarations;
pub(super) use validator::Validator;
