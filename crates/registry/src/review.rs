//! What is answered and not stored: reviews of identity and of access, requests for tokens.
//!
//! In: a body. Out: the object, checked as far as that takes nobody's identity; and an object's JSON. The answers are the
//! edge's, where it is known who asks.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{GroupVersionKind, Status, Verb};
use forebay_catalog::store::Mode;
use forebay_schema::builtin::{codec, table};
use serde_json::Value;

use crate::context::Context;
use crate::incoming::Incoming;
use crate::request::{Body, Target};
use crate::write::{Input, Write, rounds};

/// Reads the body of a POST to what is not stored.
///
/// # Errors
/// 400 and 422 in kube-apiserver's words.
pub(crate) async fn read_review(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
) -> Result<Incoming, Status> {
    let mode = Mode::of(options.dry_run);
    let mut write = Write::new(Verb::Create, target, Input::Review(body), mode, options.field_validation);
    rounds::judge(&mut write, context).await?;
    Ok(Incoming { warnings: write.warnings(), value: write.proposed })
}

/// The JSON of an object that is answered.
///
/// # Errors
/// A value that does not fit its kind.
pub(crate) fn review_json(gvk: &GroupVersionKind, review: &Value) -> Result<Bytes, Status> {
    let kind = table().kind(&gvk.group, &gvk.version, &gvk.kind);
    let kind = kind.ok_or_else(|| Status::internal(format!("no kind {:?} is registered", gvk.kind)))?;
    let mut out = Vec::with_capacity(512);
    codec::write_json(kind.ty, review, &mut out).map_err(Status::internal)?;
    out.push(b'\n');
    Ok(Bytes::from(out))
}
