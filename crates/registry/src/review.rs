//! What is answered and not stored: reviews of identity and of access, requests for tokens, connections.
//!
//! In: a body, or what a request says of a connection. Out: the object, checked as far as that takes nobody's
//! identity. The answers are the edge's, where it is known who asks.
//!
//! Source, of connections: apiserver v0.36.3 `endpoints/handlers/rest.go`.

use std::sync::Arc;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Status, Verb, json};
use serde_json::Value;

use crate::context::Context;
use crate::write::{Input, Write, rounds};
use forebay_api::{AdmittedOptions, Body, Completes, ReviewRequest};
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
    completes: Option<Completes>,
) -> Result<ReviewRequest, Status> {
    let mut write = Write::new(Verb::Create, target, Input::Review(body), options);
    let judged = rounds::judge(&mut write, context, completes).await;
    judged.map_err(|status| write.refused(status))?;
    let evaluation_error = forebay_strategy::evaluation_error(&write.proposed);
    Ok(ReviewRequest { warnings: write.warnings(), value: write.proposed, evaluation_error })
}

/// Asks plugins, policies and webhooks about a connection.
///
/// # Errors
/// The refusal.
pub(crate) async fn connection(
    context: &Arc<Context>,
    target: &Target,
    options: Value,
) -> Result<AdmittedOptions, Status> {
    target.lease.charge(json::weight::of(&options))?;
    let asked = CreateOptions::default();
    let mut write = Write::new(Verb::Connect, target, Input::Connection, &asked);
    write.proposed = options;
    let admitted = rounds::admit(&mut write, context).await;
    admitted.map_err(|status| write.refused(status))?;
    Ok(AdmittedOptions { warnings: write.warnings(), value: write.proposed })
}
