//! Whether a webhook is asked about a write, and what it answers.
//!
//! In: a write, a webhook. Out: what it takes the write for, its judgement. Never: what comes of it.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/generic/webhook.go`, `mutating/dispatcher.go`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::lease::LEASE_BYTES_MAX;
use forebay_apimachinery::{Lease, ResourceAttributes, Status, json};
use forebay_catalog::store::Mode;
use forebay_catalog::{Served, TimedPart};
use forebay_policy::limits::WRITE_COST_MAX;
use forebay_policy::{FailurePolicy, Inputs, Matched};
use forebay_rt::Instant;
use forebay_schema::builtin::{codec, table};
use forebay_webhooks::{
    CallFailure, CallOutcome, Calling, ConditionsOf, Destination, Judgement, Review, SideEffects, Webhook,
    WebhookSort, judge, too_late,
};
use serde_json::Value;

use super::reached::reached;
use crate::context::Context;
use crate::write::view::{ObjectTexts, Objects, View};
use crate::write::{Input, Write, texts};

/// What configurations of admission are never asked about, lest nobody can take one back.
const EXEMPT_GROUP: &str = "admissionregistration.k8s.io";

/// A webhook that is asked, and what it takes the write for.
pub(super) struct Invocation {
    pub webhook: Arc<Webhook>,
    pub equivalent: Option<usize>,
}

/// The objects of a write in one version, as text; as trees once somebody looks into them.
pub(super) struct Shown {
    pub equivalent: Option<usize>,
    texts: ObjectTexts,
    trees: Option<Objects>,
}

/// What a webhook has answered. What that takes is held for as long.
pub(super) struct Heard {
    pub judgement: Judgement,
    _answer: Lease,
}

/// A write on its way past webhooks.
pub(super) struct Asking<'a> {
    pub view: View<'a>,
    // What the write may still cost.
    left: u64,
}

/// Whether webhooks are asked about such a write.
pub(super) fn are_asked(context: &Context, served: &Served, plugin: &str) -> bool {
    context.in_force.is_calling() && context.admission.has(plugin) && served.group() != EXEMPT_GROUP
}

impl Shown {
    /// # Errors
    /// What cannot be converted; no room.
    pub async fn of(view: &View<'_>, write: &Write<'_>, equivalent: Option<usize>) -> Result<Shown, Status> {
        if let Some(texts) = view.texts(write, equivalent).await? {
            return Ok(Shown { equivalent, texts, trees: None });
        }
        let trees = view.objects(write, equivalent).await?;
        let texts =
            ObjectTexts { object: text(write, &trees.object)?, old_object: text(write, &trees.old_object)? };
        Ok(Shown { equivalent, texts, trees: Some(trees) })
    }

    /// Whether there is an object, which a deletion has not.
    pub fn has_object(&self) -> bool {
        self.texts.object.is_some()
    }

    /// Its trees, which are made of the texts when they are first asked for.
    ///
    /// # Errors
    /// No room.
    pub fn trees(&mut self, lease: &Lease) -> Result<&mut Objects, Status> {
        if self.trees.is_none() {
            let tree = |text| texts::tree(text, lease);
            let (object, old_object) = (tree(&self.texts.object)?, tree(&self.texts.old_object)?);
            self.trees = Some(Objects { object, old_object });
        }
        self.trees.as_mut().ok_or_else(|| Status::internal("there are no trees"))
    }

    /// The same once the tree of the object is another.
    pub fn refreshed(&mut self, write: &Write<'_>) -> Result<(), Status> {
        if let Some(trees) = &self.trees {
            self.texts.object = text(write, &trees.object)?;
        }
        Ok(())
    }
}

/// As what is sent.
fn text(write: &Write<'_>, object: &Option<Value>) -> Result<Option<Bytes>, Status> {
    let Some(object) = object else { return Ok(None) };
    let gvk = write.kind_sent()?;
    let text = match table().kind(&gvk.group, &gvk.version, &gvk.kind).filter(|_| !is_object(&write.input)) {
        // What is sent in a form of its own was not shown in a version yet.
        Some(kind) => {
            let mut out = Vec::new();
            codec::write_json(kind.ty, object, &mut out).map_err(Status::internal)?;
            Bytes::from(out)
        }
        None => Bytes::from(object.to_string()),
    };
    write.target.lease.charge(text.len())?;
    Ok(Some(text))
}

impl<'a> Asking<'a> {
    pub async fn of(write: &Write<'_>, context: &'a Arc<Context>) -> Result<Asking<'a>, Status> {
        Ok(Asking { view: View::of(write, context).await?, left: WRITE_COST_MAX })
    }

    /// What `webhook` takes the write for by its rules and selectors, if it is asked.
    ///
    /// # Errors
    /// That it cannot be said.
    pub fn matched(&self, write: &Write<'_>, webhook: &Arc<Webhook>) -> Result<Option<Invocation>, Status> {
        let matched = webhook.predicates.matches(&self.view.request(write), &|| self.view.namespace_tree());
        let equivalent = match matched {
            Ok(Matched::No) => return Ok(None),
            Ok(Matched::Itself) => None,
            Ok(Matched::Equivalent(at)) => Some(at),
            Err(why) => return Err(self.unmatched(why)),
        };
        Ok(Some(Invocation { webhook: webhook.clone(), equivalent }))
    }

    fn unmatched(&self, why: String) -> Status {
        let missing = Status::not_found("", "namespaces", &self.view.namespace);
        if missing.message == why { missing } else { Status::internal(why) }
    }

    /// Whether the conditions of what is asked hold.
    ///
    /// # Errors
    /// What is wrong with them, where that counts.
    pub async fn holds(
        &mut self,
        write: &Write<'_>,
        invocation: &Invocation,
        sort: WebhookSort,
        shown: &mut Shown,
    ) -> Result<bool, Status> {
        let predicates = &invocation.webhook.predicates;
        if !predicates.has_conditions() {
            return Ok(true);
        }
        let trees = shown.trees(&write.target.lease)?;
        let (left, clock) = (&mut self.left, &self.view.context.clock);
        let (since, mut errors) = (clock.now(), 0);
        let hold = |_: &Inputs<'_>, for_conditions: &Inputs<'_>, left: &mut u64| {
            errors = 0;
            predicates.conditions_hold(for_conditions, left, &mut errors)
        };
        let held = self.view.with_inputs(write, invocation.equivalent, trees, None, left, hold).await;
        let took = clock.now() - since;
        let (name, operation) = (&invocation.webhook.name, self.view.operation());
        let (of, metrics) = (ConditionsOf::Webhook(sort), &self.view.context.config.webhook_metrics);
        metrics.conditions((name, of), operation, took, errors);
        held.map_err(|why| write.judged_attributes().forbidden_as(self.view.name(), &why))
    }

    /// What the webhook answers.
    ///
    /// # Errors
    /// That it does not, or not to this.
    pub async fn call(
        &self,
        write: &Write<'_>,
        invocation: &Invocation,
        sort: WebhookSort,
        shown: &Shown,
    ) -> Result<Heard, CallFailure> {
        let (webhook, context) = (&*invocation.webhook, self.view.context);
        if write.mode == Mode::DryRun && webhook.side_effects == SideEffects::Some {
            return Err(forebay_webhooks::dry_run_unsupported(webhook).into());
        }
        let Some(version) = webhook.review else {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            let why = format!("could not create admission objects: {why}");
            return Err(CallFailure::unasked(why));
        };
        if webhook.client.destination == Destination::Nowhere {
            let why = "webhook configuration must have either service or URL";
            let of = format!("failed calling webhook {:?}: {why}", webhook.name);
            return Err(CallFailure::unasked(format!("could not get REST client: {of}")));
        }
        let uid = context.random.uuid();
        // However much it says: the write goes on without it, if its failure policy has it so.
        let answer = write.target.lease.part(LEASE_BYTES_MAX);
        let parts = self.review(write, invocation, version, &uid, shown);
        // As it is sent, in one piece.
        let length = parts.iter().map(Bytes::len).sum();
        answer.charge(length).map_err(CallFailure::full)?;
        let Some(_waits) = write.target.lease.waits_for(&webhook.id) else {
            return Err(CallFailure::crowded());
        };
        let timeout = self.left_for(write, webhook);
        let calling = Calling {
            client: webhook.client.clone(),
            sort: Some(sort),
            url: webhook.client.url(timeout),
            address: None,
            has_others: false,
            parts,
            lease: answer.clone(),
            // It is counted with what waits for this webhook.
            holds: 0,
            begun: Arc::default(),
        };
        let (name, part) = match sort {
            WebhookSort::Mutating => ("Call mutating webhook", TimedPart::MutatingWebhook),
            WebhookSort::Validating => ("Call validating webhook", TimedPart::ValidatingWebhook),
        };
        let timing = write.target.context.time(part);
        let mut span = write.target.context.span(name);
        if let Some(span) = &mut span {
            let attributes = write.judged_attributes();
            let ResourceAttributes { group, version, resource, subresource, .. } = attributes.of;
            span.set("configuration", webhook.configuration.to_string());
            span.set("webhook", webhook.name.to_string());
            span.set("resource", format!("{group}/{version}, Resource={resource}"));
            span.set("subresource", subresource.to_owned());
            span.set("operation", self.view.operation().as_str());
            span.set("UID", uid.clone());
        }
        let (url, begun) = (calling.url.clone(), calling.begun.clone());
        let since = context.clock.now();
        let answered = tokio::select! {
            answered = reached(context, calling) => answered,
            () = context.clock.sleep(timeout) => Err(too_late(&begun)),
        };
        drop((span, timing));
        if let Some(waits) = &write.target.context.waits {
            let took = context.clock.now() - since;
            match sort {
                WebhookSort::Mutating => waits.in_turn(took),
                WebhookSort::Validating => waits.at_once(took),
            }
        }
        let mut judgement = judge(webhook, sort, version, &uid, (&url, answered), &answer)?;
        for (key, value) in judgement.annotations.drain(..) {
            write.target.context.annotate(|| (key, value));
        }
        Ok(Heard { judgement, _answer: answer })
    }

    /// How long its answer is waited for: what it says, or what the request has left.
    fn left_for(&self, write: &Write<'_>, webhook: &Webhook) -> Duration {
        let own = Duration::from_secs(webhook.timeout_seconds.into());
        let now = self.view.context.clock.now();
        let left = write.target.context.deadline.map(|deadline| deadline.saturating_duration_since(now));
        left.map_or(own, |left| left.min(own))
    }

    fn review(
        &self,
        write: &Write<'_>,
        invocation: &Invocation,
        version: forebay_webhooks::ReviewVersion,
        uid: &str,
        shown: &Shown,
    ) -> Vec<Bytes> {
        let review = Review {
            version,
            uid,
            request: &self.view.request(write),
            taken_for: self.view.taken_for(invocation.equivalent),
            object: shown.texts.object.as_ref(),
            old_object: shown.texts.old_object.as_ref(),
        };
        review.parts()
    }
}

impl Asking<'_> {
    /// What counts of a failure: none, where the webhook says that it may fail. Either is counted.
    pub fn counted(&self, call: Called<'_>, failure: Option<CallFailure>) -> Option<Status> {
        let webhook = call.webhook;
        let counts = webhook.predicates.failure() == FailurePolicy::Fail;
        let outcome = failure.as_ref().map_or(CallOutcome::Passed, |failure| failure.outcome(counts));
        let (context, operation) = (self.view.context, self.view.operation());
        let took = context.clock.now() - call.since;
        context.config.webhook_metrics.called(&webhook.name, call.sort, operation, took, outcome);
        match failure? {
            CallFailure::Calling { why, .. } | CallFailure::Busy { why } if !counts => {
                tracing::warn!(webhook = &*webhook.name, why, "a webhook is passed over");
                None
            }
            failure => Some(failure.refusal(webhook, || context.busy_retry_seconds())),
        }
    }

    /// A call that begins now.
    pub fn begin<'w>(&self, webhook: &'w Webhook, sort: WebhookSort) -> Called<'w> {
        Called { webhook, sort, since: self.view.context.clock.now() }
    }
}

/// A call, as it is counted.
pub(super) struct Called<'w> {
    webhook: &'w Webhook,
    sort: WebhookSort,
    since: Instant,
}

/// Whether what is sent is the object itself.
pub(super) fn is_object(input: &Input<'_>) -> bool {
    matches!(input, Input::Object(_) | Input::Patch(_) | Input::Apply(_))
}

/// Charges what has become of the object for as long as the write is there.
pub(super) fn keep(write: &Write<'_>) -> Result<(), Status> {
    Ok(write.target.lease.charge(json::weight::of(&write.proposed))?)
}
