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
use forebay_apimachinery::{Attributes, Caller};
use forebay_room::Held;
use forebay_rt::Duration;

use crate::audit::Audit;
use crate::event::{AuditEvent, ObjectRef, ResponseStatus};
use crate::kept::Waits;
use crate::latency;
use crate::level::{AuditLevel, AuditStage};
use crate::managed_fields;
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

    /// What was sent, as it came: a patch.
    pub fn sent(&self, json: &[u8]) {
        if self.wants_requests() {
            self.state().event.request_object = compact(json).map(Bytes::from);
        }
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
        self.note("audit.k8s.io/truncated", "true");
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
            state.is_over = true;
            let members = br#""status":"Failure","message":"APIServer panic'd","reason":"InternalError""#;
            state.event.status = Some(ResponseStatus { members: members.to_vec(), code: 500 });
            drop(self.at(AuditStage::Panic));
            return;
        }
        if !state.is_begun {
            let members = br#""status":"Success","message":"Connection closed early""#;
            state.event.status = Some(ResponseStatus { members: members.to_vec(), code: 200 });
        }
        drop(self.complete());
    }
}

/// JSON as Go writes it again: without white space, and with what HTML would trip over escaped. `None` for
/// what is no JSON.
fn compact(json: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(json).ok()?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut out = Vec::with_capacity(json.len());
    let mut within = false;
    let mut chars = text.bytes();
    while let Some(byte) = chars.next() {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' if !within => {}
            b'<' | b'>' | b'&' => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            b'\\' => {
                out.push(byte);
                out.extend(chars.next());
            }
            byte => {
                within ^= byte == b'"';
                out.push(byte);
            }
        }
    }
    Some(out)
}

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
        let events = trail(metadata, TrailShape::Whole, async |trail| trail.sent(b"[]")).await;
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

    #[tokio::test]
    async fn who_leaves_before_an_answer_is_noted_as_kube_apiserver_does() {
        let events = trail(ALL, TrailShape::Whole, async |trail| drop(trail.received())).await;
        assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
        assert_eq!(events[1]["responseStatus"]["message"], "Connection closed early");
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

    #[test]
    fn a_patch_is_noted_as_go_writes_it_again_and_what_is_no_json_is_not() {
        for (json, want) in [
            ("{ \"a\" : [ 1,\n2 ] }", Some(r#"{"a":[1,2]}"#)),
            (r#"{"a b":"x \" y\\","c":"<&>"}"#, Some(r#"{"a b":"x \" y\\","c":"\u003c\u0026\u003e"}"#)),
            ("a: b", None),
            ("{", None),
            ("", None),
        ] {
            let compacted = compact(json.as_bytes()).map(|out| String::from_utf8(out).expect("a text"));
            assert_eq!(compacted.as_deref(), want, "{json}");
        }
    }
}
