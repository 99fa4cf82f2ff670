//! What is answered and not stored: reviews of identity and of access, requests for tokens.
//!
//! In: a body. Out: the object, checked as far as that takes nobody's identity. The answers are the edge's,
//! where it is known who asks.

use std::sync::Arc;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Status, Verb};

use crate::context::Context;
use crate::write::{Input, Write, rounds};
use forebay_api::{Body, ReviewRequest};
use forebay_catalog::Target;

/// Reads the body of a POST to what is not stored.
///
/// # Errors
/// 400 and 422 in kube-apiserver's words.
pub(crate) async fn review(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
) -> Result<ReviewRequest, Status> {
    let mut write = Write::new(Verb::Create, target, Input::Review(body), options);
    let judged = rounds::judge(&mut write, context).await;
    judged.map_err(|status| write.refused(status))?;
    let evaluation_error = forebay_strategy::evaluation_error(&write.proposed);
    Ok(ReviewRequest { warnings: write.warnings(), value: write.proposed, evaluation_error })
}
