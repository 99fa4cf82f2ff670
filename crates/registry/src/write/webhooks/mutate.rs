//! What mutating webhooks make of a write: one after the other, each on what those before it have left.
//!
//! In: a write whose object is as the client, plugins and policies have it. Out: the same with the patches,
//! or a refusal. Never: a webhook in the second round that was not asked in the first.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/mutating/dispatcher.go`.

use std::sync::Arc;

use forebay_apimachinery::{Reason, Status, json};
use forebay_webhooks::{CallFailure, Decided, Reinvoked, Webhook, WebhookSort};

use super::ask::{Asking, Heard, Invocation, Shown, are_asked, keep};
use crate::context::Context;
use crate::limits::TOLD_MAX;
use crate::patch::{self, Unapplied};
use crate::write::Write;
use crate::write::policies::{Unknown, take};

/// By which name they are turned off.
const MUTATING: &str = "MutatingAdmissionWebhook";
/// What an audit log has it by, and its patch.
const ANNOTATED: &str = "mutation.webhook.admission.k8s.io/";
const PATCHED: &str = "patch.webhook.admission.k8s.io/";

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
    if reinvoked.has_changed() {
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
    let round = reinvoked.round();
    for (at, webhook) in hooks.iter().enumerate() {
        let Some(invocation) = asking.matched(write, webhook)? else { continue };
        if !reinvoked.is_asked(webhook) && !webhook.predicates.has_conditions() {
            continue;
        }
        let mut shown = match last.take() {
            Some(shown) if shown.equivalent == invocation.equivalent => shown,
            _ => Shown::of(&asking.view, write, invocation.equivalent).await?,
        };
        if asking.holds(write, &invocation, WebhookSort::Mutating, &mut shown).await?
            && reinvoked.is_asked(webhook)
        {
            let begun = asking.begin(webhook, WebhookSort::Mutating);
            let place = format!("round_{round}_index_{at}");
            let called = call(write, &asking, (&invocation, &place), &mut shown).await;
            let mutated = called
                .as_ref()
                .is_ok_and(|patched| patched.is_some_and(|differs| reinvoked.is_change(differs)));
            reinvoked.asked(webhook, mutated);
            let key = |before: &str| format!("{before}{ANNOTATED}{place}");
            write.target.context.annotate(|| (key(""), webhook.noted_mutation(mutated)));
            let is_error = called.is_err();
            if let Some(refusal) = asking.counted(begun, called.err()) {
                return Err(refusal);
            }
            if is_error {
                write.target.context.annotate(|| (key("failed-open."), webhook.name.to_string()));
            }
        }
        last = Some(shown);
    }
    Ok(())
}

/// Calls one; whether what it has made of the object differs, or nothing if it has made nothing of it.
async fn call(
    write: &mut Write<'_>,
    asking: &Asking<'_>,
    (invocation, place): (&Invocation, &str),
    shown: &mut Shown,
) -> Result<Option<bool>, CallFailure> {
    let context = write.target.context.clone();
    let asked = asking.call(write, invocation, WebhookSort::Mutating, shown);
    let Heard { judgement, .. } = &mut context.away(asked).await?;
    let room = TOLD_MAX.saturating_sub(write.told.len());
    write.told.extend(std::mem::take(&mut judgement.warnings).into_iter().take(room));
    let operations = match std::mem::take(&mut judgement.decided) {
        Decided::Denied(status) => return Err(CallFailure::Rejected(status)),
        Decided::Allowed(operations) if operations.is_empty() => return Ok(None),
        Decided::Allowed(_) | Decided::Unsupported(_) if !shown.has_object() => {
            return Err(forebay_webhooks::not_modifiable(&invocation.webhook).into());
        }
        Decided::Unsupported(failure) => return Err(failure),
        Decided::Allowed(operations) => operations,
    };
    let lease = write.target.lease.clone();
    let trees = shown.trees(&lease)?;
    let Some(object) = &trees.object else { return Ok(None) };
    lease.charge(2 * json::weight::of(object)).map_err(Status::from)?;
    let mut before = object.clone();
    let noted = context.wants_object().then(|| invocation.webhook.noted_patch(&operations));
    let patched = patch::apply_made(object.clone(), operations, &lease).map_err(unapplied)?;
    let gvk = asking.view.kind_shown(write, invocation.equivalent);
    let served = asking.view.served_as(invocation.equivalent);
    let served = served.as_deref().unwrap_or(&write.target.served);
    take(write, served, &gvk, patched, Unknown::Dropped, trees).await.map_err(internal)?;
    noted.into_iter().for_each(|noted| context.annotate(|| (format!("{PATCHED}{place}"), noted)));
    // A null in the text that stands for nothing is no change.
    let is_changed = trees.object.as_ref() != Some(&before) && {
        served.kind.normalize(&mut before, &lease).is_err() || trees.object.as_ref() != Some(&before)
    };
    shown.refreshed(write)?;
    Ok(Some(is_changed))
}

fn unapplied(why: Unapplied) -> CallFailure {
    match why {
        Unapplied::TestFailed(path) => {
            Status::internal(format!("testing value {path} failed: test failed")).into()
        }
        Unapplied::Why(why) => Status::internal(why).into(),
        // It is as if there had been no answer: its failure policy says whether that counts.
        Unapplied::TooMuch(why) => CallFailure::unavailable(why),
        Unapplied::Refused(status) => status.into(),
    }
}

/// What a webhook has made of an object is no fault of the client.
fn internal(status: Status) -> Status {
    match status.reason {
        Reason::InternalError | Reason::RequestEntityTooLarge | Reason::TooManyRequests => status,
        // A Scale, which is judged by the time that it is taken over: nothing else is invalid here.
        Reason::Invalid => status,
        // In the words of a decoder, which was asked for no kind.
        _ => {
            let why = status.message.split_once(" cannot be handled as a ");
            let why = why.and_then(|(_, why)| why.split_once(": "));
            Status::internal(why.map_or(&*status.message, |(_, why)| why))
        }
    }
}
