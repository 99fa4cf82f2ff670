//! What mutating webhooks make of a write: one after the other, each on what those before it have left.
//!
//! In: a write whose object is as the client, plugins and policies have it. Out: the same with the patches,
//! or a refusal. Never: a webhook in the second round that was not asked in the first.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/mutating/dispatcher.go`.

use std::sync::Arc;

use forebay_apimachinery::{Reason, Status, json};
use forebay_webhooks::{CallFailure, Decided, Webhook, WebhookSort};
use serde_json::Value;

use super::ask::{Asking, Invocation, Shown, are_asked, is_object, keep};
use super::reinvoked::Reinvoked;
use crate::context::Context;
use crate::limits::TOLD_MAX;
use crate::patch::{self, Unapplied};
use crate::write::policies::{Unknown, take};
use crate::write::{Input, Write, decode};

/// By which name they are turned off.
const MUTATING: &str = "MutatingAdmissionWebhook";

/// Passes a write by every mutating webhook that is in force for it. What they warn of goes to what is told.
///
/// # Errors
/// The first refusal.
pub(crate) async fn mutate(
    write: &mut Write<'_>,
    context: &Arc<Context>,
    reinvoked: &mut Reinvoked,
) -> Result<(), Status> {
    let hooks = context.in_force.mutating_webhooks();
    if hooks.is_empty() || !are_asked(context, write.served(), MUTATING) {
        return Ok(());
    }
    reinvoked.begin(&write.proposed);
    let lease = write.target.lease.clone();
    {
        let _trees = lease.scope();
        pass(write, context, &hooks, reinvoked).await?;
    }
    if reinvoked.is_changed {
        keep(write)?;
    }
    reinvoked.end(&write.proposed);
    Ok(())
}

async fn pass(
    write: &mut Write<'_>,
    context: &Arc<Context>,
    hooks: &[Arc<Webhook>],
    reinvoked: &mut Reinvoked,
) -> Result<(), Status> {
    let mut asking = Asking::of(write, context).await?;
    // The objects in the version that was asked about last.
    let mut last: Option<Shown> = None;
    for webhook in hooks {
        let Some(invocation) = asking.matched(write, webhook)? else { continue };
        if !reinvoked.is_asked(webhook) && !webhook.predicates.has_conditions() {
            continue;
        }
        let mut shown = match last.take() {
            Some(shown) if shown.equivalent == invocation.equivalent => shown,
            _ => Shown::of(&asking.view, write, invocation.equivalent).await?,
        };
        if asking.holds(write, &invocation, &shown)? && reinvoked.is_asked(webhook) {
            let begun = asking.begin(webhook, WebhookSort::Mutating);
            let called = call(write, &asking, &invocation, &mut shown).await;
            reinvoked.asked(webhook, matches!(called, Ok(true)));
            if let Some(refusal) = asking.counted(begun, called.err()) {
                return Err(refusal);
            }
        }
        last = Some(shown);
    }
    Ok(())
}

/// Calls one; whether it has changed the object.
async fn call(
    write: &mut Write<'_>,
    asking: &Asking<'_>,
    invocation: &Invocation,
    shown: &mut Shown,
) -> Result<bool, CallFailure> {
    let judgement = asking.call(write, invocation, WebhookSort::Mutating, shown).await?;
    let room = TOLD_MAX.saturating_sub(write.told.len());
    write.told.extend(judgement.warnings.into_iter().take(room));
    let operations = match judgement.decided {
        Decided::Denied(status) => return Err(CallFailure::Rejected(status)),
        Decided::Allowed(operations) if operations.is_empty() => return Ok(false),
        Decided::Allowed(operations) => operations,
    };
    let Some(object) = &shown.objects.object else {
        return Err(forebay_webhooks::not_modifiable(&invocation.webhook).into());
    };
    let lease = write.target.lease.clone();
    lease.charge(2 * json::weight::of(object)).map_err(Status::from)?;
    let before = object.clone();
    let patched = patch::apply_made(object.clone(), operations, &lease).map_err(unapplied)?;
    put(write, asking, invocation, patched, shown).await.map_err(internal)?;
    shown.refreshed(write)?;
    Ok(shown.objects.object.as_ref() != Some(&before))
}

/// Puts a patched object in the place of what was sent.
async fn put(
    write: &mut Write<'_>,
    asking: &Asking<'_>,
    invocation: &Invocation,
    patched: Value,
    shown: &mut Shown,
) -> Result<(), Status> {
    if is_object(&write.input) {
        let served = asking.view.served_as(invocation.equivalent);
        let served = served.as_deref().unwrap_or(&write.target.served);
        return take(write, served, &served.gvk, patched, Unknown::Dropped, &mut shown.objects).await;
    }
    write.target.lease.charge(json::weight::of(&patched))?;
    shown.objects.object = Some(patched.clone());
    match write.input {
        Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_) => {
            write.sent = patched;
            decode::normalize(write)
        }
        Input::Review(_) => {
            write.proposed = patched;
            Ok(())
        }
        _ => {
            write.sent = patched;
            Ok(())
        }
    }
}

fn unapplied(why: Unapplied) -> CallFailure {
    match why {
        Unapplied::TestFailed(path) => {
            Status::internal(format!("testing value {path} failed: test failed")).into()
        }
        Unapplied::Why(why) => Status::internal(why).into(),
        Unapplied::Refused(status) => status.into(),
    }
}

/// What a webhook has made of an object is no fault of the client.
fn internal(status: Status) -> Status {
    match status.reason {
        Reason::InternalError | Reason::RequestEntityTooLarge | Reason::TooManyRequests => status,
        _ => Status::internal(status.message),
    }
}
