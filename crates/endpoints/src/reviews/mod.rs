//! What is answered and not stored: who one is, what somebody may do, tokens.
//!
//! In: the object of a POST to one of these resources. Out: the object with its status. Asks the same
//! authenticator and the same authorizer that every request is judged by, so that an answer here is what a
//! request would have met.

mod access;
mod identity;
mod texts;
mod token_request;

use std::sync::Arc;

use bytes::Bytes;
use forebay_api::{Answer, Completes, Outcome, ReviewRequest};
use forebay_apimachinery::{GroupVersionKind, Status};
use forebay_catalog::Target;
use forebay_schema::builtin::{codec, table};
use serde_json::Value;

use crate::handler::{Handler, Head};
use crate::status::Failure;

/// What a target is, if it is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    SelfSubject,
    Token,
    /// `SubjectAccessReview` and its kin.
    Access,
    SelfSubjectRules,
    /// A token for a service account.
    TokenRequest,
}

/// The review that `target` is.
pub fn of(target: &Target) -> Option<Review> {
    let served = &target.served;
    match (served.group(), served.resource()) {
        ("", "serviceaccounts") if target.subresource.as_deref() == Some("token") => {
            Some(Review::TokenRequest)
        }
        ("authentication.k8s.io", "selfsubjectreviews") => Some(Review::SelfSubject),
        ("authentication.k8s.io", "tokenreviews") => Some(Review::Token),
        ("authorization.k8s.io", "selfsubjectrulesreviews") => Some(Review::SelfSubjectRules),
        ("authorization.k8s.io", _) => Some(Review::Access),
        _ => None,
    }
}

/// What is made of a review before rules and webhooks judge it, and refused whoever may.
pub fn completes(handler: &Handler, review: Review) -> Option<Completes> {
    match review {
        Review::TokenRequest => Some(Arc::new(token_request::Completing::of(handler))),
        Review::Token => Some(Arc::new(identity::has_token)),
        Review::SelfSubjectRules => Some(Arc::new(access::has_namespace)),
        Review::SelfSubject | Review::Access => None,
    }
}

/// Answers a POST that is complete.
///
/// # Errors
/// 400 and 422 for what makes no sense.
pub async fn answer(
    handler: &Handler,
    head: &Head,
    target: &Target,
    review: Review,
    incoming: ReviewRequest,
) -> Result<Answer, Failure> {
    if review == Review::TokenRequest {
        return token_request::answer(handler, head, target, incoming).await;
    }
    let mut object = match review {
        Review::SelfSubject => identity::self_subject(handler, head),
        Review::Token => identity::token(handler, incoming.value).await,
        Review::Access => access::subject(handler, head, incoming.value, &incoming.evaluation_error).await,
        Review::SelfSubjectRules | Review::TokenRequest => access::rules(handler, head, &incoming.value),
    };
    let gvk = &target.served.gvk;
    object["kind"] = (&*gvk.kind).into();
    object["apiVersion"] = gvk.api_version().to_string().into();
    let json = json(gvk, &object)?;
    Ok(Answer { outcome: Outcome::Created(json), warnings: incoming.warnings })
}

/// The JSON of an object that is answered.
///
/// # Errors
/// A value that does not fit its kind.
fn json(gvk: &GroupVersionKind, review: &Value) -> Result<Bytes, Status> {
    let kind = table().kind(&gvk.group, &gvk.version, &gvk.kind);
    let kind = kind.ok_or_else(|| Status::internal(format!("no kind {:?} is registered", gvk.kind)))?;
    let mut out = Vec::with_capacity(512);
    codec::write_json(kind.ty, review, &mut out).map_err(Status::internal)?;
    out.push(b'\n');
    Ok(Bytes::from(out))
}
