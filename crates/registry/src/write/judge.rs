//! mutate, validate, authorize and validate by policy: who may fill in, and who may refuse.

use std::sync::Arc;

use forebay_admission::{Note, Tools};
use forebay_api::Eventual;
use forebay_apimachinery::json::weight;
use forebay_apimachinery::{Cause, Status};
use forebay_catalog::Target;
use forebay_fieldmanager::Managed;
use forebay_strategy as strategy;
use forebay_webhooks::{PluginStep, Reinvoked};
use serde_json::Value;

use super::flow::{Flow, Passed};
use super::param_rights;
use super::policies::{self, Round};
use super::timed::{Timed, operation, timed};
use super::webhooks;
use super::{Input, Write, attributes};
use crate::context::Context;
use crate::incoming::name_of;
use crate::lookup::Looking;
use crate::owners::{entries_of, set_entries};
use crate::ruled::Ruled as _;

/// Plugins fill in what the client leaves out, or refuse; then policies do, and webhooks, and where these
/// changed something all are asked once more.
pub(super) fn mutate<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    let of = (Timed::Step(PluginStep::Admit), operation(&write.verb));
    Eventual::later(timed(context, of, async move {
        write.told.clear();
        fill_in(write, context).await?;
        // What is deleted is not known yet: its round asks.
        if matches!(write.input, Input::Deletion(_)) || !context.in_force.may_mutate() {
            return Ok(Flow::Next);
        }
        ask_outside(write, context).await?;
        Ok(Flow::Next)
    }))
}

/// Policies and webhooks, both rounds.
async fn ask_outside(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    write.named = name_of(&write.proposed).to_owned();
    write.show_fields()?;
    let owners = entries_of(&write.proposed).to_vec();
    write.target.lease.charge(owners.iter().map(weight::of).sum())?;
    let of = operation(&write.verb);
    let asked = policies::mutate(write, context, &Round::First);
    let mutated = timed(context, (Timed::MutatingPolicies, of), asked).await?;
    let mut reinvoked = Reinvoked::begun(has_fine_time(write) && !mutated.is_changed);
    let asked = webhooks::mutate(write, context, &mut reinvoked);
    timed(context, (Timed::MutatingWebhooks, of), asked).await?;
    if mutated.is_changed || reinvoked.has_changed() {
        fill_in(write, context).await?;
        policies::mutate(write, context, &Round::Again(mutated.again)).await?;
        webhooks::mutate(write, context, &mut reinvoked.again()).await?;
        keep_owners(write, owners);
    }
    Ok(())
}

/// Whether the object, as Go has it, has a time of its clock in `managedFields`: those of a custom resource
/// are text there.
fn has_fine_time(write: &Write<'_>) -> bool {
    let is_text = write.served().is_custom() && write.sent.is_null();
    write.is_stamped && !is_text
}

/// Puts the owners of fields back where a policy or a webhook left what cannot be read.
fn keep_owners(write: &mut Write<'_>, owners: Vec<Value>) {
    if let Err(why) = Managed::of_entries(entries_of(&write.proposed)) {
        write.problems.push(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
             admission controller; please fix your requests: {why}"
        ));
        set_entries(&mut write.proposed, owners);
    }
}

/// What policies and webhooks have against a deletion, once it is known what is deleted.
///
/// # Errors
/// The refusal.
pub(super) async fn deletion(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    write.told.clear();
    write.remarks.clear();
    if write.is_judged {
        return Ok(());
    }
    let (of, mut reinvoked) = (operation(&write.verb), Reinvoked::default());
    // Boxed: who deletes is deep already.
    let asked = Box::pin(webhooks::mutate(write, context, &mut reinvoked));
    timed(context, (Timed::MutatingWebhooks, of), asked).await?;
    Box::pin(validate_outside(write, context)).await
}

/// Policies and webhooks refuse.
async fn validate_outside(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    let of = operation(&write.verb);
    timed(context, (Timed::ValidatingPolicies, of), policies::validate(write, context)).await?;
    timed(context, (Timed::ValidatingWebhooks, of), webhooks::validate(write, context)).await
}

/// Plugins fill in what the client leaves out.
///
/// # Errors
/// The refusal.
pub(super) async fn fill_in(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    let Write { verb, target, old, mode, proposed, sent, input, judged_as, home, .. } = write;
    let (mut attributes, looking) = (attributes(verb, target, old.as_ref(), *mode), Looking::of(context));
    if matches!(input, Input::Binding(_)) {
        // It is filled in itself, and its pod takes over what it says then.
        if let Some(asked) = judged_as {
            (attributes.of.resource, attributes.of.subresource) = (asked.resource(), "");
        }
        return context.admission.mutate(&attributes, sent, &tools(&looking, target)).await;
    }
    attributes.sent = sent;
    context.admission.mutate(&attributes, proposed, &tools(&looking, target)).await?;
    // The first one counts: a later round may find another of that name.
    *home = home.take().or_else(|| looking.into_home());
    Ok(())
}

/// What the kind's rules, its schema and plugins have against the object.
pub(super) fn validate<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    let now = {
        let (about, looking) = (write.asked_attributes(), Looking::of(context));
        match context.admission.causes(&about, &write.proposed, &tools(&looking, write.target)) {
            Eventual::Now(causes) => Some(causes),
            Eventual::Later(_) => None,
        }
    };
    let valid = |write: &mut Write<'_>, causes| judged_with(write, context, causes).map(|()| Flow::Next);
    match now {
        Some(causes) => Eventual::Now(valid(write, causes)),
        None => Eventual::later(async move {
            let causes = {
                let (about, looking) = (write.asked_attributes(), Looking::of(context));
                let tools = tools(&looking, write.target);
                context.admission.causes(&about, &write.proposed, &tools).wait().await
            };
            valid(write, causes)
        }),
    }
}

/// The same, with what plugins have against it.
fn judged_with(write: &mut Write<'_>, context: &Context, mut causes: Vec<Cause>) -> Result<(), Status> {
    let (served, privileged) = (write.served(), context.config.privileged);
    let Write { old, proposed, .. } = &*write;
    let subresource = write.subresource();
    let (name, forgiven, remarks) = match (&write.input, old) {
        (Input::Review(_), _) => return strategy::validate_review(&write.kind_sent()?, proposed),
        (_, None) if write.is_new_object() => {
            causes.extend(strategy::validate_create(&served.rules(), proposed, privileged));
            let mut found = served.validate_fields(proposed, None, None, &causes);
            causes.extend(found.take_causes(strategy::scale_causes(&served.rules(), None, proposed)));
            (name_of(proposed), found.warnings, served.warnings(proposed, None))
        }
        (_, Some(old)) if write.is_change() => {
            let rules = served.rules();
            causes.extend(strategy::validate_update(&rules, subresource, proposed, old, privileged));
            let mut found = served.validate_fields(proposed, Some(old), subresource, &causes);
            causes.extend(found.take_causes(strategy::scale_causes(&rules, subresource, proposed)));
            // As whoever changed it on the way calls it.
            (name_of(proposed), found.warnings, served.warnings(proposed, Some((subresource, old))))
        }
        _ => return Ok(()),
    };
    let refusal = (!causes.is_empty()).then(|| served.invalid(name, causes));
    // What was forgiven is told of even if the rest is refused.
    write.remarks = forgiven;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    write.remarks.extend(remarks);
    Ok(())
}

/// Who was let in to update is asked for the right to create, once the object is valid, and who writes a
/// policy for that to read its parameters, as kube-apiserver does.
pub(super) fn authorize<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    if let Some(caller) = param_rights::asked(write) {
        return Eventual::later(async move {
            param_rights::check(write, context, &caller).await?;
            match write.may_create.take() {
                Some(may_create) => may_create.ask().wait().await.map(|()| Flow::Next),
                None => Ok(Flow::Next),
            }
        });
    }
    match write.may_create.take() {
        Some(may_create) => Eventual::later(async { may_create.ask().wait().await.map(|()| Flow::Next) }),
        None => Eventual::Now(Ok(Flow::Next)),
    }
}

/// Plugins refuse what is valid and yet may not be.
pub(super) fn by_policy<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    let of = (Timed::Step(PluginStep::Validate), operation(&write.verb));
    Eventual::later(timed(context, of, async move {
        let Write { verb, target, old, mode, proposed, .. } = &*write;
        let attributes = attributes(verb, target, old.as_ref(), *mode);
        let looking = Looking::of(context);
        let note = |key: String, value: String| target.context.annotate(|| (key, value));
        let audit: Option<Note<'_>> = target.context.audit.is_some().then_some(&note);
        let tools_of_policy = Tools { audit, ..tools(&looking, target) };
        context.admission.validate_by_policy(&attributes, proposed, &tools_of_policy).await?;
        let told = context.admission.warnings(&attributes, proposed, &tools_of_policy).await;
        write.remarks.extend(told);
        // What is deleted is not known yet: its round asks.
        if !matches!(write.input, Input::Deletion(_)) {
            validate_outside(write, context).await?;
        }
        Ok(Flow::Next)
    }))
}

fn tools<'l>(looking: &'l Looking<'_>, target: &'l Target) -> Tools<'l> {
    let context = looking.context();
    let (authorizer, admission) = (&*context.config.authorizer, &context.admission);
    let (security, settings) = (admission.security(), admission.settings());
    Tools {
        lookup: looking,
        clock: &context.clock,
        random: &context.random,
        authorizer,
        security,
        security_metrics: &context.config.webhook_metrics.pod_security,
        settings,
        audit: None,
        times: looking,
        lease: &target.lease,
        deadline: target.context.deadline,
    }
}
