//! The `authorizer` of an expression: the authorizer of this server.
//!
//! In: checks. Out: its decisions. One that has to wait for somebody is noted and has no decision yet:
//! whoever evaluates waits for it, and evaluates again with what came of it. One after the other, as upstream
//! asks, so that nothing is asked that no answer leads to. What was waited for is kept for one admission.
//! Never: waits itself.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/authorizer/caching_authorizer.go`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use forebay_api::{Authorizer, BoxFuture, Decision, Eventual};
use forebay_apimachinery::caller::service_account_name;
use forebay_apimachinery::selector::{FieldSelector, LabelSelector};
use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Verb};
use forebay_cel::authorizer::{self as cel, CHECK_COST, Check, CheckDecision};

use crate::limits::ANSWERS_MAX;

/// On whose behalf who is asked.
pub(super) struct Asked<'a> {
    pub authorizer: &'a Arc<dyn Authorizer>,
    pub caller: &'a Caller,
    pub answers: &'a Answers,
}

/// What was waited for in one admission, and what is to be waited for.
#[derive(Default)]
pub(super) struct Answers(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    // What was asked -> what came of it, <= ANSWERS_MAX.
    known: HashMap<Key, CheckDecision>,
    open: Option<Open>,
    // Checks since the last answer.
    checks: u64,
}

/// A check, and its verb.
type Key = (Check, Box<str>);
/// What is waited for.
type Open = (Key, BoxFuture<'static, Decision>);

impl Answers {
    /// What has no answer yet, and what the checks have cost that are made again once it has one.
    pub fn open(&self) -> Option<(Open, u64)> {
        let mut kept = self.kept();
        let checks = std::mem::take(&mut kept.checks);
        kept.open.take().map(|open| (open, checks.saturating_mul(CHECK_COST)))
    }

    /// Waits for an answer, and keeps it.
    pub async fn wait(&self, (key, decision): Open) {
        let decision = said(&decision.await);
        self.kept().known.insert(key, decision);
    }

    /// What came of a check that was waited for. It counts the check.
    fn known(&self, check: &Check, verb: &str) -> Option<CheckDecision> {
        let mut kept = self.kept();
        kept.checks += 1;
        // Mostly nothing is waited for.
        if kept.known.is_empty() { None } else { kept.known.get(&(check.clone(), verb.into())).cloned() }
    }

    /// Why nothing more is asked of who has to wait.
    fn refusal(&self) -> Option<&'static str> {
        let kept = self.kept();
        match kept.known.len() {
            _ if kept.open.is_some() => Some(OPEN),
            ANSWERS_MAX.. => Some("the authorizer was waited for too often"),
            _ => None,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl cel::Authorizer for Asked<'_> {
    fn check(&self, check: &Check, verb: &str) -> CheckDecision {
        if let Some(known) = self.answers.known(check, verb) {
            return known;
        }
        let question = Question::of(check, verb, self.caller);
        if let Eventual::Now(decision) = self.authorizer.authorize(&question.attributes()) {
            return said(&decision);
        }
        if let Some(why) = self.answers.refusal() {
            return undecided(why);
        }
        let authorizer = self.authorizer.clone();
        let mut decision: BoxFuture<'static, Decision> =
            Box::pin(async move { authorizer.authorize(&question.attributes()).wait().await });
        // Often it need not wait after all.
        match decision.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(decision) => said(&decision),
            Poll::Pending => {
                self.answers.kept().open = Some(((check.clone(), verb.into()), decision));
                undecided(OPEN)
            }
        }
    }
}

/// Why there is no decision yet: nobody hears it, as whoever asks is evaluated again.
const OPEN: &str = "it is waited for";

fn said(decision: &Decision) -> CheckDecision {
    CheckDecision {
        allowed: decision.is_allowed(),
        reason: decision.because().to_string().into(),
        error: decision.error().map(Into::into),
    }
}

fn undecided(why: &str) -> CheckDecision {
    CheckDecision { allowed: false, reason: "".into(), error: Some(why.into()) }
}

/// A check with all that it takes to ask it, also later.
struct Question {
    check: Check,
    verb: Verb,
    caller: Caller,
    // What a selector does not say does not confine: so does one that cannot be read.
    fields: Option<FieldSelector>,
    labels: Option<LabelSelector>,
}

impl Question {
    fn of(check: &Check, verb: &str, requester: &Caller) -> Question {
        let (asker, [fields, labels]) = match check {
            Check::Path { asker, .. } | Check::Group { asker, .. } => (asker, ["", ""]),
            Check::Resource(of) => (&of.asker, [&*of.field_selector, &*of.label_selector]),
        };
        let caller = match asker {
            cel::Asker::Requester => requester.clone(),
            cel::Asker::ServiceAccount { namespace, name } => service_account(namespace, name),
        };
        Question {
            check: check.clone(),
            verb: Verb::named(verb),
            caller,
            fields: FieldSelector::parse(fields).ok(),
            labels: LabelSelector::parse(labels).ok(),
        }
    }

    fn attributes(&self) -> Attributes<'_> {
        let about = match &self.check {
            Check::Path { path, .. } => About::Path(path),
            Check::Group { group, .. } => {
                About::Resource(ResourceAttributes { group, ..ResourceAttributes::default() })
            }
            Check::Resource(of) => About::Resource(ResourceAttributes {
                group: &of.group,
                version: "*",
                namespace: &of.namespace,
                resource: &of.resource,
                subresource: &of.subresource,
                name: &of.name,
                fields: self.fields.as_ref().map_or(&[][..], FieldSelector::requirements),
                labels: self.labels.as_ref().map_or(&[][..], LabelSelector::requirements),
            }),
        };
        Attributes { caller: &self.caller, verb: &self.verb, about }
    }
}

fn service_account(namespace: &str, name: &str) -> Caller {
    let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    Caller { name: service_account_name(namespace, name), groups, ..Caller::default() }
}
