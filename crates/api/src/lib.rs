//! The traits at the seams between rooms, and the types that they speak in.
//!
//! In and out: vocabulary of `apimachinery`, what is served (`catalog`), and how it is read (`reads`). Above
//! it stand those who implement a trait and those who use it, who need not know each other. Never: implements
//! what it describes.

mod authentication;
mod authorization;
mod caches;
mod elsewhere;
mod eventual;
mod refusing;
mod verbs;

pub use authentication::{
    Authenticated, Authentication, Authenticator, Certificate, Presented, TokenUse, TokenUses,
};
pub use authorization::{
    Authorizer, Because, Decision, PathRule, Permission, ResourceRule, Rules, Undecided, told_together,
};
pub use caches::{Caches, Relief, Relieved};
pub use elsewhere::{
    Elsewhere, FollowElsewhere, KindElsewhere, KnownElsewhere, LeftElsewhere, NoticeElsewhere,
    ObjectElsewhere, ObjectsElsewhere, OwnerElsewhere, PlaceElsewhere, ResourceElsewhere, ServedElsewhere,
};
pub use eventual::{BoxFuture, Eventual};
pub use verbs::{
    AdmittedOptions, Answer, Api, Awaited, Body, Completes, Completion, DeletedCollection, MayCreate,
    Outcome, PatchKind, Read, ReviewRequest, Success, SuccessOf,
};
