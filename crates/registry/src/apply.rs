//! PATCH that applies: what its client wants of an object is made so, and is its client's from there.
//!
//! In: a configuration. Out: the object, created or changed. Never: merges, which
//! `fieldmanager` does.
//!
//! Source: apiserver v0.36.3 `endpoints/handlers/patch.go` (`applyPatcher`).

use std::sync::Arc;

use forebay_apimachinery::options::PatchOptions;
use forebay_apimachinery::{Reason, Status, Verb};
use forebay_catalog::limits::ROUNDS_MAX;
use forebay_catalog::{Target, errors};

use crate::configuration::Configuration;
use crate::context::Context;
use crate::write::{Input, Write, rounds};
use crate::{create, services, update};
use forebay_api::{Answer, Body, MayCreate};

/// Applies to what is there, or creates it. Retried inside the server while others write the same object.
///
/// - `may_create`: asked before it creates; none where the server itself asks.
///
/// # Errors
/// 400, 404, 409 and 422 in kube-apiserver's words.
pub(crate) async fn apply(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &PatchOptions,
    may_create: Option<MayCreate>,
) -> Result<Answer, Status> {
    if !services::take_part(&target.served) {
        return apply_object(context, target, body, options, may_create.as_ref()).await;
    }
    let (owned, target, body, options) = (context.clone(), target.clone(), body.clone(), options.clone());
    let work = async move { apply_object(&owned, &target, &body, &options, may_create.as_ref()).await };
    services::to_the_end(context, work).await
}

async fn apply_object(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &PatchOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    let config = match Configuration::parse(target, body, options.force) {
        // What is not there and is not created so is not found, whatever is applied.
        Err(_) if !creates(target) && !target.is_there().await? => return Err(target.not_found()),
        parsed => parsed?,
    };
    for _ in 0..ROUNDS_MAX {
        match change(context, target, &config, options).await {
            Err(status) if status.reason == Reason::NotFound && creates(target) => {}
            done => return done,
        }
        match create(context, target, &config, options, may_create).await {
            Err(status) if status.reason == Reason::AlreadyExists => {}
            done => return done,
        }
    }
    Err(errors::too_contended())
}

/// Whether an apply creates what is not there: an object, or by way of its status what a PUT creates so.
fn creates(target: &Target) -> bool {
    target.subresource.is_none() || update::creates(target)
}

async fn change(
    context: &Arc<Context>,
    target: &Target,
    config: &Configuration,
    options: &PatchOptions,
) -> Result<Answer, Status> {
    let is_scale = target.subresource.as_deref() == Some("scale");
    let input = if is_scale { Input::ScaleApply(config) } else { Input::Apply(config) };
    let mut write = Write::new(Verb::Update, target, input, options);
    write.store = Some(target.served.stored()?);
    let changed = rounds::change(&mut write, context).await;
    changed.map_err(|status| write.refused(status))?;
    update::answer(write)
}

async fn create(
    context: &Arc<Context>,
    target: &Target,
    config: &Configuration,
    options: &PatchOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    if target.served.kind.is_terminating() {
        return Err(create::terminating(target, target.name()));
    }
    let mut write = Write::new(Verb::Create, target, Input::Apply(config), options);
    write.may_create = may_create;
    create::carry_out(write, context).await
}
