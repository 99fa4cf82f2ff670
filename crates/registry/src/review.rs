//! What is answered and not stored: reviews of identity and of access, requests for tokens.
//!
//! In: a body. Out: the object, checked as far as that takes nobody's identity; and an object's JSON. The answers are the
//! edge's, where it is known who asks.

use bytes::Bytes;
use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{GroupVersionKind, Status};
use forebay_schema::builtin::{codec, table};
use serde_json::Value;

use crate::create::place;
use crate::incoming::{self, Incoming};
use crate::request::{Body, Target};
use forebay_strategy::validate_access_review;

/// What the server fills in, and a client's word counts nothing about.
const SYSTEM_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Reads the body of a POST to what is not stored.
///
/// # Errors
/// 400 and 422 in kube-apiserver's words.
pub(crate) fn read_review(target: &Target, body: &Body, options: &CreateOptions) -> Result<Incoming, Status> {
    let served = &target.served;
    let subresource = target.subresource.as_deref().and_then(|name| served.subresource(name));
    let gvk = subresource.map_or(&served.gvk, |subresource| &subresource.gvk);
    let mut incoming = incoming::read(target, gvk, body, options.field_validation)?;
    place(target, &mut incoming.value)?;
    if subresource.is_none()
        && let Some(metadata) = incoming.value["metadata"].as_object_mut()
    {
        metadata.retain(|name, _| !SYSTEM_FIELDS.contains(&name.as_str()));
    }
    if &*gvk.group == "authorization.k8s.io" && &*gvk.kind != "SelfSubjectRulesReview" {
        let causes = validate_access_review(&gvk.kind, &incoming.value);
        if !causes.is_empty() {
            // The kind is lost on the way to where upstream validates.
            return Err(Status::invalid(&gvk.group, "", "", causes));
        }
    }
    Ok(incoming)
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
