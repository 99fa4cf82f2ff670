//! What mutating policies make of a write.
//!
//! In: a write whose object is as the client and the plugins have it. Out: the same with what policies fill
//! in, or a refusal in upstream's words. Never: more work for one write than `policy`'s limits say.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/mutating/dispatcher.go`,
//! `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `pkg/admission/reinvocation.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_apimachinery::options::FieldValidation;
use forebay_apimachinery::{Cause, CauseReason, GroupVersionKind, Lease, Reason, Status, json};
use forebay_catalog::Served;
use forebay_fieldmanager::FieldType;
use forebay_merge::{Duplicates, TypeRef, TypedValue};
use forebay_object::Object;
use forebay_policy::limits::{ASKING_COST, DENIALS_MAX, WRITE_COST_MAX};
use forebay_policy::{Binding, FailurePolicy, Hook, Inputs, Made, Matched, Policy, Reinvocation};
use forebay_strategy as strategy;
use forebay_webhooks::ConditionsOf;
use serde_json::Value;

use super::judge::is_excluded;
use super::params::{self, Params, Trees};
use crate::context::Context;
use crate::incoming;
use crate::patch::{self, Unapplied};
use crate::ruled::Ruled as _;
use crate::write::view::{Objects, View};
use crate::write::{Input, Write, scale};

/// By which name they are turned off.
const MUTATING: &str = "MutatingAdmissionPolicy";

/// What was asked: a policy, by a binding, with a parameter of a namespace and a name.
type Key = (Arc<str>, Arc<str>, String);

/// Which of the policies are asked.
pub(crate) enum Round {
    First,
    /// Those that are asked again, as something was changed.
    Again(BTreeSet<Key>),
}

/// What came of a round.
#[derive(Default)]
pub(crate) struct Mutated {
    /// Whether a mutation was carried out: what else fills in is asked again.
    pub is_changed: bool,
    /// Who wants to be asked again then.
    pub again: BTreeSet<Key>,
}

/// Passes a write by every mutating policy that is in force for it.
///
/// # Errors
/// What policies have against it, all of it.
pub(crate) async fn mutate(
    write: &mut Write<'_>,
    context: &Arc<Context>,
    round: &Round,
) -> Result<Mutated, Status> {
    let hooks = context.in_force.mutating();
    let has_object = !matches!(write.input, Input::Deletion(_));
    if hooks.is_empty() || !has_object || !context.admission.has(MUTATING) || is_excluded(write.served()) {
        return Ok(Mutated::default());
    }
    let mut mutating = Mutating {
        view: View::of(write, context).await?,
        left: WRITE_COST_MAX,
        trees: Trees::default(),
        shown: None,
        refusals: Vec::new(),
        mutated: Mutated::default(),
    };
    let mut invocations = Vec::new();
    for hook in hooks.iter() {
        mutating.select(write, hook, &mut invocations).await?;
    }
    for invocation in &invocations {
        let is_asked = match round {
            Round::First => true,
            Round::Again(those) => those.contains(&invocation.key),
        };
        if is_asked {
            mutating.invoke(write, invocation).await?;
        }
    }
    let Mutating { refusals, mutated, trees, .. } = mutating;
    write.target.lease.give_back(trees.bytes());
    drop(trees);
    if mutated.is_changed {
        // What was charged for on the way is given back; this stays.
        write.target.lease.charge(json::weight::of(&write.proposed))?;
    }
    match refused(write, refusals) {
        Some(refusal) => Err(refusal),
        None => Ok(mutated),
    }
}

/// A policy on its way to the object.
struct Invocation {
    policy: Arc<Policy>,
    binding: Arc<Binding>,
    params: Option<(Arc<Served>, Arc<Object>)>,
    equivalent: Option<usize>,
    key: Key,
}

struct Refusal {
    message: String,
    reason: Reason,
}

struct Mutating<'a> {
    view: View<'a>,
    // What the write may still cost.
    left: u64,
    trees: Trees,
    // The objects in the version that was asked about last: with many parameters it is the same again.
    shown: Option<(Option<usize>, Objects)>,
    refusals: Vec<Refusal>,
    mutated: Mutated,
}

impl Mutating<'_> {
    /// Adds how `hook` is asked about the write.
    async fn select(
        &mut self,
        write: &Write<'_>,
        hook: &Hook,
        invocations: &mut Vec<Invocation>,
    ) -> Result<(), Status> {
        let policy = &hook.policy;
        let matched = policy.matches(&self.view.request(write), &|| self.view.namespace_tree());
        let equivalent = match matched {
            Ok(Matched::No) => return Ok(()),
            Ok(Matched::Itself) => None,
            Ok(Matched::Equivalent(at)) => Some(at),
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
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
        for binding in &hook.bindings {
            match binding.matches(&self.view.request(write), &|| self.view.namespace_tree()) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    self.misconfigured(policy, Some(binding), &why);
                    continue;
                }
            }
            let (of, lease) = (binding.params.as_ref(), &write.target.lease);
            let namespace = &self.view.namespace;
            match params::collect(self.view.context, kind.as_ref(), of, namespace, lease, &mut self.left)
                .await?
            {
                Err(why) => self.misconfigured(policy, Some(binding), &why),
                Ok(Params::Nothing) => {
                    invocations.push(Invocation::new(policy, binding, None, equivalent));
                }
                Ok(Params::Each(served, all)) => {
                    lease.charge(all.len() * size_of::<Invocation>())?;
                    let each = all.into_iter().map(|object| {
                        Invocation::new(policy, binding, Some((served.clone(), object)), equivalent)
                    });
                    invocations.extend(each);
                }
            }
        }
        Ok(())
    }

    async fn invoke(&mut self, write: &mut Write<'_>, invocation: &Invocation) -> Result<(), Status> {
        let mut objects = match self.shown.take() {
            Some((equivalent, objects)) if equivalent == invocation.equivalent => objects,
            _ => self.view.objects(write, invocation.equivalent).await?,
        };
        self.invoke_on(write, invocation, &mut objects).await?;
        self.shown = Some((invocation.equivalent, objects));
        Ok(())
    }

    async fn invoke_on(
        &mut self,
        write: &mut Write<'_>,
        invocation: &Invocation,
        objects: &mut Objects,
    ) -> Result<(), Status> {
        let lease = write.target.lease.clone();
        // What is kept of parameters is charged before, and given back with the write.
        let kept = match &invocation.params {
            Some((served, object)) if self.trees.keeps(object.body_len()) => {
                params::read(&mut self.trees, (served, object), &lease, &mut self.left)?
            }
            _ => None,
        };
        let _trees = lease.scope();
        let policy = &invocation.policy;
        let params = match &invocation.params {
            _ if kept.is_some() => kept,
            Some((served, object)) => {
                params::read(&mut self.trees, (served, object), &lease, &mut self.left)?
            }
            None => None,
        };
        let params = params.as_deref();
        self.left = self.left.saturating_sub(ASKING_COST);
        let counted = self.view.context.config.webhook_metrics.clone();
        let (of, clock) = ((&policy.name, &invocation.binding.name), self.view.context.clock.clone());
        if policy.has_conditions() {
            let (since, mut errors) = (clock.now(), 0);
            let holds = |_: &Inputs<'_>, for_conditions: &Inputs<'_>, left: &mut u64| {
                errors = 0;
                policy.conditions_hold(for_conditions, left, &mut errors)
            };
            let (of, left) = (invocation.equivalent, &mut self.left);
            let holds = self.view.with_inputs(write, of, objects, params, left, holds).await;
            let took = clock.now() - since;
            counted.conditions((&policy.name, ConditionsOf::Policy), self.view.operation(), took, errors);
            match holds {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(why) => {
                    self.refuse(policy, Some(&invocation.binding), why, Reason::InvalidByPolicy);
                    return Ok(());
                }
            }
        }
        for at in 0..policy.mutations() {
            let since = clock.now();
            let make = |inputs: &Inputs<'_>, _: &Inputs<'_>, left: &mut u64| policy.make(at, inputs, left);
            let (equivalent, left) = (invocation.equivalent, &mut self.left);
            let made = self.view.with_inputs(write, equivalent, objects, params, left, make).await;
            let shown = self.view.shown(write, invocation.equivalent);
            let gvk = self.view.kind_shown(write, invocation.equivalent);
            let made = made.map_err(Unapplied::Why);
            let made = made.and_then(|made| applied(shown, &gvk, objects, made, &lease));
            let why = match &made {
                Err(Unapplied::Why(why) | Unapplied::TooMuch(why)) => Some(&**why),
                Err(Unapplied::Refused(status)) => Some(&*status.message),
                _ => None,
            };
            counted.policies.mutated(of, why, clock.now() - since);
            match made {
                Ok(object) => {
                    self.mutated.is_changed = true;
                    take(write, shown, &gvk, object, Unknown::Refused, objects).await?;
                }
                // It says what it is for, and this is not.
                Err(Unapplied::TestFailed(_)) => self.mutated.is_changed = true,
                Err(Unapplied::Why(why) | Unapplied::TooMuch(why)) => {
                    self.refuse(policy, Some(&invocation.binding), why, Reason::InvalidByPolicy);
                }
                Err(Unapplied::Refused(status)) => return Err(status),
            }
            // A policy may take a second.
            tokio::task::yield_now().await;
        }
        if policy.reinvocation == Reinvocation::IfNeeded {
            self.mutated.again.insert(invocation.key.clone());
        }
        Ok(())
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.refuse(policy, binding, format!("failed to configure {what}: {why}"), Reason::Forbidden);
    }

    fn refuse(&mut self, policy: &Policy, binding: Option<&Binding>, why: String, reason: Reason) {
        if policy.failure == FailurePolicy::Ignore || self.refusals.len() >= DENIALS_MAX {
            return;
        }
        let message = match binding {
            Some(binding) => {
                format!("policy '{}' with binding '{}' denied request: {why}", policy.name, binding.name)
            }
            None => format!("policy {:?} denied request: {why}", policy.name),
        };
        self.refusals.push(Refusal { message, reason });
    }
}

impl Invocation {
    fn new(
        policy: &Arc<Policy>,
        binding: &Arc<Binding>,
        params: Option<(Arc<Served>, Arc<Object>)>,
        equivalent: Option<usize>,
    ) -> Invocation {
        let of = params.as_ref().map(|(_, object)| format!("{}/{}", object.namespace(), object.name()));
        let key = (policy.name.clone(), binding.name.clone(), of.unwrap_or_default());
        Invocation { policy: policy.clone(), binding: binding.clone(), params, equivalent, key }
    }
}

fn refused(write: &Write<'_>, refusals: Vec<Refusal>) -> Option<Status> {
    let first = refusals.first()?;
    let mut status = write.forbidden("");
    status.message.clone_from(&first.message);
    status.reason = first.reason;
    let causes = refusals.into_iter();
    status.causes.extend(causes.map(|one| Cause::new(CauseReason::InternalError, "", one.message)));
    Some(status)
}

/// The object, in the version that a policy takes it for, with what the policy makes.
///
/// - `gvk`: its kind, which of a subresource may be another than that of what is shown.
fn applied(
    shown: &Served,
    gvk: &GroupVersionKind,
    objects: &Objects,
    made: Made,
    lease: &Lease,
) -> Result<Value, Unapplied> {
    let object = objects.object.as_ref().ok_or_else(|| Unapplied::TestFailed(String::new()))?;
    match made {
        Made::Operations(operations) => {
            lease.charge(json::weight::of(object)).map_err(|full| Unapplied::Refused(full.into()))?;
            patch::apply_made(object.clone(), operations, lease).map_err(|unapplied| match unapplied {
                Unapplied::Why(why) | Unapplied::TooMuch(why) => Unapplied::Why(format!("JSON Patch: {why}")),
                other => other,
            })
        }
        Made::Applied(mut configuration) => {
            for name in ["apiVersion", "kind"] {
                configuration[name] = object[name].clone();
            }
            merged(shown, gvk, object, &configuration, lease)
        }
    }
}

fn merged(
    shown: &Served,
    gvk: &GroupVersionKind,
    object: &Value,
    configuration: &Value,
    lease: &Lease,
) -> Result<Value, Unapplied> {
    let why = |what: &str, why: &dyn std::fmt::Display| {
        Unapplied::Why(format!("error applying patch: {what}: {why}"))
    };
    // Kinds of another group or version, as a Scale, are described where they are served: nowhere.
    if (&gvk.group, &gvk.version) != (&shown.gvk.group, &shown.gvk.version) {
        let kind = format!("no corresponding type for {}/{}, Kind={}", gvk.group, gvk.version, gvk.kind);
        return Err(why("failed to convert patch object to typed object", &kind));
    }
    let built_in = || FieldType::of_kind(&gvk.group, &gvk.version, &gvk.kind);
    let ty = match (shown.is_custom(), shown.kind.schema()) {
        (true, Some(schema)) => Some(FieldType::of_schema(schema)),
        (true, None) => Some(FieldType::AnyObject),
        (false, _) => built_in(),
    };
    let Some(ty) = ty else {
        let kind = format!("{}/{}, Kind={}", gvk.group, gvk.version, gvk.kind);
        let message = format!(
            "Resource kind {kind} not found. There can be a delay between when CustomResourceDefinitions are created and \
             when they are available."
        );
        return Err(Unapplied::Refused(Status::new(Reason::ServiceUnavailable, message)));
    };
    let config = TypedValue::new(configuration, ty, Duplicates::Refused)
        .map_err(|faults| why("failed to convert patch object to typed object", &faults))?;
    let mut atomics = Vec::new();
    find_atomics(configuration, ty, &mut String::new(), &mut atomics);
    if !atomics.is_empty() {
        let found = format!("may not mutate atomic arrays, maps or structs: {}", atomics.join(", "));
        return Err(why("invalid ApplyConfiguration", &found));
    }
    let live = TypedValue::new(object, ty, Duplicates::Allowed)
        .map_err(|faults| why("failed to convert original object to typed object", &faults))?;
    let merged = live.merge(&config, lease).map_err(|error| why("failed to merge patch", &error))?;
    Ok(merged.value.into_owned())
}

/// Where `value` has something that can only be replaced as a whole.
fn find_atomics<T: TypeRef>(value: &Value, ty: T, path: &mut String, found: &mut Vec<String>) {
    let (atom, before) = (ty.atom(), path.len());
    match value {
        Value::Object(members) => {
            let Some(map) = atom.map else { return };
            if map.atomic {
                found.push(path.clone());
            }
            for (name, value) in members {
                path.push('.');
                path.push_str(name);
                if let Some(field) = ty.field(name) {
                    find_atomics(value, field, path, found);
                }
                path.truncate(before);
            }
        }
        Value::Array(items) => {
            let Some(list) = atom.list else { return };
            if list.relation == forebay_merge::Relation::Atomic {
                found.push(path.clone());
            }
            let Some(item) = list.item else { return };
            for (at, value) in items.iter().enumerate() {
                path.push_str(&format!("[{at}]"));
                find_atomics(value, item, path, found);
                path.truncate(before);
            }
        }
        _ => {}
    }
}

/// What comes of fields that a built-in kind has not. Of custom resources they are dropped without a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Refused,
    Dropped,
}

/// Makes `object`, which somebody made in the version of `shown`, what the write proposes, or what was sent
/// where that is in a form of its own.
///
/// - `gvk`: its kind, which of a subresource may be another than that of what is shown.
pub(crate) async fn take(
    write: &mut Write<'_>,
    shown: &Served,
    gvk: &GroupVersionKind,
    mut object: Value,
    of_unknown: Unknown,
    objects: &mut Objects,
) -> Result<(), Status> {
    let lease = &write.target.lease;
    if !matches!(write.input, Input::Object(_) | Input::Patch(_) | Input::Apply(_)) {
        let validation = match of_unknown {
            Unknown::Refused => FieldValidation::Strict,
            Unknown::Dropped => FieldValidation::Ignore,
        };
        let sent = incoming::normalized(write.target, gvk, object, Vec::new(), None, validation)
            .map_err(Status::internal)?
            .value;
        lease.charge(json::weight::of(&sent))?;
        objects.object = Some(sent.clone());
        return take_sent(write, sent);
    }
    shown.check_type(&mut object, &shown.gvk)?;
    let unknown = shown.kind.normalize(&mut object, lease).map_err(Status::internal)?;
    if of_unknown == Unknown::Refused && !unknown.is_empty() && !shown.is_custom() {
        return Err(Status::internal(format!("strict decoding error: {}", unknown.join(", "))));
    }
    shown.set_defaults(&mut object);
    lease.charge(json::weight::of(&object))?;
    objects.object = Some(object.clone());
    if let Some(converted) = write.served().converted.as_ref().filter(|_| shown.gvr != write.served().gvr) {
        let own = write.served();
        let api_version = own.gvk.api_version();
        object = converted.convert(object, &api_version, write.target.in_its_name()).await?;
        own.kind.normalize(&mut object, lease).map_err(Status::internal)?;
    }
    shown.to_judged(&mut object);
    write.proposed = object;
    incoming::place(write.target, &mut write.proposed)
}

/// The same of what is not the object itself.
fn take_sent(write: &mut Write<'_>, sent: Value) -> Result<(), Status> {
    match write.input {
        Input::Review(_) | Input::Connection => write.proposed = sent,
        Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_) => {
            strategy::apply_scale(&write.served().rules(), &sent, &mut write.proposed)
                .map_err(|error| scale::refused(write.target, error))?;
            write.sent = sent;
        }
        _ => write.sent = sent,
    }
    Ok(())
}
