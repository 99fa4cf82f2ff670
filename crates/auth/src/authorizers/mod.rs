//! Authorizers, and the chain of them.
//!
//! In: a question. Out: the first decision of the chain, or all that its members had to say who left it to
//! others. A new one is a file here and a line in [`Authorizers::of`].
//!
//! Source: apiserver v1.36.3 `authorization/union/union.go`.

mod always;
mod open_paths;
mod rbac;

use std::borrow::Cow;

use forebay_api::{Authorizer, Because, Decision, Eventual, Rules};
use forebay_apimachinery::{Attributes, Caller};

use crate::config::{Authorization, AuthorizationMode};
use always::{AlwaysAllow, AlwaysDeny, Masters};
use rbac::Rbac;

pub use open_paths::OpenPaths;

/// A chain.
pub struct Authorizers(Vec<Box<dyn Authorizer>>);

impl Authorizers {
    /// What a configuration says, in its order, behind the masters.
    pub fn of(authorization: &Authorization) -> Authorizers {
        let mut members: Vec<Box<dyn Authorizer>> = vec![Box::new(Masters)];
        members.extend(authorization.0.iter().map(|mode| -> Box<dyn Authorizer> {
            match mode {
                AuthorizationMode::AlwaysAllow => Box::new(AlwaysAllow),
                AuthorizationMode::AlwaysDeny => Box::new(AlwaysDeny),
                AuthorizationMode::Rbac(rights) => Box::new(Rbac(rights.clone())),
            }
        }));
        Authorizers(members)
    }

    /// The chain with another member behind it.
    pub fn then(mut self, last: impl Authorizer + 'static) -> Authorizers {
        self.0.push(Box::new(last));
        self
    }

    /// From the member at `at` on.
    ///
    /// - `because`: what those before had to say.
    fn from<'a>(
        &'a self,
        at: usize,
        mut because: Because,
        asked: &'a Attributes<'a>,
    ) -> Eventual<'a, Decision> {
        for (at, member) in self.0.iter().enumerate().skip(at) {
            match member.authorize(asked) {
                Eventual::Now(Decision::NoOpinion(more)) => because = both(because, more),
                Eventual::Now(decision) => return Eventual::Now(decision),
                Eventual::Later(decision) => {
                    return Eventual::later(async move {
                        match decision.await {
                            Decision::NoOpinion(more) => {
                                self.from(at + 1, both(because, more), asked).wait().await
                            }
                            decision => decision,
                        }
                    });
                }
            }
        }
        Eventual::Now(Decision::NoOpinion(because))
    }
}

impl Authorizer for Authorizers {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        self.from(0, Because::Unsaid, asked)
    }

    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules) {
        self.0.iter().for_each(|member| member.rules(caller, namespace, rules));
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

    #[tokio::test]
    async fn the_first_that_decides_is_heard_be_it_now_or_later() {
        let allow: fn() -> Decision = || Decision::Allow(Because::Said("a".into()));
        let deny: fn() -> Decision = || Decision::Deny(Because::Said("d".into()));
        let pass: fn() -> Decision = || Decision::NoOpinion(Because::Said("p".into()));
        let silent: fn() -> Decision = || Decision::NoOpinion(Because::Unsaid);
        for (members, want) in [
            (vec![], "NoOpinion(\"\")"),
            (vec![silent, pass], "NoOpinion(\"p\")"),
            (vec![pass, silent, pass], "NoOpinion(\"p\\np\")"),
            (vec![pass, allow, deny], "Allow(\"a\")"),
            (vec![silent, deny, allow], "Deny(\"d\")"),
        ] {
            for later in 0..1 << members.len() {
                let says = |(at, says): (usize, &fn() -> Decision)| {
                    Box::new(Says(*says, later >> at & 1 == 1)) as Box<dyn Authorizer>
                };
                let chain = Authorizers(members.iter().enumerate().map(says).collect());
                let caller = Caller::default();
                let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/") };
                let decision = chain.authorize(&asked).wait().await;
                assert_eq!(format!("{decision:?}"), want, "{later:b}");
            }
        }
    }
}
