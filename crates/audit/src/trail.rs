//! What is noted of one request, from when it is known who asks until nothing more is sent.
//!
//! In: what becomes known of the request on its way. Out: an event at each stage that its policy wants.
//! Never: notes a stage twice; ends without a last event, whatever becomes of the request.
//!
//! Owner of the event: whoever holds the lock, for a few lines. What others note of the request meanwhile is
//! asked for at each stage.
//!
//! Source: apiserver v0.36.3 `pkg/audit/context.go`, `pkg/endpoints/filters/audit.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use forebay_apimachinery::json::write_string;
use forebay_apimachinery::{Attributes, Caller, Exhausted, Lease};
use forebay_room::Held;
use forebay_rt::Duration;

use crate::audit::Audit;
use crate::compact::Compact;
use crate::event::{AuditEvent, ObjectRef, ResponseStatus};
use crate::kept::Waits;
use crate::latency;
use crate::level::{AuditLevel, AuditStage};
use crate::line::TRUNCATED;
use crate::managed_fields;
use crate::panics;
use crate::policy::AuditVerdict;

/// See the module's doc.
pub struct Trail {
    audit: Arc<Audit>,
    verdict: AuditVerdict,
    shape: TrailShape,
    /// What was noted by others since it was last asked.
    noted: Box<dyn Fn() -> Noted + Send + Sync>,
    state: Mutex<State>,
}

/// Which stages a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailShape {
    /// All.
    Whole,
    /// The answer's beginning alone: nobody is known to ask, or it cannot be asked so.
    Refused,
}

/// What is noted of who leaves before there is an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// That nothing was sent.
    #[default]
    Nothing,
    /// The same, as of an answer that goes on for long: it began, and is over.
    Long,
    /// That the write took too long: who waits for it is told so, if they are there or not.
    Write,
}

/// What others note of a request while it is worked on.
#[derive(Debug, Default)]
pub struct Noted {
    pub annotations: BTreeMap<String, String>,
    /// How long parts of the work took so far, by the keys of their annotations.
    pub latencies: Vec<(&'static str, Duration)>,
    pub sent: Option<SentObject>,
}

/// An object that was sent.
#[derive(Debug, Default)]
pub struct SentObject {
    /// Of its metadata, if it has any.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// Compact JSON, where it is wanted.
    pub json: Option<Bytes>,
}

struct State {
    event: AuditEvent,
    is_begun: bool,
    is_over: bool,
    unanswered: Unanswered,
    /// Microseconds since 1970 when the answer's head was known, and its body is sent from then on.
    answered_us: Option<i64>,
    /// What the answer that is noted takes.
    held: Option<Held>,
}

impl Trail {
    /// Begins the trail of a request; `None` where nothing is to be noted of it.
    ///
    /// - `noted`: see [`Noted`]; asked at each stage.
    /// - `event`: what is known of the request, made where it is wanted.
    pub fn begin(
        audit: &Arc<Audit>,
        asked: &Attributes<'_>,
        shape: TrailShape,
        noted: impl FnOnce(AuditLevel) -> Box<dyn Fn() -> Noted + Send + Sync>,
        event: impl FnOnce() -> AuditEvent,
    ) -> Option<Trail> {
        let verdict = audit.verdict(asked);
        if verdict.level == AuditLevel::None {
            return None;
        }
        let state = State {
            event: AuditEvent { level: verdict.level, ..event() },
            is_begun: false,
            is_over: false,
            unanswered: Unanswered::default(),
            answered_us: None,
            held: None,
        };
        let (audit, noted) = (audit.clone(), noted(verdict.level));
        Some(Trail { audit, verdict, shape, noted, state: Mutex::new(state) })
    }

    pub fn shape(&self) -> TrailShape {
        self.shape
    }

    pub fn wants_requests(&self) -> bool {
        self.verdict.level >= AuditLevel::Request
    }

    pub fn wants_responses(&self) -> bool {
        self.verdict.level >= AuditLevel::RequestResponse
    }

    /// Who asks acts as somebody else.
    pub fn impersonates(&self, other: Arc<Caller>, constraint: &str) {
        let mut state = self.state();
        state.event.impersonated = Some(other);
        constraint.clone_into(&mut state.event.impersonation_constraint);
    }

    /// Whether the owners of fields are left out, which takes a copy.
    pub fn omits_managed_fields(&self) -> bool {
        self.verdict.omits_managed_fields
    }

    /// What is noted if nobody is answered.
    pub fn unanswered(&self, is: Unanswered) {
        self.state().unanswered = is;
    }

    /// What was sent, as it came: a patch. What is no JSON is not noted. Cost: three passes over it.
    ///
    /// - `lease`: is charged for what is noted before it is made.
    ///
    /// # Errors
    /// [`Exhausted`]: it cannot be noted.
    pub fn sent(&self, json: &[u8], lease: &Lease) -> Result<(), Exhausted> {
        if !self.wants_requests() {
            return Ok(());
        }
        let Some(compact) = Compact::of(json) else { return Ok(()) };
        lease.charge(compact.len())?;
        self.state().event.request_object = Some(compact.written());
        Ok(())
    }

    /// What is answered.
    ///
    /// - `json`: as this server writes it.
    pub fn answers(&self, json: &Bytes) {
        let status = ResponseStatus::of_json(json);
        let object = self.wants_responses().then(|| {
            let json = json.slice(..json.trim_ascii_end().len());
            if self.verdict.omits_managed_fields { managed_fields::without(json) } else { json }
        });
        let mut state = self.state();
        if status.is_some() {
            state.event.status = status;
        }
        state.event.response_object = object;
    }

    /// Keeps what the answer that is noted takes until it is noted.
    pub fn hold(&self, held: Held) {
        self.state().held = Some(held);
    }

    /// It is answered with more than is kept of one event.
    pub fn answers_too_much(&self) {
        self.note(TRUNCATED, "true");
    }

    /// What is noted by a key first stays.
    pub fn note(&self, key: &str, value: &str) {
        self.state().event.annotations.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }

    /// The request is there, and it is known who asks.
    pub fn received(&self) -> Waits {
        self.at(AuditStage::RequestReceived)
    }

    /// The head of the answer is known, and its body is long.
    pub fn started(&self, code: u16) -> Waits {
        if self.state().is_over {
            return Waits::default();
        }
        drop(self.answered(code));
        let waits = self.at(AuditStage::ResponseStarted);
        if self.shape == TrailShape::Refused {
            self.state().is_over = true;
        }
        waits
    }

    /// The code of the answer, whose body is not sent yet.
    pub fn code(&self, code: u16) {
        let now = self.audit.clock().unix_us() as i64;
        self.answered(code).answered_us.get_or_insert(now);
    }

    fn answered(&self, code: u16) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.event.status.get_or_insert_default().code = code;
        state.is_begun = true;
        state
    }

    /// Nothing more is sent.
    pub fn complete(&self) -> Waits {
        if std::mem::replace(&mut self.state().is_over, true) {
            return Waits::default();
        }
        self.at(AuditStage::ResponseComplete)
    }

    /// It is refused because it could not be noted: there is no other event.
    pub fn reject(&self) {
        self.state().is_over = true;
        self.audit.rejected();
    }

    /// The server has failed: there is no other event.
    ///
    /// - `said`: what it panicked with.
    pub fn panics(&self, said: &str) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_over, true) {
            return;
        }
        let mut members = br#""status":"Failure","message":"#.to_vec();
        write_string(&format!("APIServer panic'd: {said}"), &mut members);
        members.extend_from_slice(br#","reason":"InternalError""#);
        state.event.status = Some(ResponseStatus { members, code: 500 });
        drop(state);
        drop(self.at(AuditStage::Panic));
    }

    fn at(&self, stage: AuditStage) -> Waits {
        if self.verdict.omits.has(stage) {
            return Waits::default();
        }
        let noted = if stage == AuditStage::RequestReceived { Noted::default() } else { (self.noted)() };
        let now = self.audit.clock().unix_us() as i64;
        let mut state = self.state();
        let answered_us = state.answered_us.unwrap_or(now);
        let event = &mut state.event;
        for (key, value) in noted.annotations {
            event.annotations.entry(key).or_insert(value);
        }
        if stage == AuditStage::ResponseComplete {
            latency::tell(event, noted.latencies, (answered_us, now));
        }
        if let Some(sent) = noted.sent {
            self.take(event, sent);
        }
        event.stage = stage;
        event.stage_us = if stage == AuditStage::RequestReceived { event.received_us } else { now };
        let event = event.clone();
        drop(state);
        self.audit.process(&event)
    }

    /// What was sent says what the request is about where its path does not.
    fn take(&self, event: &mut AuditEvent, sent: SentObject) {
        let SentObject { namespace, name, uid, resource_version, json } = sent;
        let object = event.object.get_or_insert_with(ObjectRef::default);
        for (of, said) in [
            (&mut object.namespace, namespace),
            (&mut object.name, name),
            (&mut object.uid, uid),
            (&mut object.resource_version, resource_version),
        ] {
            if of.is_empty() {
                *of = said;
            }
        }
        if let Some(json) = json.filter(|_| self.wants_requests()) {
            let omits = self.verdict.omits_managed_fields;
            event.request_object = Some(if omits { managed_fields::without(json) } else { json });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever asked is gone, or the server has failed.
impl Drop for Trail {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return;
        }
        if std::thread::panicking() {
            return self.panics(&panics::said());
        }
        if !state.is_begun {
            let unanswered = state.unanswered;
            match unanswered {
                Unanswered::Nothing | Unanswered::Long => {
                    let members = br#""status":"Success","message":"Connection closed early""#;
                    state.event.status = Some(ResponseStatus { members: members.to_vec(), code: 200 });
                }
                Unanswered::Write => self.answers(&Bytes::from_static(GONE)),
            }
            match unanswered {
                Unanswered::Nothing => {}
                Unanswered::Long => drop(self.at(AuditStage::ResponseStarted)),
                Unanswered::Write => drop(self.answered(504)),
            }
        }
        drop(self.complete());
    }
}

/// What a write is answered whose client is gone: nobody reads it.
///
/// Source: apiserver v0.36.3 `pkg/endpoints/handlers/finisher/finisher.go`.
const GONE: &[u8] = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: request did not complete within requested timeout - context canceled","reason":"Timeout","details":{},"code":504}"#;

#[cfg(test)]
mod tests {
    use std::fs;

    use forebay_apimachinery::{About, Verb};
    use forebay_rt::{Clock, Random};
    use forebay_scratch::Scratch;

    use super::*;
    use crate::event::an_event;
    use crate::options::{AuditMode, AuditOptions, LogFormat, LogOptions, NO_LIMIT, batch};
    use crate::read_policy::read_text;

    /// What is in the log after a request that `does`, by stage and, if wanted, by `of`.
    async fn trail(
        policy: &str,
        shape: TrailShape,
        does: impl AsyncFnOnce(&Trail),
    ) -> Vec<serde_json::Value> {
        let scratch = Scratch::new();
        let path = scratch.path().join("audit.log");
        let log = LogOptions {
            path: path.clone(),
            format: LogFormat::Json,
            age_days_max: 0,
            backups_max: 0,
            megabytes_max: 0,
            compresses: false,
            batch: batch(AuditMode::Blocking),
            truncate: NO_LIMIT,
        };
        let options = AuditOptions { log: Some(log), webhook: None };
        let policy = read_text(policy).expect("a policy").0;
        let (clock, _) = Clock::manual(1_800_000_001_000);
        let audit = Audit::begin(policy, &options, None, clock, Random::seeded(1)).expect("begun");
        let audit = Arc::new(audit);
        let caller = Caller::default();
        let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") };
        let notes = |_| -> Box<dyn Fn() -> Noted + Send + Sync> {
            Box::new(|| Noted {
                annotations: [("noted".into(), "by others".into())].into(),
                latencies: vec![("etcd", Duration::from_millis(2))],
                sent: Some(SentObject {
                    name: "sent".into(),
                    json: Some(r#"{"metadata":{"name":"sent","managedFields":[]}}"#.into()),
                    ..SentObject::default()
                }),
            })
        };
        let trail = Trail::begin(&audit, &asked, shape, notes, an_event).expect("noted");
        does(&trail).await;
        drop(trail);
        audit.finish(forebay_rt::Duration::from_secs(5)).await;
        let text = fs::read_to_string(&path).expect("read");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn stages(events: &[serde_json::Value]) -> Vec<&str> {
        events.iter().map(|event| event["stage"].as_str().unwrap_or_default()).collect()
    }

    const ALL: &str = r#"{"rules": [{"level": "RequestResponse"}]}"#;

    #[tokio::test]
    async fn a_request_is_noted_when_it_comes_and_when_it_is_answered() {
        let events = trail(ALL, TrailShape::Whole, async |trail| {
            trail.received().kept().await.expect("kept");
            trail.answers(&Bytes::from_static(b"{\"kind\":\"Pod\"}\n"));
            trail.code(201);
            trail.complete().kept().await.expect("kept");
        })
        .await;
        assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
        let (first, last) = (&events[0], &events[1]);
        assert_eq!(first["stageTimestamp"], first["requestReceivedTimestamp"]);
        assert!(first["annotations"].is_null() && first["requestObject"].is_null());
        assert_eq!(last["stageTimestamp"], "2027-01-15T08:00:01.000000Z");
        assert_eq!(last["annotations"]["noted"], "by others");
        // It came a second ago, but for a microsecond.
        let total = &last["annotations"]["apiserver.latency.k8s.io/total"];
        assert_eq!((total, &last["annotations"]["etcd"]), (&"999.999ms".into(), &"2ms".into()));
        assert_eq!(last["objectRef"]["name"], "sent");
        assert_eq!(last["requestObject"]["metadata"]["name"], "sent");
        assert_eq!(
            (&last["responseObject"]["kind"], &last["responseStatus"]["code"]),
            (&"Pod".into(), &201.into())
        );
    }

    #[tokio::test]
    async fn bodies_are_noted_where_they_are_wanted_and_managed_fields_go_where_they_are_not() {
        let policy = r#"{"omitManagedFields": true, "rules": [{"level": "Request"}]}"#;
        let events = trail(policy, TrailShape::Whole, async |trail| {
            trail.answers(&Bytes::from_static(b"{}"));
            trail.code(200);
        })
        .await;
        assert_eq!(stages(&events), ["ResponseComplete"]);
        assert_eq!(events[0]["requestObject"], serde_json::json!({ "metadata": { "name": "sent" } }));
        assert!(events[0]["responseObject"].is_null());
        let metadata = r#"{"rules": [{"level": "Metadata"}]}"#;
        let events = trail(metadata, TrailShape::Whole, async |trail| {
            trail.sent(b"[]", &Lease::of_server()).expect("memory");
        })
        .await;
        assert!(events[0]["requestObject"].is_null() && events[0]["objectRef"]["name"] == "sent");
    }

    #[tokio::test]
    async fn stages_that_are_omitted_are_not_noted() {
        let policy = r#"{"omitStages": ["RequestReceived"], "rules": [
            {"level": "Metadata", "omitStages": ["ResponseStarted"]}]}"#;
        let events = trail(policy, TrailShape::Whole, async |trail| {
            drop((trail.received(), trail.started(200)));
        })
        .await;
        assert_eq!(stages(&events), ["ResponseComplete"]);
    }

    /// What is noted of who leaves before an answer: the stages, and the last event.
    async fn left(unanswered: Unanswered) -> (Vec<String>, serde_json::Value) {
        let events = trail(ALL, TrailShape::Whole, async |trail| {
            drop(trail.received());
            trail.unanswered(unanswered);
        })
        .await;
        let stages = stages(&events).into_iter().map(str::to_owned).collect();
        (stages, events.last().expect("an event").clone())
    }

    #[tokio::test]
    async fn who_leaves_before_anything_is_sent_is_noted_as_if_all_went_well() {
        let (stages, last) = left(Unanswered::Nothing).await;
        assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
        assert_eq!(last["responseStatus"]["message"], "Connection closed early");
        let (stages, last) = left(Unanswered::Long).await;
        assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
        assert_eq!(last["responseStatus"]["code"], 200);
    }

    #[tokio::test]
    async fn a_write_whose_client_leaves_has_not_gone_well() {
        let (stages, last) = left(Unanswered::Write).await;
        assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
        let message = "Timeout: request did not complete within requested timeout - context canceled";
        let want = serde_json::json!({
            "metadata": {}, "status": "Failure", "message": message, "reason": "Timeout", "details": {}, "code": 504,
        });
        assert_eq!((&last["responseStatus"], &last["responseObject"]["code"]), (&want, &504.into()));
    }

    #[tokio::test]
    async fn a_panic_is_noted_with_what_it_says_and_nothing_after_it() {
        let events = trail(ALL, TrailShape::Whole, async |trail| {
            trail.panics("as it \"should\"");
            drop((trail.started(200), trail.complete()));
        })
        .await;
        assert_eq!(stages(&events), ["Panic"]);
        let status = &events[0]["responseStatus"];
        assert_eq!(
            (&status["message"], &status["code"]),
            (&"APIServer panic'd: as it \"should\"".into(), &500.into())
        );
    }

    #[tokio::test]
    async fn a_thread_that_unwinds_says_what_it_panicked_with() {
        let events = trail(ALL, TrailShape::Whole, async |trail| {
            panics::listen();
            let audit = trail.audit.clone();
            let caller = Caller::default();
            let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") };
            let notes = |_| -> Box<dyn Fn() -> Noted + Send + Sync> { Box::new(Noted::default) };
            let other = Trail::begin(&audit, &asked, TrailShape::Whole, notes, an_event).expect("noted");
            let fails = tokio::spawn(async move {
                let _noted = other;
                panic!("on {}", "purpose");
            });
            assert!(fails.await.is_err_and(|why| why.is_panic()));
        })
        .await;
        assert_eq!(events[0]["responseStatus"]["message"], "APIServer panic'd: on purpose");
    }

    #[tokio::test]
    async fn what_was_sent_is_charged_before_it_is_noted_and_refused_where_there_is_no_memory() {
        let events = trail(ALL, TrailShape::Whole, async |trail| {
            let patch = format!("{{ \"a\": \"{}\" }}", "<".repeat(100));
            let lease = Lease::new(Ledger(700), 0);
            assert_eq!(trail.sent(patch.as_bytes(), &lease), Ok(()));
            assert_eq!(lease.used(), "{\"a\":\"\"}".len() + 600);
            assert_eq!(trail.sent(patch.as_bytes(), &lease), Err(Exhausted::NoRoom));
            assert_eq!(trail.state().event.request_object.as_ref().map(Bytes::len), Some(lease.used()));
        })
        .await;
        assert_eq!(events.len(), 1);
    }

    /// A ledger with so many bytes.
    struct Ledger(usize);

    impl forebay_apimachinery::lease::Ledger for Ledger {
        fn try_take(&mut self, bytes: usize) -> bool {
            let left = self.0.checked_sub(bytes);
            self.0 = left.unwrap_or(self.0);
            left.is_some()
        }
    }

    #[tokio::test]
    async fn who_is_not_known_is_noted_once() {
        let events = trail(ALL, TrailShape::Refused, async |trail| drop(trail.started(401))).await;
        assert_eq!(stages(&events), ["ResponseStarted"]);
        let events = trail(ALL, TrailShape::Whole, async |trail| {
            drop(trail.received());
            trail.reject();
        })
        .await;
        assert_eq!(stages(&events), ["RequestReceived"]);
    }
}
