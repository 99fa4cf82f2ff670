//! What validating webhooks have against a write: all of them are asked at once.
//!
//! In: a write that is valid. Out: a refusal, or warnings. Never: a change.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/validating/dispatcher.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_webhooks::{CallFailure, Decided, Webhook, WebhookSort};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::ask::{Asking, Invocation, Shown, are_asked};
use crate::context::Context;
use crate::limits::TOLD_MAX;
use crate::write::Write;

/// By which name they are turned off.
const VALIDATING: &str = "ValidatingAdmissionWebhook";

/// Passes a write by every validating webhook that is in force for it. What they warn of goes to its remarks.
///
/// # Errors
/// The refusal that came first; all are waited for.
pub(crate) async fn validate(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    let hooks = context.in_force.validating_webhooks();
    if hooks.is_empty() || !are_asked(context, write.served(), VALIDATING) {
        return Ok(());
    }
    write.show_fields()?;
    let lease = write.target.lease.clone();
    let _trees = lease.scope();
    let (warnings, refusal) = pass(write, context, &hooks).await?;
    write.remarks.extend(warnings);
    refusal.map_or(Ok(()), Err)
}

async fn pass(
    write: &Write<'_>,
    context: &Arc<Context>,
    hooks: &[Arc<Webhook>],
) -> Result<(Vec<String>, Option<Status>), Status> {
    let mut asking = Asking::of(write, context).await?;
    // By what the write is taken for.
    let mut versions: BTreeMap<Option<usize>, Shown> = BTreeMap::new();
    let mut invocations: Vec<Invocation> = Vec::new();
    for webhook in hooks {
        let Some(invocation) = asking.matched(write, webhook)? else { continue };
        let at = invocation.equivalent;
        if let std::collections::btree_map::Entry::Vacant(place) = versions.entry(at) {
            place.insert(Shown::of(&asking.view, write, at).await?);
        }
        if asking.holds(write, &invocation, &versions[&at])? {
            invocations.push(invocation);
        }
    }
    let (asking, versions) = (&asking, &versions);
    let calls = invocations.iter().map(async |invocation| {
        let shown = &versions[&invocation.equivalent];
        let begun = asking.begin(&invocation.webhook, WebhookSort::Validating);
        (begun, asking.call(write, invocation, WebhookSort::Validating, shown).await)
    });
    let mut answers: FuturesUnordered<_> = calls.collect();
    let (mut warnings, mut refusal) = (Vec::new(), None);
    while let Some((begun, answer)) = answers.next().await {
        let mut failure = None;
        match answer {
            Ok(judgement) => {
                let room = TOLD_MAX.saturating_sub(warnings.len());
                warnings.extend(judgement.warnings.into_iter().take(room));
                if let Decided::Denied(status) = judgement.decided {
                    failure = Some(CallFailure::Rejected(status));
                }
            }
            Err(why) => failure = Some(why),
        }
        let counted = asking.counted(begun, failure);
        refusal = refusal.or(counted);
    }
    Ok((warnings, refusal))
}
