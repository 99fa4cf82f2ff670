//! How long admission takes: all of a step, and what the registry carries out itself of it.
//!
//! In: work of a step. Out: what it came to; what it took is counted. Never: counts what nobody began.

use std::future::Future;

use forebay_apimachinery::{Status, Verb};
use forebay_policy::AdmissionOperation;
use forebay_webhooks::PluginStep;
use forebay_webhooks::limits::PLUGINS_MAX;

use crate::context::Context;

/// What the registry carries out itself, which has its places behind those of plugins.
#[derive(Clone, Copy)]
pub(super) enum Timed {
    Step(PluginStep),
    MutatingPolicies,
    MutatingWebhooks,
    ResourceQuota,
    ValidatingPolicies,
    ValidatingWebhooks,
}

/// What a write is to those who judge it.
pub(crate) fn operation(verb: &Verb) -> AdmissionOperation {
    match verb {
        Verb::Create => AdmissionOperation::Create,
        Verb::Update => AdmissionOperation::Update,
        Verb::Delete | Verb::DeleteCollection => AdmissionOperation::Delete,
        _ => AdmissionOperation::Connect,
    }
}

/// What `work` comes to, which is counted as `what`.
///
/// # Errors
/// Its own.
pub(super) async fn timed<T>(
    context: &Context,
    (what, operation): (Timed, AdmissionOperation),
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let since = context.clock.now();
    let done = work.await;
    let (took, is_refused) = (context.clock.now() - since, done.is_err());
    let metrics = &context.config.webhook_metrics.plugins;
    let (behind, name, step) = match what {
        Timed::Step(step) => {
            metrics.step_took((step, operation), is_refused, took);
            return done;
        }
        Timed::MutatingPolicies => (1, "MutatingAdmissionPolicy", PluginStep::Admit),
        Timed::MutatingWebhooks => (2, "MutatingAdmissionWebhook", PluginStep::Admit),
        Timed::ResourceQuota => (3, "ResourceQuota", PluginStep::Validate),
        Timed::ValidatingPolicies => (4, "ValidatingAdmissionPolicy", PluginStep::Validate),
        Timed::ValidatingWebhooks => (5, "ValidatingAdmissionWebhook", PluginStep::Validate),
    };
    metrics.took((PLUGINS_MAX - behind, name), (step, operation), is_refused, took);
    done
}
