//! Who one is, and whom a token stands for.
//!
//! In: the one who asks, or a token. Out: a `SelfSubjectReview` or a `TokenReview` with its status.
//!
//! Source: kubernetes v1.36.3 `registry/authentication`.

use forebay_apimachinery::{Caller, Status};
use serde_json::{Value, json};

use forebay_reads::rfc3339;

use super::texts::texts;
use crate::handler::{Handler, Head};

/// Who asks, as the server sees it.
pub fn self_subject(handler: &Handler, head: &Head) -> Value {
    json!({
        "metadata": { "creationTimestamp": rfc3339(handler.timestamp()) },
        "status": { "userInfo": user_info(&head.asker.caller()) },
    })
}

/// # Errors
/// 400 without a token.
pub fn has_token(review: &Value) -> Result<(), Status> {
    match review["spec"]["token"].as_str().unwrap_or("") {
        "" => Err(Status::bad_request("token is required for TokenReview in authentication")),
        _ => Ok(()),
    }
}

/// Whom a token stands for.
pub async fn token(handler: &Handler, mut review: Value) -> Value {
    let token = review["spec"]["token"].as_str().unwrap_or("").to_string();
    let audiences = texts(&review["spec"]["audiences"]);
    review["status"] = match handler.authenticator.review(&token, &audiences).await {
        Ok(known) => json!({
            "authenticated": true,
            "user": user_info(&known.caller),
            "audiences": known.audiences,
        }),
        Err(why) => json!({ "user": {}, "error": why.to_string() }),
    };
    review
}

fn user_info(user: &Caller) -> Value {
    json!({ "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra })
}
