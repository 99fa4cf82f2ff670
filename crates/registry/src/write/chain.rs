//! The stages of a write, in order, whichever verb it came by. Each is a value: who adds one adds it here.
//!
//! A stage sees every write, knows the caller and the options, may await, and lets be what is none of its
//! concern.
//!
//! In: a write and what verbs work with. Out: the write, one stage further. Never: which stages run again,
//! which `rounds.rs` says.

use std::ops::RangeBounds;
use std::sync::Arc;

use forebay_api::Eventual;
use forebay_apimachinery::Status;

use super::convert::until_known;
use super::flow::{Flow, Passed};
use super::{Write, charge, commit, decode, escalation, judge, own, preconditions, prepare};
use crate::context::Context;

/// One stage.
pub(crate) struct Stage {
    pub(crate) is: Is,
    run: for<'a, 'w> fn(&'a mut Write<'w>, &'a Arc<Context>) -> Passed<'a>,
}

/// Which stage it is, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Is {
    Decode,
    Normalize,
    Preconditions,
    Default,
    Own,
    Mutate,
    Escalate,
    Plan,
    Name,
    Prepare,
    PlanNew,
    Validate,
    Authorize,
    ValidateByPolicy,
    Charge,
    Claim,
    Commit,
    After,
}

/// The chain. Its picture in ARCHITECTURE.md is drawn from these lines.
pub(crate) static CHAIN: [Stage; 18] = [
    // decode: the body is read once, or what is patched or applied is put into what is there; a Scale,
    // Binding or Eviction is kept as sent
    Stage { is: Is::Decode, run: |write, context| until_known(write, context, decode::decode) },
    // normalize: types checked, unknown fields told of; the namespace and name of the path; a Scale becomes
    // its object
    Stage { is: Is::Normalize, run: |write, _| at_once(decode::normalize(write)) },
    // preconditions: the uid and resourceVersion that the client names are those of what is there
    Stage { is: Is::Preconditions, run: |write, _| at_once(preconditions::check(write)) },
    // default: what the kind says where the client says nothing
    Stage { is: Is::Default, run: |write, _| at_once(prepare::default(write)) },
    // own: whose the fields are is noted, as a client sees them
    Stage { is: Is::Own, run: |write, context| until_known(write, context, own::own) },
    // mutate: plugins, policies and webhooks fill in, or refuse: the life of namespaces, service accounts,
    // priorities, default classes
    Stage { is: Is::Mutate, run: |write, context| judge::mutate(write, context) },
    // escalate: whoever gives a right has it, or may give what they have not
    Stage { is: Is::Escalate, run: |write, context| escalation::escalate(write, context) },
    // plan: what a changed Service takes more, and has still
    Stage { is: Is::Plan, run: |write, _| commit::plan(write) },
    // name: a new object that brings no name is given one
    Stage { is: Is::Name, run: |write, context| at_once(prepare::name(write, context)) },
    // prepare: what only the server writes, and what a verb makes of the object: a deletion begun, a pod
    // bound
    Stage { is: Is::Prepare, run: |write, context| at_once(prepare::prepare(write, context)) },
    // plan new: what a new object takes under its name
    Stage { is: Is::PlanNew, run: |write, _| commit::plan_new(write) },
    // validate: the kind's rules, its schema, and what plugins add to their causes
    Stage { is: Is::Validate, run: |write, context| judge::validate(write, context) },
    // authorize: who was let in to update may create, and who writes a policy may read its parameters
    Stage { is: Is::Authorize, run: |write, context| judge::authorize(write, context) },
    // validate by policy: plugins, policies and webhooks refuse what is valid and yet may not be
    Stage { is: Is::ValidateByPolicy, run: |write, context| judge::by_policy(write, context) },
    // charge: what it uses is counted in the quotas of its namespace, or it is more than they have
    Stage { is: Is::Charge, run: |write, context| charge::charge(write, context) },
    // claim: what is planned is claimed; what went to somebody else is planned and validated again
    Stage { is: Is::Claim, run: |write, context| commit::claim(write, context) },
    // commit: durable, on exactly the object that it was decided by
    Stage { is: Is::Commit, run: |write, context| commit::commit(write, context) },
    // after: what others are judged by is taken in, and what an object had is given back, before the client
    // is answered
    Stage { is: Is::After, run: |write, context| commit::after(write, context) },
];

/// Passes `write` through the stages of `span`, up to the first that refuses it or sends it back.
///
/// # Errors
/// The refusal.
pub(crate) async fn pass(
    write: &mut Write<'_>,
    context: &Arc<Context>,
    span: impl RangeBounds<Is>,
) -> Result<Flow, Status> {
    for stage in CHAIN.iter().filter(|stage| span.contains(&stage.is)) {
        let flow = (stage.run)(write, context).wait().await?;
        if flow != Flow::Next {
            return Ok(flow);
        }
    }
    Ok(Flow::Next)
}

fn at_once<'a>(passed: Result<(), Status>) -> Passed<'a> {
    Eventual::Now(passed.map(|()| Flow::Next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_stand_in_their_order_each_once() {
        let all: Vec<Is> = CHAIN.iter().map(|stage| stage.is).collect();
        assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
        assert_eq!(all.last().map(|last| *last as usize + 1), Some(CHAIN.len()));
    }
}
