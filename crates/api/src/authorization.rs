//! What a caller may do: one question and its answer, and all that can be said of a caller's rights.
//!
//! In: [`Attributes`]. Out: a [`Decision`]. Whoever asks has the chain, requests, reviews and verbs alike.
//! Never: words for a client.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use forebay_apimachinery::{Attributes, Caller, Status};

use crate::Eventual;

/// Decides, or leaves it to the next. Several make a chain: the first that allows or denies is heard.
pub trait Authorizer: Send + Sync {
    /// Whether the caller may.
    ///
    /// Cost: what is decided from memory is answered [`Eventual::Now`], without an allocation.
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision>;

    /// Adds what this one would allow `caller` in `namespace`, as far as it can be told beforehand.
    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules);
}

/// What an authorizer says.
#[derive(Clone, Debug)]
pub enum Decision {
    Allow(Because),
    /// No other one is asked.
    Deny(Because),
    /// Another one may allow it; if none does, it is not allowed.
    NoOpinion(Because),
    /// Who would decide cannot.
    Undecided(Box<Undecided>),
}

/// Why there is no decision.
#[derive(Clone, Debug)]
pub struct Undecided {
    /// Whether no other one is asked: it is as if it were denied.
    pub is_final: bool,
    /// What others had to say.
    pub because: Because,
    pub error: String,
}

/// Why something was decided; made into words where somebody reads them, which few do.
#[derive(Clone, Default)]
pub enum Because {
    /// There is nothing to say.
    #[default]
    Unsaid,
    Said(Cow<'static, str>),
    /// What it was decided by, which says so itself: a rule of the program.
    Fixed(&'static (dyn fmt::Display + Sync)),
    /// The same, of what comes and goes: a binding.
    Shared(Arc<dyn fmt::Display + Send + Sync>),
}

/// What somebody may do in one namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub resources: Vec<ResourceRule>,
    pub paths: Vec<PathRule>,
    /// There may be more that one of the chain allows.
    pub incomplete: bool,
    /// Why something could not be looked at.
    pub errors: Vec<String>,
}

/// Verbs on resources of API groups; `*` is all of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<Cow<'static, str>>,
    pub groups: Vec<Cow<'static, str>>,
    pub resources: Vec<Cow<'static, str>>,
    /// Of objects with these names; none: of all.
    pub names: Vec<Cow<'static, str>>,
}

/// Verbs on paths, of which one ending in `*` stands for all that begin as it does.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PathRule {
    pub verbs: Vec<Cow<'static, str>>,
    pub paths: Vec<Cow<'static, str>>,
}

/// A right beside the one that a request was let in by, which only a verb finds out that it takes: a PUT that
/// creates.
pub trait Permission: Send + Sync {
    /// # Errors
    /// What a client is told who has it not.
    fn ask(&self) -> Eventual<'_, Result<(), Status>>;
}

impl<F: Fn() -> Result<(), Status> + Send + Sync> Permission for F {
    fn ask(&self) -> Eventual<'_, Result<(), Status>> {
        Eventual::Now(self())
    }
}

/// Errors as one text, each once, in the way of upstream's aggregates: several in brackets.
///
/// Source: apimachinery v0.36.3 `util/errors/errors.go`.
pub fn told_together(errors: &[String]) -> String {
    let mut seen = HashSet::new();
    let told: Vec<&str> =
        errors.iter().filter(|error| seen.insert(error.as_str())).map(String::as_str).collect();
    match told.as_slice() {
        [one] => (*one).to_owned(),
        [] => String::new(),
        several => format!("[{}]", several.join(", ")),
    }
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allow(_))
    }

    pub fn because(&self) -> &Because {
        match self {
            Decision::Allow(because) | Decision::Deny(because) | Decision::NoOpinion(because) => because,
            Decision::Undecided(undecided) => &undecided.because,
        }
    }

    /// Whether nobody else was asked, and it is not allowed.
    pub fn is_denied(&self) -> bool {
        match self {
            Decision::Deny(_) => true,
            Decision::Undecided(undecided) => undecided.is_final,
            Decision::Allow(_) | Decision::NoOpinion(_) => false,
        }
    }

    /// What went wrong.
    pub fn error(&self) -> Option<&str> {
        match self {
            Decision::Undecided(undecided) => Some(&undecided.error),
            Decision::Allow(_) | Decision::Deny(_) | Decision::NoOpinion(_) => None,
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Unsaid => Ok(()),
            Because::Said(text) => f.write_str(text),
            Because::Fixed(by) => by.fmt(f),
            Because::Shared(by) => by.fmt(f),
        }
    }
}

/// Its words.
impl fmt::Debug for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}
