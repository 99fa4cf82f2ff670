//! Authorizers that ask for little: the masters, and those of a mode in which everything is allowed or
//! nothing is.
//!
//! Source: apiserver v1.36.3 `authorization/authorizerfactory/builtin.go`.

use forebay_api::{Authorizer, Because, Decision, Eventual, PathRule, ResourceRule, Rules};
use forebay_apimachinery::caller::MASTERS;
use forebay_apimachinery::{Attributes, Caller};

/// Allows everything to the masters. It says nothing of that as a rule: a binding does, where there are any.
pub struct Masters;

/// Allows everything.
pub struct AlwaysAllow;

/// Allows nothing, and says so.
pub struct AlwaysDeny;

impl Authorizer for Masters {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        Eventual::Now(match asked.caller.is_in(MASTERS) {
            true => Decision::Allow(Because::Unsaid),
            false => Decision::NoOpinion(Because::Unsaid),
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        Eventual::Now(Decision::Allow(Because::Unsaid))
    }

    fn rules(&self, _: &Caller, _: &str, rules: &mut Rules) {
        everything(rules);
    }
}

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        Eventual::Now(Decision::NoOpinion(Because::Said("Everything is forbidden.".into())))
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

/// Every verb on everything.
pub fn everything(rules: &mut Rules) {
    let all = || vec!["*".into()];
    rules.resources.push(ResourceRule { verbs: all(), groups: all(), resources: all(), names: Vec::new() });
    rules.paths.push(PathRule { verbs: all(), paths: all() });
}
