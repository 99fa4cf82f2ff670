//! The one place where it is asked whether somebody may: requests, reviews and verbs come here.
//!
//! In: who asks, and for what. Out: yes, or why not, as data. Never: words for a client.

use forebay_api::{Authorizer, Because, Decision, Eventual, Rules};
use forebay_apimachinery::{About, Attributes, Caller, Verb};

use crate::asker::Asker;
use crate::authorizers::{Authorizers, OpenPaths};
use crate::config::{Anonymous, Authorization};

/// Decides.
pub struct Access {
    // What was given to somebody, and that with what is open to everyone behind it.
    given: Authorizers,
    all: Authorizers,
    anonymous: Anonymous,
    // Whether the user whom nobody knows is asked for like any other.
    asks_for_anonymous: bool,
}

/// Somebody may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It takes credentials, and there were none.
    #[error("nobody is known to ask")]
    Unauthenticated,
    #[error(transparent)]
    Forbidden(Box<Forbidden>),
    /// Nobody allows it, and somebody who may could not be asked.
    #[error("{0}")]
    Undecided(String),
}

/// What somebody may not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{user:?} may not {verb}: {why}")]
pub struct Forbidden {
    pub user: String,
    pub verb: Verb,
    pub about: ForbiddenAbout,
    /// What the authorizers had to say; empty when that is nothing.
    pub why: String,
}

/// To what it may not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForbiddenAbout {
    Resource { group: String, namespace: String, resource: String, subresource: String, name: String },
    Path(String),
}

impl Access {
    pub fn new(authorization: &Authorization, anonymous: Anonymous) -> Access {
        Access {
            given: Authorizers::of(authorization),
            all: Authorizers::of(authorization).then(OpenPaths),
            anonymous,
            asks_for_anonymous: !authorization.allows_everyone(),
        }
    }

    /// Whether whoever shows no credentials may ask for anything at `path`.
    pub fn lets_anonymous_ask(&self, path: &str) -> bool {
        match &self.anonymous {
            Anonymous::HealthAndVersion => true,
            Anonymous::Nothing => false,
            // Few: a configuration has a handful.
            Anonymous::AtPaths(paths) => paths.iter().any(|own| own == path),
        }
    }

    /// Whether `asker` may.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn check(&self, asker: &Asker, verb: &Verb, about: About<'_>) -> Result<(), Refused> {
        self.decide(asker, verb, about).await.map(drop)
    }

    /// Why `asker` may.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn decide(&self, asker: &Asker, verb: &Verb, about: About<'_>) -> Result<Because, Refused> {
        let nobody;
        let may_ask = self.anonymous != Anonymous::Nothing;
        let caller = match asker {
            Asker::Known(caller) => &**caller,
            Asker::Anonymous if may_ask && OpenPaths::has(about) => return Ok(Because::Unsaid),
            Asker::Anonymous if may_ask && self.asks_for_anonymous => {
                nobody = Caller::anonymous();
                &nobody
            }
            Asker::Anonymous => return Err(Refused::Unauthenticated),
        };
        let asked = Attributes { caller, verb, about };
        match self.authorize(&asked).wait().await {
            Decision::Allow(because) => Ok(because),
            Decision::Undecided(undecided) => Err(Refused::Undecided(undecided.error)),
            refused => Err(Refused::Forbidden(Box::new(Forbidden::new(&asked, &refused)))),
        }
    }

    /// Whether `asker` was let in by more than that the path is open to everyone, and may hear why one health
    /// check failed.
    pub async fn may_hear_why(&self, asker: &Asker, verb: &Verb, about: About<'_>) -> bool {
        match asker {
            Asker::Anonymous => false,
            Asker::Known(caller) => {
                self.given.authorize(&Attributes { caller, verb, about }).wait().await.is_allowed()
            }
        }
    }
}

impl Authorizer for Access {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        self.all.authorize(asked)
    }

    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules) {
        self.all.rules(caller, namespace, rules);
    }
}

impl Forbidden {
    fn new(asked: &Attributes<'_>, decision: &Decision) -> Forbidden {
        let (user, verb) = (asked.caller.name.clone(), asked.verb.clone());
        Forbidden { user, verb, about: asked.about.into(), why: decision.because().to_string() }
    }
}

impl From<About<'_>> for ForbiddenAbout {
    fn from(about: About<'_>) -> ForbiddenAbout {
        match about {
            About::Path(path) => ForbiddenAbout::Path(path.to_string()),
            About::Resource(of) => ForbiddenAbout::Resource {
                group: of.group.to_string(),
                namespace: of.namespace.to_string(),
                resource: of.resource.to_string(),
                subresource: of.subresource.to_string(),
                name: of.name.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_apimachinery::caller::{AUTHENTICATED, MASTERS};

    use super::*;

    #[tokio::test]
    async fn why_a_check_failed_is_told_to_nobody_whom_only_the_open_path_lets_in() {
        let (verb, about) = (&Verb::Get, About::Path("/livez/etcd"));
        let known = |group: &str| {
            let groups = vec![AUTHENTICATED.to_string(), group.to_string()];
            Asker::Known(Arc::new(Caller { name: "bob".into(), groups, ..Caller::default() }))
        };
        let (allow, deny, rbac) = modes();
        for (mode, asker, hears) in [
            (&allow, Asker::Anonymous, false),
            (&rbac, Asker::Anonymous, false),
            (&allow, known("dev"), true),
            (&rbac, known("dev"), false),
            (&deny, known("dev"), false),
            (&rbac, known(MASTERS), true),
            (&deny, known(MASTERS), true),
        ] {
            let access = Access::new(mode, Anonymous::HealthAndVersion);
            assert!(access.check(&asker, verb, about).await.is_ok(), "{mode:?} {asker:?}");
            assert_eq!(access.may_hear_why(&asker, verb, about).await, hears, "{mode:?} {asker:?}");
        }
    }

    fn modes() -> (Authorization, Authorization, Authorization) {
        (Authorization::always_allow(), Authorization::always_deny(), Authorization::rbac(Arc::default()))
    }

    #[tokio::test]
    async fn at_some_paths_alone_nobody_is_asked_for_like_any_other_user() {
        let paths: Arc<[String]> = ["/livez".to_string(), "/api".to_string()].into();
        let (allow, _, rbac) = modes();
        for (mode, path, lets, refused) in [
            (&rbac, "/livez", true, None),
            (&rbac, "/api", true, Some("\"system:anonymous\" may not get: ")),
            (&rbac, "/readyz", false, None),
            (&allow, "/api", true, Some("nobody is known to ask")),
        ] {
            let access = Access::new(mode, Anonymous::AtPaths(paths.clone()));
            assert_eq!(access.lets_anonymous_ask(path), lets, "{path}");
            let told = access.check(&Asker::Anonymous, &Verb::Get, About::Path(path)).await.err();
            assert_eq!(told.map(|told| told.to_string()).as_deref(), refused, "{mode:?} {path}");
        }
        let nothing = Access::new(&rbac, Anonymous::Nothing);
        assert!(!nothing.lets_anonymous_ask("/livez"));
    }

    #[tokio::test]
    async fn nobody_is_refused_as_a_user_unless_whoever_is_known_may_do_everything() {
        let (allow, deny, rbac) = modes();
        for (mode, anonymous, want) in [
            (&allow, Anonymous::HealthAndVersion, "nobody is known to ask"),
            (
                &deny,
                Anonymous::HealthAndVersion,
                "\"system:anonymous\" may not get: Everything is forbidden.",
            ),
            (&rbac, Anonymous::HealthAndVersion, "\"system:anonymous\" may not get: "),
            (&deny, Anonymous::Nothing, "nobody is known to ask"),
            (&rbac, Anonymous::Nothing, "nobody is known to ask"),
        ] {
            let access = Access::new(mode, anonymous);
            let refused = access.check(&Asker::Anonymous, &Verb::Get, About::Path("/api")).await.err();
            assert_eq!(refused.map(|refused| refused.to_string()).as_deref(), Some(want), "{mode:?}");
        }
    }
}
