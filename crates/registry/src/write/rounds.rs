//! The loops around the chain: what runs again when the object has changed meanwhile, when a name is taken,
//! and when a claim went to somebody else.
//!
//! The first round of a change is judged on the cached object. A refusal judged on it is judged again on a
//! live one, so that a stale cache never refuses what is right (reference §6, "cached-first").
//!
//! In: a write. Out: what was done, with what it claimed settled, whichever stage ended it. Never: what a
//! stage does.

use std::sync::Arc;

use forebay_api::Completes;
use forebay_apimachinery::Status;
use forebay_catalog::errors;
use forebay_catalog::limits::ROUNDS_MAX;
use forebay_catalog::store::{Attempts, Current, Decision, Done, Mode};
use forebay_object::Object;
use serde_json::Value;

use super::chain::{Is, pass};
use super::deletion::Then;
use super::flow::Flow;
use super::{Input, Write, convert, judge as judge_stage};
use crate::consumed::Consumed;
use crate::context::Context;
use crate::incoming::name_of;
use crate::limits::GENERATED_NAMES_MAX;
use crate::services::{WriteClaims, is_unanswered, take_part};

/// Passes a write by which nothing is stored through all that could refuse it.
///
/// - `completes`: what is made of it once it is filled in.
///
/// # Errors
/// The refusal.
pub(crate) async fn judge(
    write: &mut Write<'_>,
    context: &Arc<Context>,
    completes: Option<Completes>,
) -> Result<(), Status> {
    pass(write, context, Is::Decode..=Is::Mutate).await?;
    if let Some(completes) = completes {
        completes.complete(write.target, &mut write.proposed).wait().await?;
    }
    pass(write, context, Is::Escalate..=Is::ValidateByPolicy).await.map(drop)
}

/// Asks who judges writes by policy alone: of a deletion, before it is known what is there, and of a
/// connection.
///
/// # Errors
/// The refusal.
pub(crate) async fn admit(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    pass(write, context, Is::Mutate..=Is::Mutate).await?;
    pass(write, context, Is::ValidateByPolicy..=Is::ValidateByPolicy).await.map(drop)
}

/// Asks plugins about what was sent where what it is for is not there.
///
/// # Errors
/// The refusal.
pub(crate) async fn ask_plugins(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    judge_stage::fill_in(write, context).await
}

/// Stores a new object, under a name made for it where it brings none.
///
/// # Errors
/// What a stage says, and that the name is taken.
pub(crate) async fn create(write: &mut Write<'_>, context: &Arc<Context>) -> Result<Arc<Object>, Status> {
    pass(write, context, Is::Decode..=Is::Normalize).await?;
    // Plugins may look at the name that the client gave.
    let has_no_name = name_of(&write.proposed).is_empty();
    pass(write, context, Is::Preconditions..=Is::Plan).await?;
    let attempts = if has_no_name { GENERATED_NAMES_MAX } else { 1 };
    let may_generate =
        write.proposed["metadata"]["generateName"].as_str().is_some_and(|base| !base.is_empty());
    let lease = &write.target.lease;
    // As text it takes a tenth of what a second tree would. What has one round only is not kept.
    let is_kept = has_no_name || take_part(write.served());
    let text = if is_kept { Value::to_string(&write.proposed) } else { String::new() };
    lease.charge(text.capacity())?;
    let kept = is_kept.then(|| Consumed::new(std::mem::take(&mut write.proposed), text.as_bytes()));
    for attempt in 1..=attempts {
        let _attempt = lease.scope();
        write.claims = WriteClaims::of_write(&context.claims, write.target, write.mode);
        write.name_made = None;
        let created = create_once(write, context, kept.as_ref()).await;
        end_claims(write, &created).await;
        match created? {
            Some(object) => {
                pass(write, context, Is::After..).await?;
                return Ok(object);
            }
            None if attempt < attempts => {}
            None => return Err(taken(write, may_generate).await),
        }
    }
    Err(Status::internal("no attempt to create was made"))
}

/// The object; none when its name is taken.
async fn create_once(
    write: &mut Write<'_>,
    context: &Arc<Context>,
    kept: Option<&Consumed<'_>>,
) -> Result<Option<Arc<Object>>, Status> {
    let told_before = write.told.len();
    for _ in 0..ROUNDS_MAX {
        if let Some(kept) = kept {
            write.proposed = kept.take(&write.target.lease)?;
        }
        // What an earlier round told is told again.
        write.told.truncate(told_before);
        if pass(write, context, Is::Name..=Is::Claim).await? == Flow::Again {
            continue;
        }
        let flow = pass(write, context, Is::Commit..=Is::Commit).await?;
        return Ok(match (flow, &write.done) {
            (Flow::Next, Some(Done::Put { object })) => Some(object.clone()),
            _ => None,
        });
    }
    Err(errors::too_contended())
}

/// The refusal of a name that is taken, if only by what is being deleted or cannot be read.
///
/// - `may_generate`: whether the object says what its name may begin with, be it that it has one.
async fn taken(write: &Write<'_>, may_generate: bool) -> Status {
    let (served, name) = (write.served(), write.name_taken.as_str());
    let mut status = Status::already_exists(served.group(), served.resource(), name);
    if let Some(store) = &write.store
        && let Ok(Some(found)) = store.live(&store.key(write.target.namespace(), name)).await
        && served.to_value(&found.object).is_ok_and(|it| it["metadata"]["deletionTimestamp"].is_string())
    {
        status.message.insert_str(0, "object is being deleted: ");
    }
    if may_generate {
        status = status.retry_after(1);
        status.message.push_str(", the server was not able to generate a unique name for the object");
    }
    status
}

/// Reads what the client sent as far as that takes nothing that is stored: what is wrong with a body is said
/// before what is wrong with the object.
///
/// # Errors
/// 400 in kube-apiserver's words.
pub(crate) async fn read(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    let first = first_of_rounds(write);
    pass(write, context, ..first).await.map(drop)
}

/// The first stage that depends on what is stored.
fn first_of_rounds(write: &Write<'_>) -> Is {
    match write.input {
        Input::Patch(_) | Input::Apply(_) | Input::ScalePatch(_) | Input::ScaleApply(_) => Is::Decode,
        Input::Scale(_) | Input::Binding(_) => Is::Normalize,
        Input::Object(_) | Input::Eviction(_) | Input::Review(_) | Input::Connection | Input::Deletion(_) => {
            Is::Preconditions
        }
    }
}

/// The first stage of a round that is not the first: a tree is consumed by the stages, and read again rather
/// than copied for each.
fn first_of_next_round(write: &Write<'_>) -> Is {
    first_of_rounds(write).min(if write.sent.is_null() { Is::Decode } else { Is::Normalize })
}

/// Changes an object until that commits on exactly the object that it was decided by.
///
/// - `write`: was [`read`].
///
/// # Errors
/// What a stage says of the live object, or the store's own failures.
pub(crate) async fn change(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    write.claims = WriteClaims::of_write(&context.claims, write.target, write.mode);
    let changed = change_rounds(write, context).await;
    end_claims(write, &changed).await;
    changed?;
    pass(write, context, Is::After..).await.map(drop)
}

async fn change_rounds(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    begin(write).await?;
    let mut from = first_of_rounds(write);
    for _ in 0..ROUNDS_MAX {
        convert::show(write).await?;
        let judged = {
            // Trees of this round, and what rules copy to compare it with.
            let _round = write.target.lease.scope();
            match pass(write, context, from..=Is::Charge).await {
                Ok(Flow::Next | Flow::ToClaim) => {
                    pass(write, context, Is::Claim..=Is::Claim).await.map_err(Ended::Final)
                }
                judged => judged.map_err(Ended::Refused),
            }
        };
        from = first_of_next_round(write);
        match judged {
            Err(Ended::Final(status)) => return Err(status),
            Err(Ended::Refused(refusal)) => judge_again(write, refusal).await?,
            Ok(Flow::Again | Flow::ToClaim) => {}
            Ok(Flow::Next) => {
                if pass(write, context, Is::Commit..=Is::Commit).await? == Flow::Next {
                    return Ok(());
                }
            }
        }
    }
    Err(errors::too_contended())
}

/// How a round ended before there was anything to commit.
enum Ended {
    /// It may be otherwise on the live object.
    Refused(Status),
    Final(Status),
}

/// Deletes an object, or begins to; whether it may was asked before.
///
/// # Errors
/// What a stage says of the live object, or the store's own failures.
pub(crate) async fn delete(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    delete_rounds(write, context).await?;
    if let (Some(Done::Put { object }), Some(Then::RemoveAfter), Mode::Commit) =
        (&write.done, write.then, write.mode)
    {
        // Whoever watches has seen its last state: now that goes, unless it is another object's by now.
        let uid = write.served().to_value(object)?["metadata"]["uid"].clone();
        write.done = Some(remove_same(write, &uid).await?);
    }
    pass(write, context, Is::After..).await.map(drop)
}

async fn delete_rounds(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    begin(write).await?;
    for _ in 0..ROUNDS_MAX {
        convert::show(write).await?;
        let judged = match pass(write, context, Is::Preconditions..=Is::Preconditions).await {
            Ok(_) => match judge_stage::deletion(write, context).await {
                Ok(()) => pass(write, context, Is::Prepare..=Is::Prepare).await,
                Err(refusal) => Err(refusal),
            },
            refused => refused,
        };
        match judged {
            Err(refusal) => judge_again(write, refusal).await?,
            Ok(_) => {
                if pass(write, context, Is::Commit..=Is::Commit).await? == Flow::Next {
                    return Ok(());
                }
            }
        }
    }
    Err(errors::too_contended())
}

async fn remove_same(write: &Write<'_>, uid: &Value) -> Result<Done, Status> {
    let Some(store) = &write.store else { return Err(Status::internal("nothing is stored of it")) };
    let (served, target) = (write.served(), write.target);
    let key = store.key(target.namespace(), target.name());
    let judge = |current: Option<&Current>| match current {
        Some(current) if served.to_value(&current.object)?["metadata"]["uid"] == *uid => Ok(Decision::Delete),
        _ => Err(target.not_found()),
    };
    store.guarded_update(&key, write.mode, judge).await
}

/// Looks at what is there for the first time.
async fn begin(write: &mut Write<'_>) -> Result<(), Status> {
    let Some(store) = &write.store else { return Err(Status::internal("nothing is stored of it")) };
    let key = store.key(write.target.namespace(), write.target.name());
    write.attempts = Some(Attempts::begin(store, key, write.mode).await?);
    Ok(())
}

async fn judge_again(write: &mut Write<'_>, refusal: Status) -> Result<(), Status> {
    match (&mut write.attempts, &write.store) {
        (Some(attempts), Some(store)) => attempts.judge_again(store, refusal).await,
        _ => Err(refusal),
    }
}

/// Gives back what the stored object has not, or all of it when none was stored. Of a write that the store
/// does not answer nobody knows: what it claimed is left to `repair`.
async fn end_claims<T>(write: &mut Write<'_>, ended: &Result<T, Status>) {
    let claims = std::mem::replace(&mut write.claims, WriteClaims::none());
    match (ended, &write.done) {
        (Err(status), _) if is_unanswered(status) => claims.leave(),
        (Ok(_), Some(Done::Put { object })) => claims.settle(&write.target.served, Some(object)).await,
        _ => claims.settle(&write.target.served, None).await,
    }
}
