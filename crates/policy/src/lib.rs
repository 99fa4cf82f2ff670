//! Admission policies: what they say compiled once, matched with a request, and evaluated within upstream's
//! budgets.
//!
//! In: policies and bindings as they are stored; a request, its objects, parameters. Out: whether a policy
//! and a binding match, decisions in upstream's words, what is wrong with an expression. Never: does IO or
//! async, looks up a parameter, knows who stores a policy.
//!
//! ```text
//! stored policy ─Policy::read─► rules (matching) ─► conditions ─► validations: decisions
//!                               expressions (compile, environment; variables: composition)
//! ```

mod binding;
mod compile;
mod composition;
mod conditions;
mod environment;
mod evaluation;
mod hooks;
pub mod limits;
mod matching;
mod mutating;
mod parameters;
mod policy;
mod predicates;
mod request;
mod type_check;
mod validating;

pub use binding::{Binding, NotFound, ParamRef, ValidationAction};
pub use compile::{Compiler, Returns, Since};
pub use environment::Declared;
pub use evaluation::Inputs;
pub use hooks::{Hook, Hooks};
pub use matching::{Constraints, Matched, RequestedResource};
pub use mutating::Made;
pub use parameters::ParameterTrees;
pub use policy::{FailurePolicy, ParamKind, Policy, Reinvocation};
pub use predicates::Predicates;
pub use request::{AdmissionOperation, PolicyRequest, request_json, shown_namespace};
pub use type_check::{CheckedKind, type_warnings};
pub use validating::{Finding, Findings};
