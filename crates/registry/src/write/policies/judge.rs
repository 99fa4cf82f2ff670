//! What validating policies have against a write.
//!
//! In: a write that is valid. Out: a refusal in upstream's words, or warnings. Never: more work for one write
//! than `policy`'s limits say.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/validating/dispatcher.go`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::{Cause, CauseReason, Reason, Status};
use forebay_catalog::{RequestContext, Served};
use forebay_policy::limits::{ASKING_COST, WRITE_COST_MAX};
use forebay_policy::{
    Binding, FailurePolicy, Finding, Findings, Hook, Inputs, Matched, ParamKind, Policy, ValidationAction,
};
use forebay_webhooks::ConditionsOf;
use serde_json::Value;

use super::params::{self, Params, Trees};
use crate::context::Context;
use crate::limits::NOTED_MAX;
use crate::write::Write;
use crate::write::view::{Objects, View};

/// By which name they are turned off.
const VALIDATING: &str = "ValidatingAdmissionPolicy";
/// What an audit log has a failure by that is for it.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// What is never judged by policies: they themselves, lest nobody can take one back, and what is asked of the
/// server and not stored.
const EXCLUDED: [(&str, &str); 10] = [
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Passes a write by every policy that is in force for it. What the client is told goes to its remarks.
///
/// # Errors
/// The first denial.
pub(crate) async fn validate(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    let hooks = context.in_force.validating();
    if hooks.is_empty() || !context.admission.has(VALIDATING) || is_excluded(write.served()) {
        return Ok(());
    }
    write.show_fields()?;
    let lease = write.target.lease.clone();
    let _trees = lease.scope();
    let view = View::of(write, context).await?;
    let (left, trees) = (WRITE_COST_MAX, Trees::default());
    let mut judging = Judging { write, view, left, trees, warnings: Vec::new(), denied: None };
    let judged = judging.ask_all(&hooks).await;
    let Judging { warnings, denied, .. } = judging;
    // Whether or not something is against the write.
    write.remarks.extend(warnings);
    judged?;
    denied.map_or(Ok(()), |denial| Err(refused(write, denial)))
}

pub(super) fn is_excluded(served: &Served) -> bool {
    EXCLUDED.binary_search(&(served.group(), served.resource())).is_ok()
}

/// Why a write is denied, by whom.
struct Denial {
    message: String,
    reason: Reason,
}

fn refused(write: &Write<'_>, denial: Denial) -> Status {
    let mut status = write.forbidden(&denial.message);
    status.reason = denial.reason;
    status.causes.push(Cause::new(CauseReason::InternalError, "", denial.message));
    status
}

/// A write on its way past the policies.
struct Judging<'w, 'a> {
    write: &'a Write<'w>,
    view: View<'a>,
    // What the write may still cost.
    left: u64,
    trees: Trees,
    warnings: Vec<String>,
    denied: Option<Denial>,
}

impl<'w, 'a> Judging<'w, 'a> {
    async fn ask_all(&mut self, hooks: &[Hook]) -> Result<(), Status> {
        for hook in hooks {
            self.ask(hook).await?;
        }
        Ok(())
    }

    /// Asks one policy, by each of its bindings.
    async fn ask(&mut self, hook: &Hook) -> Result<(), Status> {
        let policy = &*hook.policy;
        let matched = match policy.matches(&self.view.request(self.write), &|| self.view.namespace_tree()) {
            Ok(Matched::No) => return Ok(()),
            Ok(matched) => matched,
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        let equivalent = match matched {
            Matched::Equivalent(at) => Some(at),
            _ => None,
        };
        let kind = match &policy.param_kind {
            None => None,
            Some(kind) => match params::kind(self.view.context, kind) {
                Ok(served) => Some((served, kind)),
                Err(why) => {
                    self.misconfigured(policy, None, &why);
                    return Ok(());
                }
            },
        };
        let mut asking = Asking { policy, equivalent, objects: None, noted: BTreeMap::new() };
        for binding in &hook.bindings {
            self.bind(&mut asking, binding, kind.as_ref()).await?;
        }
        for (key, values) in asking.noted {
            let context = &self.write.target.context;
            context.annotate(|| (format!("{}/{key}", policy.name), values.join(", ")));
        }
        Ok(())
    }

    async fn bind(
        &mut self,
        asking: &mut Asking<'_>,
        binding: &Binding,
        kind: Option<&(Arc<Served>, &ParamKind)>,
    ) -> Result<(), Status> {
        let policy = asking.policy;
        match binding.matches(&self.view.request(self.write), &|| self.view.namespace_tree()) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(why) => {
                self.misconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        }
        let (lease, namespace) = (&self.write.target.lease, self.view.namespace.clone());
        let of = binding.params.as_ref();
        match params::collect(self.view.context, kind, of, &namespace, lease, &mut self.left).await? {
            Err(why) => self.misconfigured(policy, Some(binding), &why),
            Ok(Params::Nothing) => self.evaluate(asking, binding, None).await?,
            Ok(Params::Each(served, all)) => {
                for object in all {
                    let _one = (!self.trees.keeps(object.body_len())).then(|| lease.scope());
                    let params = params::read(&mut self.trees, (&served, &object), lease, &mut self.left)?;
                    self.evaluate(asking, binding, params.as_deref()).await?;
                    // A policy may take a second with each.
                    tokio::task::yield_now().await;
                }
            }
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn evaluate(
        &mut self,
        asking: &mut Asking<'_>,
        binding: &Binding,
        params: Option<&Value>,
    ) -> Result<(), Status> {
        let policy = asking.policy;
        if asking.objects.is_none() {
            match self.view.objects(self.write, asking.equivalent).await {
                Ok(objects) => asking.objects = Some(objects),
                Err(status) if status.reason == Reason::InternalError => {
                    let why = format!("failed to convert object version: {}", status.message);
                    self.misconfigured(policy, Some(binding), &why);
                    return Ok(());
                }
                Err(status) => return Err(status),
            }
        }
        let Some(objects) = &asking.objects else { return Ok(()) };
        self.left = self.left.saturating_sub(ASKING_COST);
        let clock = &self.view.context.clock;
        let (metrics, operation) = (&self.view.context.config.webhook_metrics, self.view.operation());
        let (since, mut looked) = (clock.now(), None);
        let (of, left) = (asking.equivalent, &mut self.left);
        let evaluate = |inputs: &Inputs<'_>, for_conditions: &Inputs<'_>, left: &mut u64| {
            looked = None;
            let errors = |errors| looked = Some((errors, clock.now() - since));
            policy.validate(inputs, for_conditions, left, errors)
        };
        let outcome = self.view.with_inputs(self.write, of, objects, params, left, evaluate).await;
        if let Some((errors, took)) = looked {
            metrics.conditions((&policy.name, ConditionsOf::Policy), operation, took, errors);
        }
        let took = clock.now() - since;
        let outcome = asking.note(outcome, &self.write.target.context);
        self.decide(policy, binding, outcome, took);
        Ok(())
    }

    fn decide(&mut self, policy: &Policy, binding: &Binding, outcome: Findings, took: Duration) {
        let counted = &self.view.context.config.webhook_metrics.policies;
        let of = (&policy.name, &binding.name);
        for failed in outcome.failed {
            for action in &binding.actions {
                counted.validated(of, &failed.message, action.enforced(), took);
                match action {
                    ValidationAction::Deny => self.deny(policy, Some(binding), &failed),
                    ValidationAction::Warn => self.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, failed.message
                    )),
                    ValidationAction::Audit => {
                        let context = &self.write.target.context;
                        context.annotate(|| (FAILURE, failed.noted(&policy.name, binding)));
                    }
                }
            }
        }
        for why in outcome.ignored {
            counted.validated(of, &why, "allow", took);
        }
        for denied in outcome.denied {
            counted.validated(of, &denied.message, ValidationAction::Deny.enforced(), took);
            self.deny(policy, Some(binding), &denied);
        }
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if policy.failure == FailurePolicy::Ignore {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = format!("failed to configure {what}: {why}");
        self.deny(policy, binding, &Finding { message, reason: Reason::Invalid, at: 0 });
    }

    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, decision: &Finding) {
        let by = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message =
            format!("ValidatingAdmissionPolicy '{}'{by} denied request: {}", policy.name, decision.message);
        // The first is told.
        self.denied.get_or_insert(Denial { message, reason: decision.reason });
    }
}

/// A policy that is asked, and what it is asked about once that is known.
struct Asking<'a> {
    policy: &'a Policy,
    equivalent: Option<usize>,
    objects: Option<Objects>,
    // What an audit log is told: by key, what each of its bindings says, once. <= its annotations, times its
    // bindings with their parameters.
    noted: BTreeMap<String, Vec<String>>,
}

impl Asking<'_> {
    /// Keeps what an audit log is told, if anybody asks.
    fn note(&mut self, mut findings: Findings, context: &RequestContext) -> Findings {
        if context.audit.is_some() {
            for (key, value) in findings.noted.drain(..) {
                let values = self.noted.entry(key).or_default();
                // Few: what is beyond them would not be kept anyway.
                if values.len() < NOTED_MAX && !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::EXCLUDED;

    #[test]
    fn what_is_never_judged_is_sorted_for_the_search() {
        assert!(EXCLUDED.is_sorted());
    }
}
