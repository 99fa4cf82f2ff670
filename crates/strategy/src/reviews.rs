//! What is answered and not stored: what a review says where its client says nothing, and what is wrong with
//! one.
//!
//! In: a review as its type has it. Out: the same with defaults; a refusal. Never: an answer; what a token is
//! asked for, which its answerer knows.
//!
//! Source: kubernetes v1.36.3 `apis/authentication/v1/defaults.go`, `apis/authorization/validation`.

use forebay_apimachinery::{GroupVersionKind, Status};
use serde_json::{Value, json};

use super::authorization::validate_access_review;
use super::value::child_made;

/// How long a token is good for that nobody says it of, in seconds.
const TOKEN_SECONDS: i64 = 60 * 60;

/// Fills in what a client may leave out, as the decoder of the kind's version does.
pub fn default_review(gvk: &GroupVersionKind, review: &mut Value) {
    if (&*gvk.group, &*gvk.kind) != ("authentication.k8s.io", "TokenRequest") {
        return;
    }
    let Some(review) = review.as_object_mut() else { return };
    let seconds = child_made(review, "spec").entry("expirationSeconds").or_insert(Value::Null);
    if seconds.is_null() {
        *seconds = json!(TOKEN_SECONDS);
    }
}

/// What is wrong with a review of access. Others are looked at by who answers them.
///
/// # Errors
/// 422 with each cause.
pub fn validate_review(gvk: &GroupVersionKind, review: &Value) -> Result<(), Status> {
    if &*gvk.group != "authorization.k8s.io" || &*gvk.kind == "SelfSubjectRulesReview" {
        return Ok(());
    }
    let causes = validate_access_review(&gvk.kind, review);
    // The kind is lost on the way to where upstream validates.
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid(&gvk.group, "", "", causes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_an_hour_unless_its_client_says_for_how_long() {
        let token = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest");
        let review = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenReview");
        for (gvk, sent, want) in [
            (&token, json!({}), json!({ "spec": { "expirationSeconds": 3600 } })),
            (
                &token,
                json!({ "spec": { "audiences": ["a"] } }),
                json!({ "spec": { "audiences": ["a"], "expirationSeconds": 3600 } }),
            ),
            (
                &token,
                json!({ "spec": { "expirationSeconds": null } }),
                json!({ "spec": { "expirationSeconds": 3600 } }),
            ),
            (
                &token,
                json!({ "spec": { "expirationSeconds": 0 } }),
                json!({ "spec": { "expirationSeconds": 0 } }),
            ),
            (&review, json!({}), json!({})),
        ] {
            let mut defaulted = sent.clone();
            default_review(gvk, &mut defaulted);
            assert_eq!(defaulted, want, "{sent}");
        }
    }
}
