//! The seam to who carries a review to its webhook.
//!
//! In: where it goes, and its bytes in parts. Out: what came back, unread, or why nothing did. Never: a
//! judgement.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use forebay_apimachinery::Lease;

use crate::configuration::{ClientConfig, WebhookSort};

/// One call.
#[derive(Clone)]
pub struct Calling {
    pub client: ClientConfig,
    /// By whose credentials it is asked; `None` for a conversion, which shows none.
    pub sort: Option<WebhookSort>,
    pub url: String,
    /// Where a service is found, `host:port`; `None` where the URL says it.
    pub address: Option<Box<str>>,
    /// Whether there are others to try: then one that did not connect a moment ago is passed over.
    pub has_others: bool,
    /// Bytes one after the other: what several webhooks are sent is there once.
    pub parts: Vec<Bytes>,
    /// What the answer is charged to, as it comes. What is sent is charged by who calls.
    pub lease: Lease,
    /// Bytes that whoever waits for the answer holds meanwhile, where that is counted nowhere else.
    pub holds: usize,
    /// Whether it has had its turn among the calls of its webhook.
    pub begun: Arc<AtomicBool>,
}

/// What is said of a call that took too long.
///
/// - `begun`: whether it had its turn.
pub fn too_late(begun: &AtomicBool) -> NoAnswer {
    let why = match begun.load(Ordering::Relaxed) {
        true => "context deadline exceeded",
        false => "context deadline exceeded while it waited for other calls to this webhook to be answered",
    };
    NoAnswer::Failed(why.to_owned())
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answered {
    pub code: u16,
    /// As it is said; empty where nothing is.
    pub content_type: String,
    pub body: Bytes,
}

/// Why nothing came back. But where it is said otherwise, in the words that follow `Post "…": `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Nobody has seen the request: another address may be asked.
    Unreached(String),
    Failed(String),
    /// Nobody has seen it: too many wait for it to answer.
    Busy(String),
    /// What is said of where it is, or of who vouches for it, cannot be used. In words of its own.
    Unusable(String),
    /// An answer began and did not end. In words of its own.
    Unread(String),
}

impl NoAnswer {
    pub fn why(&self) -> &str {
        match self {
            NoAnswer::Unreached(why)
            | NoAnswer::Failed(why)
            | NoAnswer::Busy(why)
            | NoAnswer::Unusable(why)
            | NoAnswer::Unread(why) => why,
        }
    }
}

/// Carries reviews. Whoever waits no longer drops the future, and the call is given up.
pub trait Calls: Send + Sync {
    fn call(&self, calling: Calling)
    -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>>;
}

/// Who carries reviews where there is no way out.
pub struct NobodyCalls;

impl Calls for NobodyCalls {
    fn call(&self, _: Calling) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        Box::pin(std::future::ready(Err(NoAnswer::Failed("this server calls nobody".to_owned()))))
    }
}
