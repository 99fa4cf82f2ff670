//! What validating webhooks have against a write: all of them are asked at once.
//!
//! In: a write that is valid. Out: a refusal, or warnings. Never: a change.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/validating/dispatcher.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_webhooks::{CallFailure, Decided, Webhook, WebhookSort};
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt as _};

use super::ask::{Asking, Called, Heard, Invocation, Shown, are_asked};
use crate::context::Context;
use crate::limits::TOLD_MAX;
use crate::write::Write;

/// By which name they are turned off.
const VALIDATING: &str = "ValidatingAdmissionWebhook";
/// What an audit log has it by that one could not be asked, and that this does not count.
const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io/";

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
        let Some(shown) = versions.get_mut(&at) else { continue };
        if asking.holds(write, &invocation, WebhookSort::Validating, shown).await? {
            invocations.push(invocation);
        }
    }
    let (asking, versions) = (&asking, &versions);
    let calls = invocations.iter().enumerate().map(async |(at, invocation)| {
        let shown = &versions[&invocation.equivalent];
        let begun = asking.begin(&invocation.webhook, WebhookSort::Validating);
        (at, begun, asking.call(write, invocation, WebhookSort::Validating, shown).await)
    });
    let answers: FuturesUnordered<_> = calls.collect();
    if answers.is_empty() {
        return Ok((Vec::new(), None));
    }
    // The request leaves its turn to others until the last of them has answered.
    Ok(write.target.context.away(heard(write, asking, &invocations, answers)).await)
}

/// What they warn of, and the refusal that came first; all are waited for.
async fn heard<'i>(
    write: &Write<'_>,
    asking: &Asking<'_>,
    invocations: &[Invocation],
    mut answers: impl Stream<Item = (usize, Called<'i>, Result<Heard, CallFailure>)> + Unpin,
) -> (Vec<String>, Option<Status>) {
    let (mut warnings, mut refusal) = (Vec::new(), None);
    while let Some((at, begun, answer)) = answers.next().await {
        let failure = match answer {
            Ok(Heard { judgement, .. }) => {
                let room = TOLD_MAX.saturating_sub(warnings.len());
                warnings.extend(judgement.warnings.into_iter().take(room));
                match judgement.decided {
                    Decided::Denied(status) => Some(CallFailure::Rejected(status)),
                    Decided::Allowed(_) | Decided::Unsupported(_) => None,
                }
            }
            Err(why) => Some(why),
        };
        let has_failed = failure.is_some();
        let counted = asking.counted(begun, failure);
        if has_failed && counted.is_none() {
            let name = &invocations[at].webhook.name;
            write.target.context.annotate(|| (format!("{FAILED_OPEN}round_0_index_{at}"), name.to_string()));
        }
        refusal = refusal.or(counted);
    }
    (warnings, refusal)
}
