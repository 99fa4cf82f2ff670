//! Who asks: what one kind of credentials says of it.
//!
//! In: what a request presents. Out: a caller, or nothing, or that it is no good. Never: what the caller may
//! do.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::Caller;

use crate::Eventual;

/// Knows one kind of credentials. Several make a chain: the first that knows somebody is believed, whatever
/// others refuse.
pub trait Authenticator: Send + Sync {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Eventual<'a, Authentication>;
}

/// What a request presents of who sends it.
#[derive(Clone, Copy, Default)]
pub struct Presented<'a> {
    /// What its connection showed.
    pub certificate: Option<&'a dyn Certificate>,
    /// A bearer token, as it was sent.
    pub token: Option<&'a [u8]>,
    /// Where a token has to be good: at one of these.
    pub audiences: &'a [String],
    /// Who hears how it is used, where somebody does.
    pub uses: Option<&'a TokenUses>,
}

/// How a service account's token is used that is not as it is to be, or was made to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenUse {
    /// Before it was to be replaced.
    Fresh,
    /// So many seconds after it was to be replaced.
    Stale { subject: String, seconds: i64 },
    /// It says no audience.
    Legacy { subject: String },
    /// It is kept in a Secret that somebody made.
    Manual { secret: String },
    /// It is kept in a Secret that a controller made.
    Automatic { secret: String },
    /// It is kept in a Secret, and marked as no longer to be used.
    Invalidated { secret: String, namespace: String },
}

/// What was heard of one request's token: two things at most.
#[derive(Debug, Default)]
pub struct TokenUses(Mutex<Vec<TokenUse>>);

impl TokenUses {
    pub fn note(&self, used: TokenUse) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(used);
    }

    /// All of it.
    pub fn heard(self) -> Vec<TokenUse> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Presented<'_> {
    /// Somebody may want to know of it: `of` is called only then.
    pub fn note(&self, of: impl FnOnce() -> TokenUse) {
        if let Some(uses) = self.uses {
            uses.note(of());
        }
    }
}

/// A client's certificate. It is judged once for a connection, by whoever keeps that.
pub trait Certificate: Send + Sync {
    /// Whose it is at this moment.
    fn holder(&self) -> Authentication;
}

/// What an authenticator says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    Known(Authenticated),
    /// There is nothing of the kind that it knows.
    NoOpinion,
    /// There is, and it is no good: why.
    Refused(Cow<'static, str>),
}

/// Somebody who is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub caller: Arc<Caller>,
    /// At which of the audiences that were asked for; of a token alone.
    pub audiences: Vec<String>,
}
