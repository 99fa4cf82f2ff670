//! A chain in whose place another is put while it decides.
//!
//! In: questions; chains. Out: what the chain in force says. A question that is being decided is decided by
//! the chain that it began with. Never: reads a file.
//!
//! Source: kubernetes v1.36.3 `pkg/kubeapiserver/authorizer/reload.go`.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use forebay_api::{Authorizer, Because, Decision, Eventual, Rules};
use forebay_apimachinery::{Attributes, Caller};

use crate::authorizers::Authorizers;
use crate::config::Authorization;

/// See the module's doc.
pub struct ReloadedAuthorizers(ArcSwap<Authorizers>);

impl ReloadedAuthorizers {
    pub fn new(authorization: &Authorization) -> ReloadedAuthorizers {
        ReloadedAuthorizers(ArcSwap::from_pointee(Authorizers::of(authorization)))
    }

    /// From now on this decides.
    pub fn replace(&self, authorization: &Authorization) {
        self.0.store(Arc::new(Authorizers::of(authorization)));
    }
}

impl fmt::Debug for ReloadedAuthorizers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadedAuthorizers").finish_non_exhaustive()
    }
}

impl Authorizer for ReloadedAuthorizers {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let chain = self.0.load();
        if chain.waits {
            let chain = Arc::clone(&chain);
            return Eventual::later(async move { chain.authorize(asked).wait().await });
        }
        // None of them waits: it is there.
        Eventual::Now(chain.authorize(asked).at_once().unwrap_or(Decision::NoOpinion(Because::Unsaid)))
    }

    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules) {
        self.0.load_full().rules(caller, namespace, rules);
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{About, Verb};

    use super::*;

    #[tokio::test]
    async fn another_chain_decides_from_the_moment_that_it_is_put_in_place() {
        let chain = Arc::new(ReloadedAuthorizers::new(&Authorization::always_deny()));
        let caller = Caller::default();
        let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") };
        assert!(!chain.authorize(&asked).wait().await.is_allowed());
        chain.replace(&Authorization::always_allow());
        assert!(matches!(chain.authorize(&asked), Eventual::Now(Decision::Allow(_))));
        let mut rules = Rules::default();
        chain.rules(&caller, "n", &mut rules);
        assert_eq!(rules.resources.len(), 1);
    }
}
