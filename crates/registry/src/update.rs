//! PUT and PATCH, which differ in what a write is decoded from.

use std::sync::Arc;

use forebay_apimachinery::options::{CreateOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Status, Verb};
use forebay_catalog::store::{Done, Mode};

use crate::context::{Context, whole};
use crate::create;
use crate::patch::Patch;
use crate::request::{Answer, Body, MayCreate, Outcome, PatchKind, Target};
use crate::ruled::Ruled as _;
use crate::services;
use crate::write::{Input, Write, rounds, scale};

/// Replaces an object, or one of its subresources.
///
/// - `may_create`: asked before it creates; none where the server itself asks.
///
/// # Errors
/// 400, 404, 409 and 422 in kube-apiserver's words, and what `may_create` says.
///
/// Source: apiserver v1.36.3 `endpoints/handlers/update.go` (`withAuthorization`).
pub(crate) async fn update(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &UpdateOptions,
    may_create: Option<MayCreate>,
) -> Result<Answer, Status> {
    if !services::take_part(&target.served) {
        return update_object(context, target, body, options, may_create.as_ref()).await;
    }
    let (owned, target, body, options) = (context.clone(), target.clone(), body.clone(), options.clone());
    let work = async move { update_object(&owned, &target, &body, &options, may_create.as_ref()).await };
    services::to_the_end(context, work).await
}

async fn update_object(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &UpdateOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    let served = &target.served;
    let is_scale = target.subresource.as_deref() == Some("scale");
    let input = if is_scale { Input::Scale(body) } else { Input::Object(body) };
    let mut write =
        Write::new(Verb::Update, target, input, Mode::of(options.dry_run), options.field_validation);
    let store = context.store_of(served)?;
    write.store = Some(store.clone());
    rounds::read(&mut write, context).await?;
    let creates = target.subresource.is_none() && served.rules().flags().create_on_update;
    if creates && store.live(&store.key(target.namespace(), target.name())).await?.is_none() {
        return create_instead(context, target, body, options, may_create).await;
    }
    rounds::change(&mut write, context).await?;
    answer(write)
}

async fn create_instead(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &UpdateOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    let collection = Target { name: None, ..target.clone() };
    let options = CreateOptions {
        dry_run: options.dry_run,
        field_manager: options.field_manager.clone(),
        field_validation: options.field_validation,
    };
    // What takes part in Services is driven to its end already.
    create::create_object(context, &collection, body, &options, may_create).await
}

/// Patches an object, or one of its subresources. Retried inside the server until it commits, so that concurrent
/// patches of one object all succeed, unless the patch names a resourceVersion.
///
/// # Errors
/// 400, 404, 409, 415 and 422 in kube-apiserver's words.
pub(crate) async fn patch(
    context: &Arc<Context>,
    target: &Target,
    kind: PatchKind,
    body: &[u8],
    options: &PatchOptions,
) -> Result<Answer, Status> {
    if !services::take_part(&target.served) {
        return patch_object(context, target, kind, body, options).await;
    }
    let (owned, target, body, options) = (context.clone(), target.clone(), body.to_vec(), options.clone());
    services::to_the_end(context, async move { patch_object(&owned, &target, kind, &body, &options).await })
        .await
}

async fn patch_object(
    context: &Arc<Context>,
    target: &Target,
    kind: PatchKind,
    body: &[u8],
    options: &PatchOptions,
) -> Result<Answer, Status> {
    let patch = Patch::parse(target, kind, body)?;
    let is_scale = target.subresource.as_deref() == Some("scale");
    let input = if is_scale { Input::ScalePatch(&patch) } else { Input::Patch(&patch) };
    let mut write =
        Write::new(Verb::Update, target, input, Mode::of(options.dry_run), options.field_validation);
    write.store = Some(context.store_of(&target.served)?);
    rounds::change(&mut write, context).await?;
    answer(write)
}

/// The answer to a PUT or PATCH that was carried out.
///
/// # Errors
/// What is stored does not fit its kind.
fn answer(mut write: Write<'_>) -> Result<Answer, Status> {
    let (served, warnings) = (write.served(), write.warnings());
    let (object, is_gone) = match write.done {
        Some(Done::Put { object, .. } | Done::Kept { object, .. }) => (object, false),
        Some(Done::Deleted { object, .. }) => (object, true),
        None => return Err(Status::internal("nothing was written")),
    };
    if matches!(write.input, Input::Scale(_) | Input::ScalePatch(_)) {
        // The Scale shown is that of the stored object, even if this ends it.
        let scale = scale::of(write.target, &object)?;
        return Ok(Answer { outcome: Outcome::Object(scale), warnings });
    }
    let object = match (write.last.take(), &write.store) {
        (Some(last), Some(store)) if is_gone => {
            store.decode(object.key().clone(), object.revision(), &last)?
        }
        _ => object,
    };
    Ok(Answer { outcome: Outcome::Object(whole(served, &object, None)), warnings })
}
