//! mutate, validate, authorize and validate by policy: who may fill in, and who may refuse.

use std::sync::Arc;

use forebay_admission::Tools;
use forebay_api::Eventual;
use forebay_apimachinery::Status;
use forebay_strategy as strategy;

use super::flow::{Flow, Passed};
use super::{Input, Write, attributes};
use crate::context::Context;
use crate::incoming::name_of;
use crate::ruled::Ruled as _;

/// Plugins fill in what the client leaves out, or refuse.
pub(super) fn mutate<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    Eventual::later(async move {
        let Write { verb, target, old, mode, proposed, .. } = write;
        let attributes = attributes(verb, target, old.as_ref(), *mode);
        context.admission.mutate(&attributes, proposed, &tools(context)).await.map(|()| Flow::Next)
    })
}

/// What the kind's rules, its schema and plugins have against the object.
pub(super) fn validate(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    let (target, served) = (write.target, write.served());
    let Write { verb, old, mode, proposed, .. } = &*write;
    let mut causes =
        context.admission.causes(&attributes(verb, target, old.as_ref(), *mode), proposed, &tools(context));
    let subresource = write.subresource();
    let (name, remarks) = match (&write.input, old) {
        (Input::Review(_), _) => return validate_review(write),
        (_, None) if write.is_new_object() => {
            causes.extend(strategy::validate_create(&served.rules(), proposed));
            causes.extend(served.validate_fields(proposed, None));
            (name_of(proposed), served.warnings(proposed, None))
        }
        (_, Some(old)) if write.is_change() => {
            causes.extend(strategy::validate_update(&served.rules(), subresource, proposed, old));
            causes.extend(served.validate_fields(proposed, Some(old)));
            (target.name(), served.warnings(proposed, Some((subresource, old))))
        }
        _ => return Ok(()),
    };
    if !causes.is_empty() {
        return Err(served.invalid(name, causes));
    }
    write.remarks = remarks;
    Ok(())
}

fn validate_review(write: &Write<'_>) -> Result<(), Status> {
    let gvk = write.kind_sent()?;
    if &*gvk.group == "authorization.k8s.io" && &*gvk.kind != "SelfSubjectRulesReview" {
        let causes = strategy::validate_access_review(&gvk.kind, &write.proposed);
        if !causes.is_empty() {
            // The kind is lost on the way to where upstream validates.
            return Err(Status::invalid(&gvk.group, "", "", causes));
        }
    }
    Ok(())
}

/// Who was let in to update is asked for the right to create, once the object is valid, as kube-apiserver does.
pub(super) fn authorize<'a>(write: &'a mut Write<'_>) -> Passed<'a> {
    match write.may_create.take() {
        Some(may_create) => Eventual::later(async { may_create.ask().wait().await.map(|()| Flow::Next) }),
        None => Eventual::Now(Ok(Flow::Next)),
    }
}

/// Plugins refuse what is valid and yet may not be.
pub(super) fn by_policy<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    Eventual::later(async move {
        let Write { verb, target, old, mode, proposed, .. } = &*write;
        let attributes = attributes(verb, target, old.as_ref(), *mode);
        context.admission.validate(&attributes, proposed, &tools(context)).await.map(|()| Flow::Next)
    })
}

fn tools(context: &Context) -> Tools<'_> {
    Tools { lookup: context, clock: &context.clock, random: &context.random }
}
