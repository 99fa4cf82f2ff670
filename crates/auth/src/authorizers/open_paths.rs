//! What is answered to everyone: whether the server is well, and which version it is.

use forebay_api::{Authorizer, Because, Decision, Eventual, Rules};
use forebay_apimachinery::{About, Attributes, Caller, Verb};

/// How the verbs begin of what is done as somebody else.
const ACTING_ON: &str = "impersonate-on:";

/// Allows these paths.
pub struct OpenPaths;

impl OpenPaths {
    /// Whether it is one of them. Somebody who may be told as who they are may not by that as somebody else.
    pub fn has(verb: &Verb, about: About<'_>) -> bool {
        let About::Path(path) = about else { return false };
        if verb.as_str().starts_with(ACTING_ON) {
            return false;
        }
        let first = path.strip_prefix('/').unwrap_or(path);
        let (first, rest) = first.split_once('/').unwrap_or((first, ""));
        matches!(first, "healthz" | "livez" | "readyz") || (first == "version" && rest.is_empty())
    }
}

impl Authorizer for OpenPaths {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        Eventual::Now(match OpenPaths::has(asked.verb, asked.about) {
            true => Decision::Allow(Because::Unsaid),
            false => Decision::NoOpinion(Because::Unsaid),
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}
