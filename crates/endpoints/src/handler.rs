//! One request, from its head to its response: who asks, whether they may, whether there is room, and who answers.
//!
//! In: a request and what its connection showed. Out: a response, always. Every refusal is made here or passes here, so
//! that each has an Audit-Id, is counted, and has the form that the client takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_api::{Api, MayCreate};
use forebay_apimachinery::accept::{AsKind, Media};
use forebay_apimachinery::caller::MASTERS;
use forebay_apimachinery::go_duration::{self, GoDurationError};
use forebay_apimachinery::options::Query;
use forebay_apimachinery::{Status, Verb};
use forebay_auth::tokens::ServiceAccountTokens;
use forebay_auth::{Access, Asker, Authenticators, Peer};
use forebay_object::Object;
use forebay_registry::catalog::Served;
use forebay_registry::request::Target;
use forebay_registry::{Registry, Weight};
use forebay_rt::{Clock, Random};
use forebay_transport::{Connection, Drain, Exchange, Reply, ResponseChannel, StalledReaders};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::answer::{self, AUDIT_ID, HttpResponse};
use crate::arrivals::Arrivals;
use crate::authn;
use crate::authz;
use crate::body_in::{self, Received};
use crate::cost::{self, ListWork};
use crate::documents::{self, Documents};
use crate::event_blocks::EventBlocks;
use crate::gzip;
use crate::impersonate;
use crate::inflight::{Inflight, Kind, Privilege, Seat};
use crate::limits::{ANSWER_LARGE_BYTES, ANSWER_SMALL_BYTES, HEAD_SMALL_BYTES};
use crate::memory::Memory;
use crate::metrics::{Metrics, Record, RequestLabels};
use crate::negotiate::Form;
use crate::request_info::{PathError, RequestInfo};
use crate::resource;
use crate::response::{self, ResponseBody};
use crate::room::Held;
use crate::rooms::Rooms;
use crate::status::Failure;
use crate::websocket;

/// Everything that answering takes; one for the whole server.
pub struct Handler {
    /// The verbs that answer; what is served, LIST and WATCH are still asked of `registry`.
    pub api: Arc<dyn Api>,
    pub registry: Registry,
    pub clock: Clock,
    pub random: Random,
    pub accounts: Arc<ServiceAccountTokens>,
    pub authenticator: Authenticators,
    pub access: Arc<Access>,
    pub inflight: Inflight,
    pub arrivals: Arrivals,
    pub rooms: Rooms,
    pub memory: Memory,
    pub stalled_readers: StalledReaders,
    pub event_blocks: EventBlocks,
    pub metrics: Arc<Metrics>,
    pub drain: Drain,
    pub documents: Documents,
    pub request_timeout: Duration,
}

/// A request's head, read once.
pub struct Head {
    pub method: Method,
    pub headers: HeaderMap,
    pub query: Query,
    pub info: RequestInfo,
    pub asker: Asker,
    /// What is answered is written to it.
    pub channel: ResponseChannel,
    // Taken at once, or when the body is there.
    seat: Mutex<Option<Seat>>,
}

impl Head {
    pub fn takes_gzip(&self) -> bool {
        gzip::is_taken(&self.headers)
    }

    fn seat(&self) -> MutexGuard<'_, Option<Seat>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler {
    /// Answers `request`.
    pub async fn answer(
        &self,
        request: Request<Incoming>,
        Exchange { peer, connection, channel }: Exchange<'_, Peer>,
    ) -> Reply<ResponseBody> {
        let started = self.clock.now();
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or(""));
        let head_bytes = cost::head(&parts);
        let is_head = parts.method == Method::HEAD;
        let audit_id = audit_id(&parts.headers, &self.random);
        let (mut response, recorded) = match RequestInfo::parse(&parts.method, parts.uri.path(), &query) {
            Err(error) => {
                let labels = RequestLabels::new(&parts.method, &RequestInfo::default(), None, false);
                let record = Record::begin(&self.metrics, &labels, started, false);
                let answered = match error {
                    PathError::Incomplete(_) => no_request_info(&parts.uri, &error),
                    PathError::Escape => {
                        let failure = Status::bad_request(error.to_string()).into();
                        answer::failure(&failure, &parts.headers, &query)
                    }
                };
                (answered, (None, record))
            }
            Ok(info) => {
                let served = self.served(&info);
                let labels = RequestLabels::new(&parts.method, &info, served.as_deref(), is_dry_run(&query));
                let record = Record::begin(&self.metrics, &labels, started, info.is_long_running());
                let deprecation = served.as_deref().and_then(Served::deprecation_warning).map(str::to_string);
                let (asker, mut headers) = (Asker::Anonymous, parts.headers);
                websocket::move_token(&mut headers);
                let mut head = Head {
                    method: parts.method,
                    headers,
                    query,
                    info,
                    asker,
                    channel: channel.clone(),
                    seat: Mutex::default(),
                };
                let is_here = body.is_end_stream() || !head.info.is_resource || head.info.verb.is_read_only();
                let answered = match self.admit(&mut head, head_bytes, is_here, (peer, connection)).await {
                    Err(failure) => Err(failure),
                    Ok(room) => {
                        let mut answered = self.within_time(&head, served, body).await;
                        if let Ok(answer) = &mut answered {
                            answer.body_mut().set_head_lease(room);
                        }
                        answered
                    }
                };
                let seat = head.seat().take();
                let mut response =
                    answered.unwrap_or_else(|failure| answer::failure(&failure, &head.headers, &head.query));
                if let Some(warning) = deprecation {
                    resource::add_warnings(&mut response, &[warning]);
                }
                (response, (seat, record))
            }
        };
        response.headers_mut().insert(AUDIT_ID, audit_id);
        if is_head {
            *response.body_mut() = ResponseBody::whole("");
        }
        self.charge_whole(response.body_mut(), &channel);
        let (seat, mut record) = recorded;
        record.answered(response.status().as_u16());
        response.body_mut().hold(seat, record);
        response::reply(response)
    }

    /// Counts an answer that is there whole, and watches over its reader: it is held until that has it.
    fn charge_whole(&self, body: &mut ResponseBody, channel: &ResponseChannel) {
        if let Some(len) = body.exact_len().filter(|len| *len > ANSWER_SMALL_BYTES) {
            body.watch_over((&self.stalled_readers, channel), || self.rooms.answers.charge(len));
        }
    }

    /// Room for a long head: who sends many of these at once is told so.
    fn lease_head(&self, bytes: usize) -> Result<Option<Held>, Failure> {
        if bytes <= HEAD_SMALL_BYTES {
            return Ok(None);
        }
        self.rooms.answers.try_take(bytes).map(Some).ok_or_else(|| self.rooms.full())
    }

    /// Who asks, whether they may, a seat for the request, and room for its head of so many bytes.
    ///
    /// - `is_here`: all of it that is read. A seat is for work, not for waiting: otherwise it is taken [later](Handler::receive).
    async fn admit(
        &self,
        head: &mut Head,
        bytes: usize,
        is_here: bool,
        (peer, connection): (&Peer, &Connection),
    ) -> Result<Option<Held>, Failure> {
        let room = self.lease_head(bytes)?;
        head.asker = self
            .authenticator
            .authenticate(peer, authn::bearer_token(&head.headers))
            .await
            .map_err(|_unauthorized| Failure::unauthorized())?;
        if matches!(head.asker, Asker::Known(_)) {
            connection.authenticated();
        }
        if let Some(wanted) = impersonate::wanted(&head.headers)? {
            head.asker = wanted.checked(&self.access, &head.asker).await?;
        }
        self.access.check(&head.asker, &head.info.verb, head.info.about()).await?;
        // Whoever looks after the server may see how it leaves.
        if self.drain.is_draining() && head.info.is_resource {
            return Err(Failure::shutting_down());
        }
        match (head.info.is_long_running(), is_here) {
            (true, _) => {}
            (false, true) => self.sit(head)?,
            // Nobody is to send a body for which there is no seat anyway.
            (false, false) if !self.inflight.has_room(kind(head), privilege(head)) => {
                return Err(self.rooms.full());
            }
            (false, false) => {}
        }
        Ok(room)
    }

    /// A seat, for as long as the request is worked on.
    fn sit(&self, head: &Head) -> Result<(), Failure> {
        let seat = self.inflight.take(kind(head), privilege(head)).ok_or_else(|| self.rooms.full())?;
        *head.seat() = Some(seat);
        Ok(())
    }

    /// The body, whole. The request has a seat from then on, as long as it is worked on, and none while it waits.
    ///
    /// # Errors
    /// See [`body_in::read`]; 429 when there is no seat, or it came so slowly that it had to give way.
    pub async fn receive(&self, head: &Head, body: Incoming) -> Result<Received, Failure> {
        let (rooms, user) = (&self.rooms, head.asker.name());
        let received = if body.is_end_stream() {
            body_in::read(rooms, user, &head.headers, body).await?
        } else {
            let arrival = self.arrivals.begin(user);
            tokio::select! {
                biased;
                received = body_in::read(rooms, user, &head.headers, arrival.note(body)) => received?,
                () = arrival.gives_way() => return Err(self.rooms.full()),
            }
        };
        // One whose end came while it was looked at who asks has none yet, either.
        if head.seat().is_none() {
            self.sit(head)?;
        }
        Ok(received)
    }

    async fn within_time(
        &self,
        head: &Head,
        served: Option<Arc<Served>>,
        body: Incoming,
    ) -> Result<HttpResponse, Failure> {
        let work = async {
            match (head.info.is_resource, served) {
                (false, _) => documents::answer(self, head).await,
                (true, None) => Err(Failure::no_such_resource()),
                (true, Some(served)) => resource::answer(self, head, served, body).await,
            }
        };
        if head.info.is_long_running() {
            return work.await;
        }
        let limit = match head.query.first("timeout").filter(|text| !text.is_empty()) {
            None => self.request_timeout,
            Some(text) => match asked_timeout(text) {
                Ok(asked) if !asked.is_zero() => asked.min(self.request_timeout),
                Ok(_) => self.request_timeout,
                Err(why) => {
                    let why = why.as_go_says(text);
                    let message = format!("invalid timeout specified in the request URL - {why}");
                    return Err(Status::bad_request(message).into());
                }
            },
        };
        tokio::select! {
            biased;
            answered = work => answered,
            () = self.clock.sleep(limit) => Err(Failure::request_timeout()),
        }
    }

    /// Admits a LIST, or a WATCH with its initial state, by what it may come to: at once, or after a wait. One that is cheap holds
    /// nothing.
    ///
    /// - `is_as_stored`: nothing is made of the objects but what is stored of them.
    ///
    /// # Errors
    /// 429 when there is no memory for it.
    pub async fn admit_read(
        &self,
        head: &Head,
        Weight { objects, bytes }: Weight,
        is_as_stored: bool,
    ) -> Result<Option<Held>, Failure> {
        let work = ListWork { form: !is_as_stored, objects, bytes };
        let Some(bytes) = cost::list(work) else { return Ok(None) };
        let held = self.rooms.lists.take(head.asker.name(), bytes).await;
        held.map(Some).map_err(|_full| self.rooms.full())
    }

    /// Admits the answer to a GET: at once for most, after a wait for a large object. The lease is for what is sent, and for the
    /// tree that the object is read into to be shown, where that is large.
    ///
    /// # Errors
    /// 429 when there is no memory for it.
    pub async fn admit_object(
        &self,
        head: &Head,
        object: &Object,
        form: Form,
    ) -> Result<(Held, Option<Held>), Failure> {
        let (is_large, user) = (object.body_len() > ANSWER_LARGE_BYTES, head.asker.name());
        let is_as_stored = form.media == Media::Json && form.as_kind == AsKind::Object;
        let tree = match is_large && !is_as_stored {
            true => {
                let taken = self.rooms.bodies.take(user, cost::body(&object.body(), None)).await;
                Some(taken.map_err(|_full| self.rooms.full())?)
            }
            false => None,
        };
        let bytes = if form.is_for_people() { cost::answer(&object.body(), form) } else { object.body_len() };
        if bytes <= ANSWER_LARGE_BYTES {
            return Ok((self.rooms.answers.charge(bytes), tree));
        }
        let held = self.rooms.answers.take(user, bytes).await;
        Ok((held.map_err(|_full| self.rooms.full())?, tree))
    }

    /// What the tree of the object that is to be changed takes, where that is large. It is asked for with the room for the body,
    /// once that is there: who waits for one holds nothing of the other.
    pub fn bytes_to_change(&self, target: &Target) -> usize {
        let object = self.registry.cached(target).filter(|object| object.body_len() > ANSWER_LARGE_BYTES);
        object.map_or(0, |object| cost::body(&object.body(), None))
    }

    /// The data itself does not fit any more: only what makes none of it, or less, is done.
    pub fn no_memory_for_more(&self) -> Failure {
        self.memory.no_more_objects().into()
    }

    /// What a PUT that creates is asked: it was authorized as an update, and takes room as a create does.
    pub fn may_create(&self, head: &Head) -> MayCreate {
        let (access, memory) = (self.access.clone(), self.memory.clone());
        let (asker, info) = (head.asker.clone(), head.info.clone());
        Arc::new(authz::MayCreate { access, asker, info, memory })
    }

    /// The resource that a request is about.
    fn served(&self, info: &RequestInfo) -> Option<Arc<Served>> {
        if !info.is_resource || info.is_malformed || info.verb == Verb::Proxy {
            return None;
        }
        let is_core = info.prefix == "api";
        if is_core != info.group.is_empty() {
            return None;
        }
        self.registry.catalog().resource(&info.group, &info.version, &info.resource).cloned()
    }
}

fn kind(head: &Head) -> Kind {
    if head.info.verb.is_read_only() { Kind::ReadOnly } else { Kind::Mutating }
}

fn privilege(head: &Head) -> Privilege {
    if head.asker.is_in(MASTERS) { Privilege::Exempt } else { Privilege::None }
}

/// kube-apiserver's words for a path under `/watch` that names nothing.
fn no_request_info(uri: &http::Uri, error: &PathError) -> HttpResponse {
    let path = uri.path_and_query().map_or("", |target| target.as_str());
    let path = path.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let message = format!("Internal Server Error: {path:?}: failed to create RequestInfo: {error}\n");
    answer::text(StatusCode::INTERNAL_SERVER_ERROR, message)
}

/// The id that the client gave, or a new one.
fn audit_id(headers: &HeaderMap, random: &Random) -> HeaderValue {
    const BYTES_MAX: usize = 64;
    let given = headers.get(AUDIT_ID).filter(|value| !value.is_empty() && value.len() <= BYTES_MAX);
    given.cloned().unwrap_or_else(|| {
        HeaderValue::from_str(&random.uuid()).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

fn is_dry_run(query: &Query) -> bool {
    query.first("dryRun").is_some_and(|value| !value.is_empty())
}

/// What a client asked for as its `timeout`; a negative one counts as none.
fn asked_timeout(text: &str) -> Result<Duration, GoDurationError<'_>> {
    let nanos = go_duration::parse(text)?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| GoDurationError::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_waits_is_small() {
        fn size<'a, F: Future>(
            _: impl FnOnce(&'a Handler, Request<Incoming>, Exchange<'a, Peer>) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let bytes = size(Handler::answer);
        assert!(bytes <= 8 << 10, "{bytes}");
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, want) in [
            ("0", Some(0)),
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("", None),
            ("5", None),
            ("-1s", None),
            ("s", None),
            ("1x", None),
        ] {
            assert_eq!(asked_timeout(text).ok(), want.map(Duration::from_millis), "{text}");
        }
    }
}
