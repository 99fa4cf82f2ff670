//! Webhooks of admission and of conversion, which a test answers for.
//!
//! In: calls, and what a test says to a request. Out: reviews with that as their response, and a count of
//! the calls. Never: a connection.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_registry::Config;
use forebay_webhooks::{Answered, Calling, Calls, NoAnswer};
use serde_json::{Value, json};

/// What a webhook says to a request; nothing where it is not there.
type Says = dyn Fn(&Value) -> Option<Value> + Send + Sync;

/// See the module's doc.
pub struct Hooks {
    says: Box<Says>,
    calls: AtomicUsize,
}

impl Hooks {
    pub fn new(says: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static) -> Arc<Hooks> {
        Arc::new(Hooks { says: Box::new(says), calls: AtomicUsize::new(0) })
    }

    /// How often they were asked since somebody looked.
    pub fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }

    /// A server that asks these.
    pub fn config(self: &Arc<Hooks>) -> Config {
        Config { webhooks: self.clone(), ..Config::default() }
    }

    fn answer(&self, calling: &Calling) -> Result<Answered, NoAnswer> {
        let review: Value = serde_json::from_slice(&calling.parts.concat()).expect("a review");
        let gone = || NoAnswer::Failed("connection refused".to_owned());
        let mut response = (self.says)(&review["request"]).ok_or_else(gone)?;
        response["uid"] = review["request"]["uid"].clone();
        let (version, kind) = (&review["apiVersion"], &review["kind"]);
        let answer = json!({ "apiVersion": version, "kind": kind, "response": response });
        Ok(Answered {
            code: 200,
            content_type: "application/json".into(),
            body: Bytes::from(answer.to_string()),
        })
    }
}

impl Calls for Hooks {
    fn call(
        &self,
        calling: Calling,
    ) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(ready(self.answer(&calling)))
    }
}
