//! Authorizers, and the chain of them.
//!
//! In: a question. Out: the first decision of the chain, or all that its members had to say who left it to
//! others. A new one is a file here and a line in [`Authorizers::of`].
//!
//! Source: apiserver v1.36.3 `authorization/union/union.go`.

mod always;
mod counted;
mod node;
mod open_paths;
mod rbac;
mod reloaded;
mod webhook;

use std::borrow::Cow;

use forebay_api::{Authorizer, Because, Decision, Eventual, Rules, Undecided, told_together};
use forebay_apimachinery::{Attributes, Caller};

use crate::config::{Authorization, AuthorizationMode};
use always::{AlwaysAllow, AlwaysDeny, Masters};
use counted::{CountedDecisions, Shared};
use node::Node;
use rbac::Rbac;

pub use open_paths::OpenPaths;
pub use reloaded::ReloadedAuthorizers;
pub use webhook::{AuthorizationWebhook, CarriedReview, CarriesReviews, NotCarried};

/// A chain.
pub struct Authorizers {
    members: Vec<Box<dyn Authorizer>>,
    // Whether one of them asks somebody else.
    waits: bool,
}

/// What those had to say who left it to others.
#[derive(Default)]
struct Told {
    because: Because,
    errors: Vec<String>,
}

impl Authorizers {
    /// What a configuration says, in its order, behind the masters.
    pub fn of(authorization: &Authorization) -> Authorizers {
        let mut members: Vec<Box<dyn Authorizer>> = vec![Box::new(Masters)];
        members.extend(authorization.modes.iter().map(|mode| -> Box<dyn Authorizer> {
            let counted = |kind: &'static str, name: &str, inner: Box<dyn Authorizer>| {
                let counts = authorization.metrics.decisions(kind, name);
                Box::new(CountedDecisions { inner, counts })
            };
            match mode {
                AuthorizationMode::AlwaysAllow => {
                    counted("AlwaysAllow", "alwaysallow", Box::new(AlwaysAllow))
                }
                AuthorizationMode::AlwaysDeny => counted("AlwaysDeny", "alwaysdeny", Box::new(AlwaysDeny)),
                AuthorizationMode::Node(nodes) => counted("Node", "node", Box::new(Node(nodes.clone()))),
                AuthorizationMode::Rbac(rights) => counted("RBAC", "rbac", Box::new(Rbac(rights.clone()))),
                AuthorizationMode::Webhook(webhook) => {
                    counted("Webhook", webhook.name(), Box::new(Shared(webhook.clone())))
                }
                AuthorizationMode::Reloaded(reloaded) => Box::new(Shared(reloaded.clone())),
            }
        }));
        let waits = authorization.modes.iter().any(|mode| matches!(mode, AuthorizationMode::Webhook(_)));
        Authorizers { members, waits }
    }

    /// The chain with another member behind it.
    pub fn then(mut self, last: impl Authorizer + 'static) -> Authorizers {
        self.members.push(Box::new(last));
        self
    }

    /// From the member at `at` on.
    ///
    /// - `told`: what those before had to say.
    fn from<'a>(&'a self, at: usize, mut told: Told, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        for (at, member) in self.members.iter().enumerate().skip(at) {
            match member.authorize(asked) {
                Eventual::Now(decision) => match told.and(decision) {
                    Ok(more) => told = more,
                    Err(decision) => return Eventual::Now(decision),
                },
                Eventual::Later(decision) => {
                    return Eventual::later(async move {
                        match told.and(decision.await) {
                            Ok(told) => self.from(at + 1, told, asked).wait().await,
                            Err(decision) => decision,
                        }
                    });
                }
            }
        }
        Eventual::Now(told.decision())
    }
}

impl Told {
    /// With what one more says.
    ///
    /// # Errors
    /// The decision, if that is one.
    fn and(mut self, decision: Decision) -> Result<Told, Decision> {
        match decision {
            Decision::NoOpinion(more) => self.because = both(self.because, more),
            Decision::Undecided(undecided) if !undecided.is_final => {
                self.because = both(self.because, undecided.because);
                self.errors.push(undecided.error);
            }
            decision => return Err(decision),
        }
        Ok(self)
    }

    /// What it comes to that nobody decided.
    fn decision(self) -> Decision {
        let Told { because, errors } = self;
        match errors.is_empty() {
            true => Decision::NoOpinion(because),
            false => {
                let error = told_together(&errors);
                Decision::Undecided(Box::new(Undecided { is_final: false, because, error }))
            }
        }
    }
}

impl Authorizer for Authorizers {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        self.from(0, Told::default(), asked)
    }

    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules) {
        self.members.iter().for_each(|member| member.rules(caller, namespace, rules));
    }
}

/// What two have to say, a line each.
fn both(one: Because, other: Because) -> Because {
    match (one, other) {
        (Because::Unsaid, only) | (only, Because::Unsaid) => only,
        (one, other) => Because::Said(Cow::Owned(format!("{one}\n{other}"))),
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{About, Verb};

    use super::*;

    /// Says what it is told to, at once or later.
    struct Says(fn() -> Decision, bool);

    impl Authorizer for Says {
        fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Eventual<'a, Decision> {
            match self.1 {
                true => Eventual::later(async {
                    tokio::task::yield_now().await;
                    (self.0)()
                }),
                false => Eventual::Now((self.0)()),
            }
        }

        fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
    }

    fn undecided(is_final: bool) -> Decision {
        let undecided = Undecided { is_final, because: Because::Unsaid, error: "e".to_owned() };
        Decision::Undecided(Box::new(undecided))
    }

    #[tokio::test]
    async fn the_first_that_decides_is_heard_be_it_now_or_later() {
        let allow: fn() -> Decision = || Decision::Allow(Because::Said("a".into()));
        let deny: fn() -> Decision = || Decision::Deny(Because::Said("d".into()));
        let pass: fn() -> Decision = || Decision::NoOpinion(Because::Said("p".into()));
        let silent: fn() -> Decision = || Decision::NoOpinion(Because::Unsaid);
        let fails: fn() -> Decision = || undecided(false);
        let ends: fn() -> Decision = || undecided(true);
        for (members, want) in [
            (vec![], "NoOpinion(\"\")"),
            (vec![silent, pass], "NoOpinion(\"p\")"),
            (vec![pass, silent, pass], "NoOpinion(\"p\\np\")"),
            (vec![pass, allow, deny], "Allow(\"a\")"),
            (vec![silent, deny, allow], "Deny(\"d\")"),
            (vec![fails, allow], "Allow(\"a\")"),
            (
                vec![fails, pass, fails],
                "Undecided(Undecided { is_final: false, because: \"p\", error: \"e\" })",
            ),
            (vec![ends, allow], "Undecided(Undecided { is_final: true, because: \"\", error: \"e\" })"),
        ] {
            for later in 0..1 << members.len() {
                let says = |(at, says): (usize, &fn() -> Decision)| {
                    Box::new(Says(*says, later >> at & 1 == 1)) as Box<dyn Authorizer>
                };
                let members = members.iter().enumerate().map(says).collect();
                let chain = Authorizers { members, waits: false };
                let caller = Caller::default();
                let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/") };
                let decision = chain.authorize(&asked).wait().await;
                assert_eq!(format!("{decision:?}"), want, "{later:b}");
            }
        }
    }
}
