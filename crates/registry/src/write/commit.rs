//! plan, claim, commit and after: what a write takes, and what it leaves in the store.

use std::sync::Arc;

use forebay_api::Eventual;
use forebay_apimachinery::{Status, Verb};
use forebay_catalog::store::{Decision, Done};
use forebay_strategy as strategy;

use super::flow::{Flow, Passed};
use super::{Input, Write};
use crate::after;
use crate::context::Context;
use crate::incoming::{forget_managers, name_of};
use crate::ruled::Ruled as _;

/// What a changed object takes more, and has still. Where nobody has looked yet at what is free, who claims does that first.
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

/// What is planned is claimed. What went to somebody else is planned, and so validated, again.
pub(super) fn claim<'a>(write: &'a mut Write<'_>) -> Passed<'a> {
    if !write.claims.pending() {
        return Eventual::Now(Ok(Flow::Next));
    }
    Eventual::later(async {
        let plans_again = write.claims.must_look();
        write.claims.take().await?;
        Ok(if plans_again || write.claims.pending() { Flow::Again } else { Flow::Next })
    })
}

/// Stores it. Again, when there is another object by now than the one that it was decided by, or the name of a new one is taken.
pub(super) fn commit<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    Eventual::later(async move {
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
    let value = served.encode(std::mem::take(&mut write.proposed))?;
    match store.create(key, value, context.ttl(served), write.mode).await {
        Ok(object) => {
            write.done = Some(Done::Put { object, carry: () });
            Ok(Flow::Next)
        }
        Err(Some(status)) => Err(status),
        Err(None) => {
            // Who answers says which name it was.
            write.proposed = serde_json::json!({ "metadata": { "name": name } });
            Ok(Flow::Again)
        }
    }
}

async fn commit_change(write: &mut Write<'_>, context: &Context) -> Result<Flow, Status> {
    let decision = decide(write, context)?;
    let (Some(store), Some(attempts)) = (&write.store, &mut write.attempts) else {
        return Err(Status::internal("nothing is stored of it"));
    };
    write.done = attempts.carry_out(store, decision).await?;
    Ok(if write.done.is_some() { Flow::Next } else { Flow::Again })
}

/// What to do with the object that is there, when `proposed` is to take its place.
fn decide(write: &mut Write<'_>, context: &Context) -> Result<Decision<()>, Status> {
    let served = write.served();
    let (proposed, carry) = (std::mem::take(&mut write.proposed), ());
    let ttl = context.ttl(served);
    if let Some(then) = write.then {
        return then.decision(served, proposed, ttl);
    }
    let Some(old) = write.old.as_mut().filter(|_| !matches!(write.input, Input::Binding(_))) else {
        return Ok(Decision::Put { value: served.encode(proposed)?, ttl, carry });
    };
    if strategy::may_finish_deletion(&served.rules(), &proposed, old) {
        write.last = Some(served.encode(proposed)?);
        return Ok(Decision::Delete { carry });
    }
    // A kube-apiserver notes who manages fields, and nobody here proposes that: its absence alone is no change.
    let mut is_same = proposed == *old;
    if !is_same && forget_managers(old) {
        is_same = proposed == *old;
    }
    let current = write.attempts.as_ref().and_then(|attempts| attempts.current());
    if is_same && !current.is_some_and(|current| served.is_stale(&current.object)) {
        return Ok(Decision::Keep { carry });
    }
    Ok(Decision::Put { value: served.encode(proposed)?, ttl, carry })
}

/// What others are judged by is taken in, and what the object had is given back, before the client is answered.
pub(super) fn after<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    Eventual::later(async move {
        match &write.done {
            Some(Done::Put { object, .. } | Done::Kept { object, .. }) => {
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
