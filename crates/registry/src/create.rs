//! POST of an object, and the create that a PUT may come to.

use std::sync::Arc;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Reason, Status, Verb};
use forebay_catalog::store::Mode;

use crate::context::{Context, whole};
use crate::incoming;
use crate::request::{Answer, Body, MayCreate, Outcome, Target};
use crate::services;
use crate::subresources;
use crate::write::{Input, Write, rounds};

/// Creates an object, or what a subresource makes of a POST.
///
/// # Errors
/// 400, 403, 404, 409 and 422 in kube-apiserver's words.
pub(crate) async fn create(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
) -> Result<Answer, Status> {
    if target.subresource.is_some() || target.served.is("", "bindings") {
        return subresources::create(context, target, body, options).await;
    }
    if !services::take_part(&target.served) {
        return create_object(context, target, body, options, None).await;
    }
    let (owned, target, body, options) = (context.clone(), target.clone(), body.clone(), options.clone());
    let work = async move { create_object(&owned, &target, &body, &options, None).await };
    services::to_the_end(context, work).await
}

/// - `may_create`: asked once the object is valid, where a PUT creates.
pub(crate) async fn create_object(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    let served = &target.served;
    if served.kind.is_terminating() {
        return Err(terminating(target, body));
    }
    let mode = Mode::of(options.dry_run);
    let mut write = Write::new(Verb::Create, target, Input::Object(body), mode, options.field_validation);
    write.store = Some(context.store_of(served)?);
    write.may_create = may_create;
    let object = rounds::create(&mut write, context).await?;
    let outcome = Outcome::Created(match mode {
        Mode::DryRun => served.without_revision(&object)?,
        Mode::Commit => whole(served, &object, None),
    });
    Ok(Answer { outcome, warnings: write.warnings() })
}

fn terminating(target: &Target, body: &Body) -> Status {
    let served = &target.served;
    let name = incoming::name_in(body, &target.lease);
    let message = format!(
        "{} {name:?} is forbidden: create not allowed while custom resource definition is terminating",
        served.gvr.group_resource()
    );
    Status::new(Reason::Forbidden, message).about(served.group(), served.resource(), &name)
}
