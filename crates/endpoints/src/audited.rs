//! Requests as an audit log has them: what is noted of one, and where on its way.
//!
//! In: a head, and what becomes of it. Out: events, by [`Trail`]; a refusal where a request that cannot be
//! noted may not go on. Never: decides how much is noted, which the policy does; costs anything where nothing
//! is.
//!
//! Source: apiserver v0.36.3 `pkg/endpoints/filters/audit.go`, `authn_audit.go`, `request_deadline.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use forebay_api::{Because, TokenUse};
use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Caller, Exhausted, Lease, Reason, Status};
use forebay_audit::limits::USER_AGENT_BYTES_MAX;
use forebay_audit::{
    Audit, AuditEvent, AuditLevel, AuditStage, Noted, ObjectRef, SentObject, Trail, TrailShape, Unanswered,
    Unkept, Waits, source_ips,
};
use forebay_auth::Refused;
use forebay_catalog::{AuditAnnotations, Target, TimedPart, Timing};
use forebay_reads::{Begun, Encoding, Freshness, ListPlan, Planned, Shown};
use forebay_rt::{Duration, Instant};
use forebay_transport::Connection;
use http::{HeaderMap, HeaderName, header};

use crate::answer::HttpResponse;
use crate::handler::{Handler, Head};
use crate::negotiate;
use crate::noted_list;
use crate::offload;
use crate::status::Failure;
use crate::trails::Audited;

/// What is noted of how a request came.
#[derive(Clone, Copy)]
pub struct RequestCame<'a> {
    pub connection: &'a Connection,
    /// When it came: its time counts from then on.
    pub started: Instant,
    /// Microseconds since 1970.
    pub at_us: u64,
    /// Until when it waits for what is noted to be kept.
    pub deadline: Instant,
    /// How long it took to know who asks.
    pub known_in: Duration,
}

/// Where it is noted what is sent and is no object: a patch, options. To be asked where that is worked on,
/// for it takes as long as reading it.
pub struct NotedBody(Option<Arc<Trail>>);

/// What is noted of an answer that is there.
pub struct Ended {
    pub audited: Audited,
    pub is_long: bool,
    pub is_deprecated: bool,
    pub deadline: Instant,
}

/// What a `Status` is sent in.
const FORMS: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL: HeaderName = HeaderName::from_static("x-real-ip");

impl Audited {
    /// - `user`: who asks; `None` where nobody is known.
    fn begin(
        audit: &Arc<Audit>,
        head: &Head,
        user: Option<Arc<Caller>>,
        came: RequestCame<'_>,
    ) -> Option<Audited> {
        let (caller, shape) = match &user {
            Some(user) => (user.clone(), TrailShape::Whole),
            None => (Arc::default(), TrailShape::Refused),
        };
        let mut notes = None;
        let noted = |level: AuditLevel| -> Box<dyn Fn() -> Noted + Send + Sync> {
            let clock = audit.clock().clone();
            let of = Arc::new(AuditAnnotations::new(level >= AuditLevel::Request, clock));
            notes = Some(of.clone());
            Box::new(move || taken(&of))
        };
        let event = || event(head, user.clone(), came);
        let trail = Arc::new(Trail::begin(audit, &head.asked(&caller), shape, noted, event)?);
        let notes = notes?;
        if head.info.is_long_running() {
            trail.unanswered(Unanswered::Long);
        }
        notes.latencies.took(TimedPart::Authentication, came.known_in);
        Some(Audited { trail, notes })
    }
}

impl NotedBody {
    /// Whether it is noted, and not only what it is called.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Notes it. What is no JSON is not noted.
    ///
    /// # Errors
    /// There is no memory for it: nothing is to be made of it, either.
    pub fn note(self, json: &[u8], lease: &Lease) -> Result<(), Exhausted> {
        self.0.map_or(Ok(()), |trail| trail.sent(json, lease))
    }
}

/// What was noted, in the words of events.
fn taken(notes: &AuditAnnotations) -> Noted {
    let sent = notes.take_object().map(|object| SentObject {
        namespace: object.namespace,
        name: object.name,
        uid: object.uid,
        resource_version: object.resource_version,
        json: object.json,
    });
    Noted { annotations: notes.take(), latencies: notes.latencies.all(), sent }
}

fn event(head: &Head, user: Option<Arc<Caller>>, came: RequestCame<'_>) -> AuditEvent {
    let (headers, info) = (&head.headers, &head.info);
    AuditEvent {
        level: AuditLevel::None,
        id: String::from_utf8_lossy(head.audit_id.as_bytes()).into_owned(),
        stage: AuditStage::RequestReceived,
        uri: head.uri.path_and_query().map_or_else(|| head.uri.path().to_owned(), ToString::to_string),
        verb: info.verb.to_string(),
        user,
        impersonated: None,
        impersonation_constraint: String::new(),
        source_ips: source_ips(
            text(headers, &FORWARDED).as_deref(),
            text(headers, &REAL).as_deref(),
            head.remote,
        ),
        user_agent: user_agent(headers),
        object: info.is_resource.then(|| ObjectRef {
            resource: info.resource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            group: info.group.clone(),
            version: info.version.clone(),
            subresource: info.subresource.clone(),
            ..ObjectRef::default()
        }),
        status: None,
        request_object: None,
        response_object: None,
        received_us: came.at_us as i64,
        stage_us: came.at_us as i64,
        annotations: BTreeMap::new(),
    }
}

/// What is no text of it is replaced, and the rest stays.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Cow<'h, str>> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()))
}

fn user_agent(headers: &HeaderMap) -> String {
    let Some(value) = headers.get(header::USER_AGENT) else { return String::new() };
    match value.as_bytes() {
        all if all.len() > USER_AGENT_BYTES_MAX => {
            format!("{}...TRUNCATED", String::from_utf8_lossy(&all[..USER_AGENT_BYTES_MAX]))
        }
        all => String::from_utf8_lossy(all).into_owned(),
    }
}

impl Head {
    /// Whether the answer is noted, and not only what it says of itself.
    pub fn wants_answer(&self) -> bool {
        self.audited.as_ref().is_some_and(|audited| audited.trail.wants_responses())
    }

    /// Where what is sent is noted.
    pub fn sent(&self) -> NotedBody {
        let trail = self.audited.as_ref().map(|audited| &audited.trail);
        NotedBody(trail.filter(|trail| trail.wants_requests()).cloned())
    }

    /// Notes what is answered, as JSON.
    pub fn answers(&self, json: &Bytes) {
        self.audited.iter().for_each(|audited| audited.trail.answers(json));
    }

    /// The beginning of a part of the work, whose time is noted until this is dropped.
    pub fn time(&self, part: TimedPart) -> Option<Timing> {
        self.audited.as_ref().map(|audited| Timing::begin(&audited.notes, part))
    }

    /// Notes `value` by `key`.
    pub fn note(&self, key: &str, value: &str) {
        self.audited.iter().for_each(|audited| audited.trail.note(key, value));
    }

    /// Notes how its token is used, in upstream's words.
    fn note_token(&self) {
        for used in &self.token_uses {
            let (key, value) = match used {
                TokenUse::Fresh => continue,
                TokenUse::Stale { subject, seconds } => {
                    ("stale-token", format!("subject: {subject}, seconds after warning threshold: {seconds}"))
                }
                TokenUse::Legacy { subject } => ("legacy-token", subject.clone()),
                TokenUse::Manual { secret } => ("legacy-token-manual-secret", secret.clone()),
                TokenUse::Automatic { secret } => ("legacy-token-autogenerated-secret", secret.clone()),
                TokenUse::Invalidated { secret, namespace } => {
                    ("legacy-token-invalidated", format!("{secret}/{namespace}"))
                }
            };
            self.note(&format!("authentication.k8s.io/{key}"), &value);
        }
    }

    /// What its client is told of its token.
    pub fn token_warning(&self) -> Option<&'static str> {
        // Few: two things at most are said of a token.
        let is_automatic = self.token_uses.iter().any(|used| matches!(used, TokenUse::Automatic { .. }));
        is_automatic.then_some(
            "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated \
             secret-based tokens.",
        )
    }

    /// Notes whom the request is made as.
    ///
    /// - `constraint`: for what alone somebody may; empty, if for everything.
    pub fn acts_as_another(&self, constraint: &str) {
        self.audited.iter().for_each(|audited| audited.trail.impersonates(self.asker.caller(), constraint));
    }

    /// Notes what was decided of whether it may be done.
    pub fn decided(&self, decided: &Result<Because, Refused>) {
        let Some(Audited { trail, .. }) = &self.audited else { return };
        let (decision, reason) = match decided {
            Ok(because) => ("allow", because.to_string()),
            Err(Refused::Forbidden(forbidden)) => ("forbid", forbidden.why.clone()),
            Err(Refused::Undecided(_)) => {
                trail.note("authorization.k8s.io/reason", "internal error");
                return;
            }
            Err(Refused::Unauthenticated) => return,
        };
        trail.note("authorization.k8s.io/decision", decision);
        trail.note("authorization.k8s.io/reason", &reason);
        let info = &self.info;
        if decided.is_ok() && info.is_resource && !info.verb.is_read_only() && !info.is_long_running() {
            trail.unanswered(Unanswered::Write);
        }
    }

    /// Notes why it failed.
    pub fn fails(&self, failure: &Failure) {
        let Some(Audited { trail, .. }) = &self.audited else { return };
        if failure.is_panic() {
            return trail.panics(&failure.status.message);
        }
        // Of a path that is nobody's kube-apiserver says so in plain text, and as much to who takes no form
        // of a `Status`.
        let is_told = match failure.status.reason {
            Reason::NotFound => failure.status != Failure::no_such_resource().status,
            Reason::NotAcceptable => negotiate::any_of(negotiate::accept(&self.headers), &FORMS).is_ok(),
            _ => true,
        };
        if is_told {
            self.answers(&failure.to_json().into());
        }
    }
}

impl Handler {
    /// Notes a request, once it is known who asks.
    ///
    /// # Errors
    /// It has to be noted, and cannot be; it takes too long.
    pub async fn note_request(&self, head: &mut Head, came: RequestCame<'_>) -> Result<(), Failure> {
        let Some(audit) = &self.audit else { return Ok(()) };
        head.audited = Audited::begin(audit, head, Some(head.asker.caller()), came);
        head.note_token();
        let Some(Audited { trail, .. }) = &head.audited else { return Ok(()) };
        let waits = trail.received();
        if waits.is_empty() {
            return Ok(());
        }
        match Box::pin(self.kept(waits, came.deadline)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(Unkept)) => {
                trail.reject();
                head.audited = None;
                Err(Status::internal("failed to store audit event").into())
            }
            None => Err(Failure::request_timeout()),
        }
    }

    /// Notes a request that is refused before it is known who asks.
    pub fn note_refusal(&self, head: &mut Head, came: RequestCame<'_>) {
        if let Some(audit) = &self.audit {
            head.audited = Audited::begin(audit, head, None, came);
            head.note_token();
        }
    }

    /// Notes an answer, before any of it is sent: where that is to be waited for, its client waits.
    pub async fn note_answer(&self, ended: Ended, response: &mut HttpResponse) {
        let Ended { audited: Audited { trail, .. }, is_long, is_deprecated, deadline } = ended;
        let code = response.status().as_u16();
        // What goes on over another protocol is long.
        let is_whole = !is_long && response.body().exact_len().is_some();
        let waits = match is_long || trail.shape() == TrailShape::Refused {
            true => trail.started(code),
            false => {
                trail.code(code);
                Waits::default()
            }
        };
        if is_deprecated {
            trail.note("k8s.io/deprecated", "true");
        }
        let waits = match is_whole {
            true if trail.shape() == TrailShape::Whole => {
                let waits = trail.complete();
                // What it has is in its event, which is charged for as long as that takes to be kept.
                drop(trail);
                waits
            }
            // It is complete when its body is gone.
            _ => {
                response.body_mut().hold_trail(trail);
                waits
            }
        };
        if !waits.is_empty() {
            // What was not kept is counted, and the answer is there.
            let _kept = self.kept(waits, deadline).await;
        }
    }

    /// Whether what is waited for is kept; `None`: not until `deadline`.
    async fn kept(&self, waits: Waits, deadline: Instant) -> Option<Result<(), Unkept>> {
        tokio::select! {
            biased;
            kept = waits.kept() => Some(kept),
            () = self.clock.sleep_until(deadline) => None,
        }
    }

    /// Notes all of a list that is answered, and plans the answer of that state. It is left out, which is
    /// noted, where it is too long, or there is no room for it: it is not waited for, since those that hold
    /// the room may read their answers as slowly as they like.
    ///
    /// - `planned`: the list, as it would be answered if nothing were noted.
    ///
    /// # Errors
    /// As a list.
    pub async fn note_list(
        &self,
        head: &Head,
        target: &Target,
        (mut options, shown): (ListOptions, Shown),
        planned: Planned<ListPlan, Shown>,
    ) -> Result<Planned<ListPlan, Shown>, Failure> {
        let Some(Audited { trail, .. }) = &head.audited else { return Ok(planned) };
        let room = self.rooms.audit.clone();
        let foreseen = noted_list::foreseen(planned.weight(), shown.what);
        let Some(held) = foreseen.and_then(|bytes| room.try_take_beside(bytes)) else {
            trail.answers_too_much();
            return Ok(planned);
        };
        let as_json = Shown { encoding: Encoding::Json, ..shown };
        let Begun { body, lease: () } = self.api.list(target, &options, as_json)?.run(()).await?;
        let noted = trail.clone();
        let read = move || noted_list::read(body, held, &room, &noted);
        let Ok(revision) = offload::done(forebay_transport::RunOn::Thread, read).await? else {
            trail.answers_too_much();
            return Ok(planned);
        };
        if planned.freshness() == Freshness::Any {
            // It was answered whole, whatever the limit.
            options.limit = 0;
        }
        if options.continue_token.is_empty()
            && let Some(revision) = revision
        {
            (options.resource_version, options.resource_version_match) = (revision, "Exact".to_owned());
        }
        Ok(self.api.list(target, &options, shown)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_noted_up_to_its_limit() {
        let of = |value: &[u8]| {
            let value = http::HeaderValue::from_bytes(value).expect("a value");
            user_agent(&[(header::USER_AGENT, value)].into_iter().collect())
        };
        assert_eq!(of(b"kubectl/v1"), "kubectl/v1");
        assert_eq!(of("a".repeat(2_000).as_bytes()), format!("{}...TRUNCATED", "a".repeat(1024)));
        assert_eq!(of(b"j\xfcrgen"), "j\u{fffd}rgen");
        assert_eq!(user_agent(&HeaderMap::new()), "");
    }
}
