//! PUT and PATCH, which differ in what a write is decoded from.

use std::sync::Arc;

use forebay_apimachinery::options::{CreateOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Reason, Status, Verb};
use forebay_catalog::errors;
use forebay_catalog::limits::ROUNDS_MAX;
use forebay_catalog::store::Done;

use crate::context::{Context, whole};
use crate::create;
use crate::patch::Patch;
use crate::ruled::Ruled as _;
use crate::services;
use crate::write::{Input, Write, rounds, scale};
use forebay_api::{Answer, Body, MayCreate, Outcome, PatchKind};
use forebay_catalog::Target;

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

/// Changes the object, or creates it where the kind allows that. Which of both it is may change meanwhile,
/// and is looked at again then.
async fn update_object(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &UpdateOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    let store = target.served.stored()?;
    for _ in 0..ROUNDS_MAX {
        let mut write = Write::new(Verb::Update, target, input(target, body), options);
        write.store = Some(store.clone());
        rounds::read(&mut write, context).await?;
        let key = store.key(target.namespace(), target.name());
        if creates(target) && store.live(&key).await?.is_none() {
            match create_instead(context, target, body, options, may_create).await {
                Err(status) if status.reason == Reason::AlreadyExists => {}
                created => return created,
            }
        }
        match rounds::change(&mut write, context).await {
            Ok(()) => return answer(write),
            // It went meanwhile, and may be there again by now.
            Err(status) if creates(target) && status == target.not_found() => {}
            Err(status) => return Err(write.refused(status)),
        }
    }
    Err(errors::too_contended())
}

fn input<'b>(target: &Target, body: &'b Body) -> Input<'b> {
    if target.subresource.as_deref() == Some("scale") { Input::Scale(body) } else { Input::Object(body) }
}

/// Whether a PUT creates what is not there. That of a status does, too, where that of the object does:
/// upstream asks the same strategy.
pub(crate) fn creates(target: &Target) -> bool {
    let is_whole = matches!(target.subresource.as_deref(), None | Some("status"));
    is_whole && target.served.rules().flags().create_on_update
}

async fn create_instead(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &UpdateOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    let options = CreateOptions {
        dry_run: options.dry_run,
        field_manager: options.field_manager.clone(),
        field_validation: options.field_validation,
    };
    // What takes part in Services is driven to its end already.
    create::create_object(context, target, body, &options, may_create).await
}

/// Patches an object, or one of its subresources. Retried inside the server until it commits, so that
/// concurrent patches of one object all succeed, unless the patch names a resourceVersion.
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
    let mut write = Write::new(Verb::Update, target, input, options);
    write.store = Some(target.served.stored()?);
    let changed = rounds::change(&mut write, context).await;
    changed.map_err(|status| write.refused(status))?;
    answer(write)
}

/// The answer to a PUT or PATCH that was carried out.
///
/// # Errors
/// What is stored does not fit its kind.
pub(crate) fn answer(mut write: Write<'_>) -> Result<Answer, Status> {
    let (served, warnings) = (write.served(), write.warnings());
    let (object, is_gone) = match write.done {
        Some(Done::Put { object } | Done::Kept { object }) => (object, false),
        Some(Done::Deleted { object, .. }) => (object, true),
        None => return Err(Status::internal("nothing was written")),
    };
    if matches!(write.input, Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_)) {
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
