//! An authorizer whose decisions are counted, and one that several chains share.
//!
//! In: a question. Out: what the authorizer says. Never: counts what is left to others, as upstream.

use std::sync::Arc;

use forebay_api::{Authorizer, Decision, Eventual, Rules};
use forebay_apimachinery::{Attributes, Caller};
use forebay_authorization::DecisionCounts;

/// See the module's doc.
pub struct CountedDecisions {
    pub inner: Box<dyn Authorizer>,
    pub counts: Arc<DecisionCounts>,
}

/// An authorizer that several chains share.
pub struct Shared<A>(pub Arc<A>);

impl<A: Authorizer> Authorizer for Shared<A> {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        self.0.authorize(asked)
    }

    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules) {
        self.0.rules(caller, namespace, rules);
    }
}

impl CountedDecisions {
    fn count(&self, decision: Decision) -> Decision {
        if decision.is_allowed() {
            self.counts.allowed();
        } else if decision.is_denied() {
            self.counts.denied();
        }
        decision
    }
}

impl Authorizer for CountedDecisions {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        match self.inner.authorize(asked) {
            Eventual::Now(decision) => Eventual::Now(self.count(decision)),
            Eventual::Later(decision) => Eventual::later(async move { self.count(decision.await) }),
        }
    }

    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules) {
        self.inner.rules(caller, namespace, rules);
    }
}
