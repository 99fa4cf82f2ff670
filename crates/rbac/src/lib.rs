//! RBAC as pure data: who may do what, and by which binding.
//!
//! In: roles and bindings as trees of a form that the codec made canonical, questions. Out: decisions, the
//! rules that somebody has, what a role would give beyond those, what a start makes of a role that is there.
//! Never: IO, a store, a clock, the name of an HTTP code.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/rbac`, `pkg/registry/rbac`; component-helpers
//! v0.36.3 `auth/rbac`.

mod binding;
mod covers;
pub mod limits;
mod published;
mod question;
mod reconcile;
mod rights;
mod role;
mod scopes;
mod texts;

pub use binding::{RoleBinding, RoleRef, Through};
pub use covers::full_authority;
pub use published::RightsInForce;
pub use reconcile::{Reconciled, reconciled};
pub use rights::{Rights, Ruling};
pub use role::{GROUP, PolicyRule, Role};
