//! Subresources whose body is not the object itself: scale, binding; eviction has a file of its own.
//!
//! In: a Scale, a Binding or an Eviction. Out: the object that it changes, through the same stages as every
//! write.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Reason, Status, Verb};
use forebay_reads::Freshness;
use serde_json::Map;

use crate::context::Context;
use crate::eviction;
use crate::get;
use crate::incoming::{self, name_of};
use crate::write::{Input, Write, rounds, scale};
use forebay_api::{Answer, Body, Outcome, Success, SuccessOf};
use forebay_catalog::{Served, Target};

/// The Scale of an object.
///
/// # Errors
/// As a GET of the object; 500 for a custom resource that says nothing of its replicas.
pub(crate) async fn get_scale(
    context: &Arc<Context>,
    target: &Target,
    freshness: Freshness,
) -> Result<Bytes, Status> {
    let object = get::get(context, target, freshness).await?;
    scale::of(target, &object)
}

/// POST to a subresource, and to `bindings`.
///
/// # Errors
/// 400, 404, 405, 409, 422 and 429 in kube-apiserver's words.
pub(crate) async fn create(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
) -> Result<Answer, Status> {
    let served = &target.served;
    let Some(subresource) = target.subresource.as_deref() else {
        return bind_what_is_named(context, target, body, options).await;
    };
    if served.subresource(subresource).is_none() {
        return Err(served.method_not_supported("update"));
    }
    match (served.group(), served.resource(), subresource) {
        ("", "pods", "binding") => bind(context, target, body, options, None).await,
        ("", "pods", "eviction") => evict(context, target, body, options).await,
        _ => Err(Status::new(
            Reason::MethodNotAllowed,
            format!("{}/{subresource} is not served by this server yet", served.gvr.group_resource()),
        )),
    }
}

/// POST to `bindings`: as to the `binding` of the pod that the body names.
async fn bind_what_is_named(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
) -> Result<Answer, Status> {
    let sent = incoming::read(target, &target.served.gvk, body, options.field_validation)?;
    let pods = context.catalog().resource("", "v1", "pods").cloned();
    let pods = pods.ok_or_else(|| target.served.method_not_supported("create"))?;
    let (name, subresource) = (Some(name_of(&sent.value).to_string()), Some("binding".into()));
    let pod = Target { served: pods, name, subresource, ..target.clone() };
    bind(context, &pod, &Body::Value(sent.value), options, Some(target.served.clone())).await
}

/// - `judged_as`: where it was posted to, if that is not the pod.
async fn bind(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
    judged_as: Option<Arc<Served>>,
) -> Result<Answer, Status> {
    let mut write = Write::new(Verb::Create, target, Input::Binding(body), options);
    write.judged_as = judged_as;
    write.store = Some(target.served.stored()?);
    rounds::read(&mut write, context).await?;
    if let Err(refusal) = rounds::change(&mut write, context).await {
        if refusal.reason == Reason::NotFound {
            // Plugins were to be asked before the pod was looked for: they may say that its namespace is
            // not there.
            rounds::ask_plugins(&mut write, context).await?;
        }
        return Err(refusal);
    }
    Ok(created())
}

async fn evict(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
) -> Result<Answer, Status> {
    let mut write = Write::new(Verb::Create, target, Input::Eviction(body), options);
    rounds::judge(&mut write, context, None).await?;
    eviction::evict(context, target, &write.sent, options.dry_run).await?;
    Ok(created())
}

/// As a POST that creates nothing answers.
fn created() -> Answer {
    Answer::plain(Outcome::Success(Success { of: SuccessOf::Subresource, details: Map::new() }))
}
