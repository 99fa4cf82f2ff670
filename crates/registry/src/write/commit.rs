//! plan, plan new, claim, commit and after: what a write takes, and what it leaves in the store.

use std::sync::Arc;

use bytes::Bytes;
use forebay_api::Eventual;
use forebay_apimachinery::{Key, Reason, Revision, Status, Verb};
use forebay_catalog::store::{Decision, Done, Mode};
use forebay_catalog::{RequestContext, Store};
use forebay_strategy as strategy;

use super::convert;
use super::deletion::Then;
use super::flow::{Flow, Passed};
use super::{Input, Write, home};
use crate::after;
use crate::context::Context;
use crate::incoming::name_of;
use crate::new_object;
use crate::owners;
use crate::ruled::Ruled as _;

/// What a changed object takes more, and has still. Where nobody has looked yet at what is free, who claims
/// does that first.
pub(super) fn plan<'a>(write: &'a mut Write<'_>) -> Passed<'a> {
    let (Some(old), false) = (&write.old, write.claims.are_none()) else {
        return Eventual::Now(Ok(Flow::Next));
    };
    match write.claims.plan_update(&mut write.proposed, old) {
        Ok(true) => Eventual::Now(Ok(Flow::Next)),
        Ok(false) => Eventual::Now(Ok(Flow::ToClaim)),
        Err(refusal) => Eventual::Now(Err(refusal)),
    }
}

/// What a new object takes under its name.
pub(super) fn plan_new<'a>(write: &'a mut Write<'_>) -> Passed<'a> {
    if !write.is_new_object() || write.claims.are_none() {
        return Eventual::Now(Ok(Flow::Next));
    }
    Eventual::later(async move { write.claims.plan_new(&mut write.proposed).await.map(|()| Flow::Next) })
}

/// What is planned is claimed. What went to somebody else is planned, and so validated, again.
pub(super) fn claim<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    if !write.claims.pending() {
        return Eventual::Now(Ok(Flow::Next));
    }
    Eventual::later(async move {
        let plans_again = write.claims.must_look();
        write.claims.take(&**context).await?;
        Ok(if plans_again || write.claims.pending() { Flow::Again } else { Flow::Next })
    })
}

/// Stores it. Again, when there is another object by now than the one that it was decided by, or the name of
/// a new one is taken.
pub(super) fn commit<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    Eventual::later(async move {
        let mut span = write.target.context.span("Commit");
        span.iter_mut().for_each(|span| span.set("resource", write.served().resource().to_owned()));
        if write.verb == Verb::Create && write.attempts.is_none() {
            commit_new(write, context).await
        } else {
            commit_change(write, context).await
        }
    })
}

async fn commit_new(write: &mut Write<'_>, context: &Context) -> Result<Flow, Status> {
    let (served, target) = (write.served(), write.target);
    let Some(store) = &write.store else { return Err(Status::internal("nothing is stored of it")) };
    let name = name_of(&write.proposed).to_string();
    let key = store.key(target.namespace(), &name);
    let mut proposed = std::mem::take(&mut write.proposed);
    write.version_sent = new_object::take_version(&mut proposed, write.mode)?;
    settle(write, &mut proposed);
    let ttl = context.ttl(served);
    let written = served.encode_new(proposed, write.fields.as_deref())?;
    let value = convert::stored(write, written.clone()).await?;
    let mode = write.mode;
    let under_way = write.home.as_ref().map(|_| context.creates.begin());
    home::check(write, context, &name).await?;
    let create = store.create(key.clone(), value, ttl, mode);
    let mut created = asked(&target.context, mode == Mode::Commit, create).await;
    if let Err(Some(status)) = &created
        && let Some(smaller) = smaller(write, store, &key, &written, status)?
    {
        let smaller = convert::stored(write, smaller).await?;
        let create = store.create(key, smaller, ttl, mode);
        created = asked(&target.context, mode == Mode::Commit, create).await;
    }
    drop(under_way);
    match created {
        Ok(object) => {
            write.done = Some(Done::Put { object });
            convert::answered(write).await?;
            Ok(Flow::Next)
        }
        Err(Some(status)) => Err(status),
        Err(None) => {
            write.name_taken = name;
            Ok(Flow::Again)
        }
    }
}

async fn commit_change(write: &mut Write<'_>, context: &Context) -> Result<Flow, Status> {
    let (decision, unless) = decide(write, context)?;
    let (decision, written) = match decision {
        Decision::Put { value, ttl } => {
            let stored = Decision::Put { value: convert::stored(write, value.clone()).await?, ttl };
            let decision = if unless == Unless::Stored { unless_stored(write, stored)? } else { stored };
            (decision, Some((value, ttl)))
        }
        decision => (decision, None),
    };
    let Some(store) = write.store.clone() else { return Err(Status::internal("nothing is stored of it")) };
    let ttl = context.ttl(write.served());
    let Some(attempts) = &mut write.attempts else { return Err(Status::internal("nothing is there")) };
    let decision = match (decision, attempts.current()) {
        (Decision::Keep, Some(current)) if write.then.is_none() => {
            store.keep_or_renew(&current.object, ttl, write.mode).await?
        }
        (decision, _) => decision,
    };
    let (context, mode) = (&write.target.context, write.mode);
    let is_written = mode == Mode::Commit && !matches!(decision, Decision::Keep);
    let mut done = asked(context, is_written, attempts.carry_out(&store, decision)).await;
    if let (Err(status), Some((written, ttl))) = (&done, written) {
        let key = store.key(write.target.namespace(), write.target.name());
        if let Some(smaller) = smaller(write, &store, &key, &written, status)? {
            let value = convert::stored(write, smaller).await?;
            if let Some(attempts) = &mut write.attempts {
                let put = attempts.carry_out(&store, Decision::Put { value, ttl });
                done = asked(context, mode == Mode::Commit, put).await;
            }
        }
    }
    write.done = done?;
    convert::answered(write).await?;
    Ok(if write.done.is_some() { Flow::Next } else { Flow::Again })
}

/// What the store says. While it writes, the turn is somebody else's; what is only looked up there is soon
/// said, so that two steps of the machine would be the most of it.
async fn asked<T>(context: &RequestContext, is_written: bool, store: impl Future<Output = T>) -> T {
    if is_written { context.at_store(store).await } else { store.await }
}

/// Whether what is decided is done in any case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unless {
    Never,
    /// Not if it is what is stored already.
    Stored,
}

/// `value`, which the store says is too large, without who owns what, which may be much of it. None where
/// that is not why, or it is an apply, which is about owners.
fn smaller(
    write: &Write<'_>,
    store: &Store,
    key: &Key,
    value: &Bytes,
    status: &Status,
) -> Result<Option<Bytes>, Status> {
    let is_apply = matches!(write.input, Input::Apply(_) | Input::ScaleApply(_));
    if status.reason != Reason::RequestEntityTooLarge || is_apply {
        return Ok(None);
    }
    let served = write.served();
    let mut value = served.to_judged_value(&*store.decode(key.clone(), Revision::FIRST, value)?)?;
    if owners::take_entries(&mut value).is_empty() {
        return Ok(None);
    }
    served.encode(value).map(Some)
}

/// What to do with the object that is there, when `proposed` is to take its place. What is put is in the
/// version that is written, if a webhook has to convert it.
fn decide(write: &mut Write<'_>, context: &Context) -> Result<(Decision, Unless), Status> {
    let served = write.served();
    let mut proposed = std::mem::take(&mut write.proposed);
    let ttl = context.ttl(served);
    if let Some(then) = write.then {
        let decision = then.decision(served, proposed, ttl)?;
        return Ok((decision, if then == Then::Wait { Unless::Stored } else { Unless::Never }));
    }
    let Some(old) = write.old.as_ref().filter(|_| !matches!(write.input, Input::Binding(_))) else {
        return Ok((Decision::Put { value: served.encode(proposed)?, ttl }, Unless::Never));
    };
    if strategy::may_finish_deletion(&served.rules(), &proposed, old) {
        write.last = Some(served.encode(proposed)?);
        return Ok((Decision::Delete, Unless::Never));
    }
    let is_same = proposed == *old;
    let current = write.attempts.as_ref().and_then(|attempts| attempts.current());
    if is_same && !current.is_some_and(|current| served.is_stale(&current.object)) {
        return Ok((Decision::Keep, Unless::Never));
    }
    settle(write, &mut proposed);
    Ok((Decision::Put { value: served.encode(proposed)?, ttl }, Unless::Stored))
}

/// Keeps what is there if that is what would be stored, byte for byte: what was said in another way, such as
/// a zero, is the same once it is written.
fn unless_stored(write: &Write<'_>, decision: Decision) -> Result<Decision, Status> {
    let current = write.attempts.as_ref().and_then(|attempts| attempts.current());
    let (Decision::Put { value, .. }, Some(store), Some(current)) = (&decision, &write.store, current) else {
        return Ok(decision);
    };
    let there = &current.object;
    if !there.may_be_of(value) || write.served().is_stale(there) {
        return Ok(decision);
    }
    let made = store.decode(there.key().clone(), there.revision(), value)?;
    if made.body_len() != there.body_len() {
        return Ok(decision);
    }
    let is_same = matches!((made.try_body(), there.try_body()), (Ok(made), Ok(there)) if *made == *there);
    Ok(if is_same { Decision::Keep } else { decision })
}

/// What was judged as it was applied is stored as its kind has it.
fn settle(write: &Write<'_>, proposed: &mut serde_json::Value) {
    if matches!(write.input, Input::Apply(_)) {
        write.served().kind.settle(proposed);
    }
}

/// What others are judged by is taken in, and what the object had is given back, before the client is
/// answered.
pub(super) fn after<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    Eventual::later(async move {
        match &write.done {
            // Nobody takes in what was not written.
            Some(Done::Put { .. } | Done::Kept { .. }) if write.mode == Mode::DryRun => {}
            Some(Done::Put { object } | Done::Kept { object }) => {
                after::write(context, write.served(), object).await;
            }
            Some(Done::Deleted { object, revision, .. }) => {
                after::delete(context, write.served(), object, *revision, write.mode).await;
            }
            None => {}
        }
        Ok(Flow::Next)
    })
}
