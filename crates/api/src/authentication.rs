//! Who asks: what one kind of credentials says of it.
//!
//! In: what a request presents. Out: a caller, or nothing, or that it is no good. Never: what the caller may
//! do.

use std::borrow::Cow;
use std::sync::Arc;

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
