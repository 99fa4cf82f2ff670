//! What goes on beside a request: what an audit log may want to know of it, the trace that is told of it, and
//! its turn, which it leaves to others while it waits for somebody else.
//!
//! In: annotations, parts of its work, a wait. Out: the annotations, for who asked for them. Never: more of
//! them than there is a limit of; decides who has a turn.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_spans::{OpenSpan, Trace};

use crate::limits::{AUDIT_ANNOTATIONS_MAX, AUDIT_BYTES_MAX};

/// See the module's doc. Nobody asks for annotations of what the server does by itself, and it has no turn.
#[derive(Clone, Default)]
pub struct RequestContext {
    /// Where annotations go; none where nobody asks for them.
    pub audit: Option<Arc<AuditAnnotations>>,
    pub turn: Option<Arc<dyn Turn>>,
    /// What a part of its work is told by; none where nothing of it is told.
    pub trace: Option<Trace>,
}

/// The turn of a request that is worked on.
pub trait Turn: Send + Sync {
    /// Somebody else is waited for: others may have the turn.
    fn pause(&self);

    /// What was waited for is there: ready once the request has a turn again. Dropping it gives that up.
    fn resume(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What is noted of a request for an audit log, by key.
#[derive(Debug, Default)]
pub struct AuditAnnotations(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    // key -> value, <= AUDIT_ANNOTATIONS_MAX
    all: BTreeMap<String, String>,
    /// Of keys and values, <= AUDIT_BYTES_MAX.
    bytes: usize,
}

impl RequestContext {
    /// What `wait` gives. The request's turn is somebody else's meanwhile. Cancel-safe, if `wait` is.
    pub async fn away<T>(&self, wait: impl Future<Output = T>) -> T {
        let Some(turn) = &self.turn else { return wait.await };
        turn.pause();
        let came = wait.await;
        turn.resume().await;
        came
    }

    /// The beginning of a part of its work, which ends when this is dropped.
    pub fn span(&self, name: &'static str) -> Option<OpenSpan> {
        self.trace.as_ref().map(|trace| trace.span(name))
    }

    /// Notes what `of` says, if anybody asks: `of` is called only then.
    pub fn annotate<K: Into<String>, V: Into<String>>(&self, of: impl FnOnce() -> (K, V)) {
        if let Some(audit) = &self.audit {
            let (key, value) = of();
            audit.note(key.into(), value.into());
        }
    }
}

impl AuditAnnotations {
    /// Notes `value` by `key`. What was noted by that key before stays, as in kube-apiserver; what is beyond
    /// a limit is not noted.
    ///
    /// Source: apiserver v0.36.3 `pkg/audit/context.go`.
    pub fn note(&self, key: String, value: String) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = noted.bytes + key.len() + value.len();
        let is_known = noted.all.contains_key(&key);
        if is_known || noted.all.len() >= AUDIT_ANNOTATIONS_MAX || bytes > AUDIT_BYTES_MAX {
            return;
        }
        noted.bytes = bytes;
        noted.all.insert(key, value);
    }

    /// What was noted, by key. It is not kept.
    pub fn take(&self) -> BTreeMap<String, String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_first_stays_and_there_is_no_more_than_the_limits_say() {
        let audit = AuditAnnotations::default();
        audit.note("a".into(), "1".into());
        audit.note("a".into(), "2".into());
        audit.note("long".into(), "x".repeat(AUDIT_BYTES_MAX));
        for at in 0..2 * AUDIT_ANNOTATIONS_MAX {
            audit.note(format!("k{at}"), String::new());
        }
        let all = audit.take();
        assert_eq!((all["a"].as_str(), all.len()), ("1", AUDIT_ANNOTATIONS_MAX));
        assert!(!all.contains_key("long") && audit.take().is_empty());
    }

    #[test]
    fn nothing_is_made_where_nobody_asks() {
        let nobody = RequestContext::default();
        nobody.annotate(|| -> (String, String) { panic!("nobody asks") });
        let audit = Some(Arc::new(AuditAnnotations::default()));
        let asked = RequestContext { audit: audit.clone(), ..RequestContext::default() };
        asked.annotate(|| ("k", "v"));
        assert_eq!(audit.map(|audit| audit.take().len()), Some(1));
    }

    #[derive(Default)]
    struct Said(Mutex<Vec<&'static str>>);

    impl Said {
        fn say(&self, word: &'static str) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(word);
        }
    }

    impl Turn for Said {
        fn pause(&self) {
            self.say("pause");
        }

        fn resume(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            self.say("resume");
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn who_waits_for_somebody_else_is_away_until_then() {
        use futures_util::FutureExt as _;
        let said = Arc::new(Said::default());
        let context = RequestContext { turn: Some(said.clone()), ..RequestContext::default() };
        let answered = context.away(async { said.say("wait") }).now_or_never();
        assert_eq!(answered, Some(()));
        assert_eq!(*said.0.lock().unwrap_or_else(PoisonError::into_inner), ["pause", "wait", "resume"]);
        // Who does not wait any more says nothing: its turn ends with it.
        assert!(context.away(std::future::pending::<()>()).now_or_never().is_none());
        assert_eq!(said.0.lock().unwrap_or_else(PoisonError::into_inner).last(), Some(&"pause"));
    }
}
