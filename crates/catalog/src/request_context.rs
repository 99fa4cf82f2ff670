//! What goes on beside a request: what an audit log may want to know of it, the trace that is told of it, and
//! its turn, which it leaves to others while it waits for somebody else.
//!
//! In: annotations, parts of its work, a wait. Out: the annotations, for who asked for them. Never: more of
//! them than there is a limit of; decides who has a turn.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use forebay_rt::{Clock, Duration, Instant};
use forebay_spans::{OpenSpan, Trace};

use crate::latencies::{Latencies, TimedPart, Timing};
use crate::limits::{AUDIT_ANNOTATIONS_MAX, AUDIT_BYTES_MAX};

/// What says that something is left out of an event.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// See the module's doc. Nobody asks for annotations of what the server does by itself, and it has no turn.
#[derive(Clone, Default)]
pub struct RequestContext {
    /// Where annotations go; none where nobody asks for them.
    pub audit: Option<Arc<AuditAnnotations>>,
    pub turn: Option<Arc<dyn Turn>>,
    /// What a part of its work is told by; none where nothing of it is told.
    pub trace: Option<Trace>,
    /// As whom fields are owned by a client that names no manager: the program of its User-Agent.
    pub program: String,
    /// What its waits for webhooks are noted in; none where nobody asks.
    pub waits: Option<Arc<WebhookWaits>>,
    /// When those that are asked on its behalf are to have answered.
    pub deadline: Option<Instant>,
}

/// How long a request waited for webhooks that judge it.
#[derive(Debug, Default)]
pub struct WebhookWaits {
    // Of those that are asked one after the other.
    in_turn_us: AtomicU64,
    // The longest of those that are asked at once.
    at_once_us: AtomicU64,
}

impl WebhookWaits {
    pub fn in_turn(&self, took: Duration) {
        self.in_turn_us.fetch_add(micros(took), Relaxed);
    }

    pub fn at_once(&self, took: Duration) {
        self.at_once_us.fetch_max(micros(took), Relaxed);
    }

    pub fn all(&self) -> Duration {
        Duration::from_micros(self.in_turn_us.load(Relaxed).saturating_add(self.at_once_us.load(Relaxed)))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// The turn of a request that is worked on.
pub trait Turn: Send + Sync {
    /// Somebody outside of this server is waited for: others may have the turn.
    fn pause(&self);

    /// The store is waited for: others may have the turn, unless many wait for it already.
    fn pause_for_store(&self);

    /// What was waited for is there: ready once the request has a turn again. Dropping it gives that up.
    fn resume(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What is noted of a request for an audit log: annotations by key, the object that was sent, and what took
/// how long.
#[derive(Debug, Default)]
pub struct AuditAnnotations {
    pub latencies: Latencies,
    noted: Mutex<Noted>,
    /// Whether the object is wanted, and not only what it is called.
    wants_object: bool,
}

/// An object that was sent, as an audit log has it.
#[derive(Debug, Default)]
pub struct ObjectNoted {
    /// Of its metadata; empty where that does not say.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// Its JSON in the version that it was sent in, where it is wanted.
    pub json: Option<Bytes>,
}

#[derive(Debug, Default)]
struct Noted {
    // key -> value, <= AUDIT_ANNOTATIONS_MAX, and that there were more.
    all: BTreeMap<String, String>,
    /// Of keys and values, <= AUDIT_BYTES_MAX.
    bytes: usize,
    object: Option<ObjectNoted>,
}

impl RequestContext {
    /// What `wait` gives. The request's turn is somebody else's meanwhile. Cancel-safe, if `wait` is.
    pub async fn away<T>(&self, wait: impl Future<Output = T>) -> T {
        self.resumed(|turn| turn.pause(), None, wait).await
    }

    /// What `wait` gives, which waits for the store. As [`RequestContext::away`].
    pub async fn at_store<T>(&self, wait: impl Future<Output = T>) -> T {
        self.resumed(|turn| turn.pause_for_store(), self.time(TimedPart::Store), wait).await
    }

    /// - `timing`: of the wait alone.
    async fn resumed<T>(
        &self,
        pause: impl FnOnce(&dyn Turn),
        timing: Option<Timing>,
        wait: impl Future<Output = T>,
    ) -> T {
        if let Some(turn) = &self.turn {
            pause(&**turn);
        }
        let came = wait.await;
        drop(timing);
        if let Some(turn) = &self.turn {
            turn.resume().await;
        }
        came
    }

    /// The beginning of a part of its work, which ends when this is dropped.
    pub fn span(&self, name: &'static str) -> Option<OpenSpan> {
        self.trace.as_ref().map(|trace| trace.span(name))
    }

    /// The beginning of a part of its work whose time is noted, if anybody asks, until this is dropped.
    pub fn time(&self, part: TimedPart) -> Option<Timing> {
        self.audit.as_ref().map(|audit| Timing::begin(audit, part))
    }

    /// Notes what `of` says, if anybody asks: `of` is called only then.
    pub fn annotate<K: Into<String>, V: Into<String>>(&self, of: impl FnOnce() -> (K, V)) {
        if let Some(audit) = &self.audit {
            let (key, value) = of();
            audit.note(key.into(), value.into());
        }
    }

    /// Whether somebody asks for what was sent, whole, and for what was made of it.
    pub fn wants_object(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| audit.wants_object)
    }

    /// Notes the object that was sent, if anybody asks: `json` makes its JSON, and is called only where that
    /// is wanted. A write that begins again notes it once.
    ///
    /// # Errors
    /// What `json` says.
    pub fn note_object<E>(
        &self,
        sent: &Value,
        json: impl FnOnce() -> Result<Option<Bytes>, E>,
    ) -> Result<(), E> {
        let Some(audit) = self.audit.as_ref().filter(|audit| audit.lock().object.is_none()) else {
            return Ok(());
        };
        let text = |name: &str| sent["metadata"][name].as_str().unwrap_or_default().to_owned();
        let object = ObjectNoted {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            json: if audit.wants_object { json()? } else { None },
        };
        audit.lock().object = Some(object);
        Ok(())
    }
}

impl AuditAnnotations {
    /// - `wants_object`: whether the object that was sent is noted whole.
    pub fn new(wants_object: bool, clock: Clock) -> AuditAnnotations {
        AuditAnnotations { latencies: Latencies::new(clock), wants_object, ..AuditAnnotations::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes `value` by `key`. What was noted by that key before stays, as in kube-apiserver; of what is
    /// beyond a limit it is noted that it is left out.
    ///
    /// Source: apiserver v0.36.3 `pkg/audit/context.go`.
    pub fn note(&self, key: String, value: String) {
        let mut noted = self.lock();
        let bytes = noted.bytes + key.len() + value.len();
        if noted.all.contains_key(&key) {
            return;
        }
        if noted.all.len() >= AUDIT_ANNOTATIONS_MAX || bytes > AUDIT_BYTES_MAX {
            noted.all.insert(TRUNCATED.to_owned(), "true".to_owned());
            return;
        }
        noted.bytes = bytes;
        noted.all.insert(key, value);
    }

    /// What was noted, by key. It is not kept.
    pub fn take(&self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.lock().all)
    }

    /// The object that was noted. It is not kept.
    pub fn take_object(&self) -> Option<ObjectNoted> {
        self.lock().object.take()
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
        assert_eq!(all[TRUNCATED], "true");
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

    #[test]
    fn the_object_that_was_sent_is_noted_once_and_whole_where_it_is_wanted() {
        let sent = serde_json::json!({ "metadata": { "name": "a", "resourceVersion": "7" } });
        let noted = |wants_object| {
            let audit = Arc::new(AuditAnnotations::new(wants_object, Clock::default()));
            let context = RequestContext { audit: Some(audit.clone()), ..RequestContext::default() };
            assert_eq!(context.note_object(&sent, || Err("no memory")).is_err(), wants_object);
            let made = || Ok::<_, &str>(Some("{}".into()));
            context.note_object(&sent, made).expect("there is memory");
            context
                .note_object(&Value::Null, || -> Result<_, &str> { panic!("it is there") })
                .expect("noted");
            audit.take_object().expect("noted")
        };
        let object = noted(true);
        assert_eq!((object.name.as_str(), object.resource_version.as_str()), ("a", "7"));
        assert!(object.json.is_some() && noted(false).json.is_none());
        let nobody = RequestContext::default();
        nobody.note_object(&sent, || -> Result<_, &str> { panic!("nobody asks") }).expect("nothing is made");
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

        fn pause_for_store(&self) {
            self.say("pause for the store");
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
        let words = || std::mem::take(&mut *said.0.lock().unwrap_or_else(PoisonError::into_inner));
        assert_eq!(words(), ["pause", "wait", "resume"]);
        assert_eq!(context.at_store(async { said.say("wait") }).now_or_never(), Some(()));
        assert_eq!(words(), ["pause for the store", "wait", "resume"]);
        // Who does not wait any more says nothing: its turn ends with it.
        assert!(context.away(std::future::pending::<()>()).now_or_never().is_none());
        assert_eq!(words(), ["pause"]);
    }
}
