//! charge: what a write uses is counted in the quotas of its namespace, once, however many rounds it takes.
//!
//! A round that finds another object there may need more than the one before: that is counted, too.
//! In: a write that everybody else lets through. Out: the same, counted; 403 where a quota has not as much.
//! Never: gives back what a write that fails later was counted for: that is the controller's, as upstream.

use std::sync::Arc;

use forebay_api::Eventual;
use forebay_apimachinery::Status;
use forebay_catalog::store::Mode;
use forebay_quota::{Charge, DeviceClasses, Evaluator, QuotaSubject, Unsaid};
use serde_json::Value;

use super::flow::{Flow, Passed};
use super::timed::{Timed, operation, timed};
use super::{Write, attributes};
use crate::context::Context;
use crate::quota_queue::Refused;
use crate::quotas;

pub(super) fn charge<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    let request = match request(write, context) {
        Ok(Some(request)) => request,
        Ok(None) => return Eventual::Now(Ok(Flow::Next)),
        Err(unknown) => return Eventual::Now(Err(unknown)),
    };
    Eventual::later(async move {
        let is_dry_run = write.mode == Mode::DryRun;
        let of = (Timed::ResourceQuota, operation(&write.verb));
        timed(context, of, async {
            let (target, charged) = (write.target, &mut write.charged);
            let counted = quotas::charge(context, target, request, is_dry_run, charged).await;
            counted.map(|()| Flow::Next).map_err(|refused| match refused {
                Refused::ByQuota(why) => {
                    let Write { verb, target, old, mode, proposed, .. } = &*write;
                    attributes(verb, target, old.as_ref(), *mode).forbidden(proposed, &why)
                }
                Refused::With(status) => status,
            })
        })
        .await
    })
}

/// What quotas look at; none where there is nothing to look at.
fn request(write: &Write<'_>, context: &Context) -> Result<Option<Charge>, Status> {
    let served = write.served();
    if !served.namespaced || !context.admission.has("ResourceQuota") {
        return Ok(None);
    }
    let Some(evaluator) = Evaluator::of(served.group(), served.resource()) else { return Ok(None) };
    let (subresource, old) = (write.subresource().unwrap_or(""), write.old.as_ref());
    if !evaluator.handles(&write.verb, subresource, &write.proposed, old) {
        return Ok(None);
    }
    let limited = context.admission.limited();
    if limited.is_empty() && !quotas::may_limit(context, write.target.namespace()) {
        return Ok(None);
    }
    let classes = match evaluator {
        Evaluator::ResourceClaims => quotas::device_classes(context)?,
        _ => DeviceClasses::default(),
    };
    let now = context.timestamp().as_second();
    let subject =
        |object: &Value| object.as_object().map(|object| QuotaSubject::of(&evaluator, object, &classes, now));
    let (Some(new), old) = (subject(&write.proposed), old.and_then(subject)) else { return Ok(None) };
    let unsaid = match (&evaluator, write.proposed.as_object()) {
        (Evaluator::Pods, Some(pod)) => Unsaid::of(pod),
        _ => Unsaid::default(),
    };
    let to_cover = limited.of_subject(served.group(), served.resource(), &new);
    Ok(Some(Charge {
        is_status: subresource == "status",
        new,
        old,
        unsaid,
        classes,
        evaluator: evaluator.clone(),
        to_cover,
        charged: write.charged.clone(),
    }))
}
