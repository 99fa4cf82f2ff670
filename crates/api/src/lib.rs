//! The traits at the seams between rooms, and the types that they speak in.
//!
//! In and out: vocabulary of `apimachinery`. Above it stand those who implement a trait and those who use it, who need not know each
//! other. Never: implements what it describes.

mod authentication;
mod authorization;
mod eventual;
mod verbs;

pub use authentication::{Authenticated, Authentication, Authenticator, Certificate, Presented};
pub use authorization::{Authorizer, Because, Decision, PathRule, Permission, ResourceRule, Rules};
pub use eventual::{BoxFuture, Eventual};
pub use verbs::{
    Answer, Api, Awaited, Body, MayCreate, Outcome, PatchKind, Read, ResourceTarget, method_not_supported,
};
