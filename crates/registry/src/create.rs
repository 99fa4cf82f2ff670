//! POST of an object, and the create that a PUT may come to.

use std::sync::Arc;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Reason, Status, Verb};
use forebay_catalog::store::Mode;

use crate::context::{Context, whole};
use crate::incoming;
use crate::services;
use crate::subresources;
use crate::write::{Input, Write, rounds};
use forebay_api::{Answer, Body, MayCreate, Outcome};
use forebay_catalog::Target;

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
        return Err(terminating(target, &incoming::name_in(body, &target.lease)));
    }
    let mut write = Write::new(Verb::Create, target, Input::Object(body), options);
    write.may_create = may_create;
    carry_out(write, context).await
}

/// Creates what a write says.
///
/// # Errors
/// As [`create`].
pub(crate) async fn carry_out(mut write: Write<'_>, context: &Arc<Context>) -> Result<Answer, Status> {
    let served = write.served();
    write.store = Some(served.stored()?);
    let created = rounds::create(&mut write, context).await;
    let object = created.map_err(|status| write.refused(status))?;
    let outcome = Outcome::Created(match write.mode {
        Mode::DryRun => served.not_carried_out(&object, write.version_sent.take())?,
        Mode::Commit => whole(served, &object, None),
    });
    Ok(Answer { outcome, warnings: write.warnings() })
}

/// Nothing new is taken of what is going.
pub(crate) fn terminating(target: &Target, name: &str) -> Status {
    let served = &target.served;
    let message = format!(
        "{} {name:?} is forbidden: create not allowed while custom resource definition is terminating",
        served.gvr.group_resource()
    );
    Status::new(Reason::Forbidden, message).about(served.group(), served.resource(), name)
}
