//! One request, from its head to its response: who asks, whether they may, whether there is room, and who
//! answers.
//!
//! In: a request and what its connection showed. Out: a response, always. Every refusal is made here or
//! passes here, so that each has an Audit-Id, is counted, and has the form that the client takes.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use forebay_api::TokenUse;
use forebay_apimachinery::go_duration::{self, GoDurationError};
use forebay_apimachinery::options::Query;
use forebay_apimachinery::{Status, Verb};
use forebay_auth::{Asker, Asking, Peer};
use forebay_catalog::{Served, TimedPart};
use forebay_documents::metrics::Attempt;
use forebay_proxy::ProxyRoute;
use forebay_room::Held;
use forebay_rt::{Instant, Random};
use forebay_spans::OpenSpan;
use forebay_transport::{Connection, Exchange, Reply, ResponseChannel};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::answer::{self, AUDIT_ID, HttpResponse};
use crate::audited::{Ended, RequestCame};
use crate::authn;
use crate::cost::{self};
use crate::documents::{self};
use crate::flow_control::{self, OfRequest};
use crate::handler::{Handler, Head, OnConnection};
use crate::impersonate;
use crate::limits::{ANSWER_SMALL_BYTES, ASKING_SPAN_MAX, AUDIT_ID_BYTES_MAX, HEAD_SMALL_BYTES};
use crate::metrics::{Record, RequestLabels};
use crate::proxied;
use crate::request_info::{PathError, RequestInfo};
use crate::resource;
use crate::response::{self, ResponseBody};
use crate::status::{self, Failure};
use crate::traces;
use crate::websocket;

/// Who answers a request.
enum To {
    /// This server, if there is such a resource.
    Served(Option<Arc<Served>>),
    /// Another one, that is sent the request's target as it came.
    Another(Arc<ProxyRoute>),
}

impl Handler {
    /// Answers `request`.
    pub async fn answer(
        &self,
        request: Request<Incoming>,
        Exchange { peer: known, connection, channel }: Exchange<'_, OnConnection>,
    ) -> Reply<ResponseBody> {
        let started = self.clock.now();
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or(""));
        let head_bytes = cost::head(&parts);
        let is_head = parts.method == Method::HEAD;
        let audit_id = audit_id(&parts.headers, &self.random);
        let at_us = self.audit.as_ref().map_or(0, |_| self.clock.unix_us());
        let deadline = started + self.request_timeout;
        let (mut response, recorded, ended) =
            match RequestInfo::parse(&parts.method, parts.uri.path(), &query) {
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
                    (answered, (None, None, None, None, record), None)
                }
                Ok(info) => {
                    let route = proxied::route(self, &info);
                    let served = if route.is_none() { self.served(&info) } else { None };
                    let labels =
                        RequestLabels::new(&parts.method, &info, served.as_deref(), is_dry_run(&query));
                    let mut record = Record::begin(&self.metrics, &labels, started, info.is_long_running());
                    let deprecation =
                        served.as_deref().and_then(Served::deprecation_warning).map(str::to_string);
                    let (asker, mut headers) = (Asker::Anonymous, parts.headers);
                    websocket::move_token(&mut headers);
                    let mut head = Head {
                        method: parts.method,
                        uri: parts.uri,
                        headers,
                        query,
                        info,
                        asker,
                        remote: connection.remote().map(|remote| remote.ip()),
                        flow: OfRequest::default(),
                        usage: None,
                        channel: channel.clone(),
                        going: connection.going().clone(),
                        audit_id: audit_id.clone(),
                        trace: None,
                        audited: None,
                        deadline: None,
                        ends: None,
                        token_uses: Vec::new(),
                        waits: OnceLock::new(),
                        seat: Mutex::default(),
                    };
                    let is_here =
                        body.is_end_stream() || !head.info.is_resource || head.info.verb.is_read_only();
                    let known_in = Duration::ZERO;
                    let came = RequestCame { connection, started, at_us, deadline, known_in };
                    let admitted = self.admit(&mut head, (head_bytes, is_here), &labels, (known, came)).await;
                    let is_admitted = admitted.is_ok();
                    let span = traces::begin(self, &head, started, &head.uri);
                    head.trace = span.as_ref().and_then(OpenSpan::trace);
                    let answered = match admitted {
                        Err(failure) => Err(failure),
                        Ok(room) => {
                            let to = match route {
                                Some(route) => To::Another(route),
                                None => To::Served(served),
                            };
                            let mut answered = self.within_time(&head, to, body).await;
                            if let Ok(answer) = &mut answered {
                                answer.body_mut().set_head_lease(room);
                            }
                            answered
                        }
                    };
                    let seat = head.seat().take();
                    let mut response =
                        answered.unwrap_or_else(|failure| self.failed(failure, &head, connection));
                    let is_deprecated = deprecation.is_some();
                    if let Some(warning) = head.token_warning() {
                        resource::add_warnings(&mut response, &[warning.to_owned()]);
                    }
                    if let Some(warning) = deprecation {
                        resource::add_warnings(&mut response, &[warning]);
                    }
                    self.insist_on_https(&mut response);
                    let ticket = head.flow.finish(response.headers_mut());
                    record.waited(head.waited(ticket.as_deref()));
                    let (is_long, is_deprecated) =
                        (head.info.is_long_running(), is_deprecated && is_admitted);
                    let ended = head.audited.take();
                    let ended = ended.map(|audited| Ended { audited, is_long, is_deprecated, deadline });
                    (response, (seat, ticket, head.usage, span, record), ended)
                }
            };
        response.headers_mut().insert(AUDIT_ID, audit_id);
        if is_head {
            *response.body_mut() = ResponseBody::whole("");
        }
        if let Some(ended) = ended {
            Box::pin(self.note_answer(ended, &mut response)).await;
        }
        self.charge_whole(response.body_mut(), &channel);
        let (seat, ticket, usage, span, mut record) = recorded;
        usage.iter().for_each(|usage| status::put_down(response.status(), usage));
        record.tell(span);
        record.answered(response.status().as_u16());
        response.body_mut().hold(seat, record);
        response.body_mut().hold_turn(ticket);
        response.body_mut().hold_usage(usage);
        response::reply(response)
    }

    /// Tells browsers to insist on HTTPS, where they are to. As in kube-apiserver neither what switches to
    /// another protocol says it, nor what refuses a path that is none; and what another server says of it
    /// does not count.
    fn insist_on_https(&self, response: &mut HttpResponse) {
        if let Some(said) = self.transport_security.as_ref().filter(|_| response.status() != status::UPGRADED)
        {
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, said.clone());
        }
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
    /// - `is_here`: all of it that is read. A seat is for work, not for waiting: otherwise it is taken
    ///   [later](Handler::receive).
    async fn admit(
        &self,
        head: &mut Head,
        (bytes, is_here): (usize, bool),
        labels: &RequestLabels,
        (known, came): (&OnConnection, RequestCame<'_>),
    ) -> Result<Option<Held>, Failure> {
        let room = self.lease_head(bytes)?;
        let (asker, known_in) = match self.time_limit(head) {
            Ok(limit) => {
                head.ends = limit.map(|limit| came.started + limit);
                head.deadline = limit.map(|limit| self.clock.now() + limit.min(ASKING_SPAN_MAX));
                let (asker, known_in, uses) = self.who_asks(known, head).await;
                head.token_uses = uses;
                (asker, known_in)
            }
            Err(failure) => (Err(failure), Duration::ZERO),
        };
        head.asker = asker.inspect_err(|_| self.note_refusal(head, came))?;
        if matches!(head.asker, Asker::Known(_)) {
            came.connection.authenticated();
        }
        self.note_request(head, RequestCame { known_in, ..came }).await?;
        let ends = head.ends;
        self.in_time(ends, pin!(self.authorize(head, labels, known))).await?;
        // Whoever looks after the server may see how it leaves.
        if self.drain.is_draining() && head.info.is_resource {
            return Err(Failure::shutting_down());
        }
        match (head.info.is_long_running(), is_here) {
            (true, _) => {}
            (false, true) => self.sit(head)?,
            // Nobody is to send a body for which there is no seat anyway.
            (false, false) if !self.has_seat(head) => {
                return Err(self.rooms.full());
            }
            (false, false) => {}
        }
        Ok(room)
    }

    /// Whom the request is made as, and whether they may: noted, and counted.
    async fn authorize(
        &self,
        head: &mut Head,
        labels: &RequestLabels,
        known: &OnConnection,
    ) -> Result<(), Failure> {
        if let Some(wanted) = impersonate::wanted(&head.headers)? {
            let (verb, about) = (&head.info.verb, head.info.about());
            let asking = Asking { access: &self.access, asker: &head.asker, verb, about };
            let timing = head.time(TimedPart::Impersonation);
            let acts = {
                let acts = pin!(self.impersonation.become_wanted(&wanted, asking));
                self.rooms.decided(acts).await??
            };
            drop(timing);
            head.asker = acts.asker;
            head.acts_as_another(acts.constraint.as_deref().unwrap_or_default());
        }
        let caller = head.asker.caller();
        head.flow = OfRequest::classify(self.flow_control.as_ref(), &head.asked(&caller));
        head.usage = Some(Arc::new(self.put_down(head, labels, &known.read)));
        let timing = head.time(TimedPart::Authorization);
        let decision = pin!(self.access.decide(&head.asker, &head.info.verb, head.info.about()));
        let decided = self.rooms.decided(decision).await?;
        drop(timing);
        head.decided(&decided);
        decided?;
        Ok(())
    }

    /// What `work` gives, unless the time of its request is over first.
    ///
    /// - `ends`: when that is; none for one that may take as long as it likes.
    /// - `work`: in its place, of which a copy would double a request's.
    ///
    /// # Errors
    /// What `work` says; 504.
    async fn in_time<T>(
        &self,
        ends: Option<Instant>,
        work: Pin<&mut impl Future<Output = Result<T, Failure>>>,
    ) -> Result<T, Failure> {
        let over = async {
            match ends {
                Some(ends) => self.clock.sleep_until(ends).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = over => Err(Failure::request_timeout()),
        }
    }

    /// Who asks, by what the connection and the request show of it, and how long it took to know; counted.
    async fn who_asks(
        &self,
        OnConnection { peer, own, .. }: &OnConnection,
        head: &mut Head,
    ) -> (Result<Asker, Failure>, Duration, Vec<TokenUse>) {
        if let Some(own) = own {
            return (Ok(Asker::Known(own.clone())), Duration::ZERO, Vec::new());
        }
        let (began, mut uses) = (self.clock.now(), Vec::new());
        let asker = match self.said_by_proxy(peer, &mut head.headers) {
            Ok(Some(asker)) => Ok(asker),
            Ok(None) => {
                if let Some(left) = peer.seconds_left() {
                    self.authentication_metrics.certificate_shown(left);
                }
                let token = authn::bearer_token(&head.headers);
                let known;
                (known, uses) = self.authenticator.authenticate(peer, token).await;
                known.map_err(|_unauthorized| Failure::unauthorized())
            }
            Err(failure) => Err(failure),
        };
        let (attempt, asker) = match asker {
            Err(failure) => (Attempt::Error, Err(failure)),
            Ok(Asker::Anonymous) if !self.access.lets_anonymous_ask(&head.info.path) => {
                (Attempt::Failure, Err(Failure::unauthorized()))
            }
            Ok(asker) => (Attempt::Success, Ok(asker)),
        };
        let user = asker.as_ref().ok().map(Asker::name);
        let took = self.clock.now() - began;
        self.authentication_metrics.attempted(attempt, user, took);
        uses.iter().for_each(|used| self.authentication_metrics.token_uses.used(used));
        (asker, took, uses)
    }

    /// How long the request may take; `None` for one that may take as long as its client likes.
    ///
    /// # Errors
    /// 400: it asks for what is no time.
    fn time_limit(&self, head: &Head) -> Result<Option<Duration>, Failure> {
        if head.info.is_long_running() {
            return Ok(None);
        }
        let Some(text) = head.query.first("timeout").filter(|text| !text.is_empty()) else {
            return Ok(Some(self.request_timeout));
        };
        match asked_timeout(text) {
            Ok(asked) if !asked.is_zero() => Ok(Some(asked.min(self.request_timeout))),
            Ok(_) => Ok(Some(self.request_timeout)),
            Err(why) => {
                let why = why.as_go_says(text);
                let message = format!("invalid timeout specified in the request URL - {why}");
                Err(Status::bad_request(message).into())
            }
        }
    }

    /// Whom a proxy in front of this server says that it is from; nobody on connections that are not such a
    /// proxy's.
    fn said_by_proxy(&self, peer: &Peer, headers: &mut HeaderMap) -> Result<Option<Asker>, Failure> {
        if !peer.is_front_proxy() {
            return Ok(None);
        }
        let said = self.aggregation.remote_headers.caller(headers);
        let said = said.map_err(|_no_text| Failure::unauthorized())?;
        Ok(said.map(|caller| Asker::Known(Arc::new(caller))))
    }

    /// The answer of whoever has it, if that is there in time.
    async fn within_time(&self, head: &Head, to: To, body: Incoming) -> Result<HttpResponse, Failure> {
        let work = pin!(async {
            match (head.info.is_resource, to) {
                // Boxed, because others have none of it.
                (_, To::Another(route)) => Box::pin(proxied::answer(self, head, &route, body)).await,
                (false, _) => {
                    self.begin(head, flow_control::document).await?;
                    documents::answer(self, head).await
                }
                (true, To::Served(None)) => Err(Failure::no_such_resource()),
                (true, To::Served(Some(served))) => resource::answer(self, head, served, body).await,
            }
        });
        self.in_time(head.ends, work).await
    }

    /// The answer of a request that failed. One that was refused is told why, and its client perhaps to go
    /// where there is room.
    fn failed(&self, mut failure: Failure, head: &Head, connection: &Connection) -> HttpResponse {
        let refusal = head.flow.explain(&mut failure);
        head.fails(&failure);
        if let Some(neighbourhood) = &self.neighbourhood
            && (refusal.is_some() || failure.is_for_want_of_memory())
        {
            neighbourhood.refused(connection);
        }
        let mut response = answer::failure(&failure, &head.headers, &head.query);
        response.headers_mut().extend(refusal);
        resource::add_warnings(&mut response, &failure.status.warnings);
        response
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
        self.api.catalog().resource(&info.group, &info.version, &info.resource).cloned()
    }
}

/// kube-apiserver's words for a path under `/watch` that names nothing.
fn no_request_info(uri: &Uri, error: &PathError) -> HttpResponse {
    let path = uri.path_and_query().map_or("", |target| target.as_str());
    let path = path.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let message = format!("Internal Server Error: {path:?}: failed to create RequestInfo: {error}\n");
    answer::text(status::BROKEN, message)
}

/// The id that the client gave, or a new one.
fn audit_id(headers: &HeaderMap, random: &Random) -> HeaderValue {
    let is_kept = |value: &&HeaderValue| !value.is_empty() && value.len() <= AUDIT_ID_BYTES_MAX;
    let given = headers.get(AUDIT_ID).filter(is_kept);
    given.cloned().unwrap_or_else(|| {
        HeaderValue::from_str(&random.uuid()).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

fn is_dry_run(query: &Query) -> bool {
    query.first("dryRun").is_some_and(|value| !value.is_empty())
}

/// What a client asked for as its `timeout`; a negative one counts as none.
fn asked_timeout(text: &str) -> Result<Duration, GoDurationError<'_>> {
    Ok(Duration::from_nanos(u64::try_from(go_duration::parse(text)?).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_waits_is_small() {
        fn size<'a, F: Future>(
            _: impl FnOnce(&'a Handler, Request<Incoming>, Exchange<'a, OnConnection>) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let bytes = size(Handler::answer);
        assert!(bytes <= 8 << 10, "{bytes}");
    }

    #[test]
    fn an_id_that_is_given_is_kept_and_another_one_is_drawn() {
        let given = |id: &[u8]| {
            let id = HeaderValue::from_bytes(id).expect("a value");
            audit_id(&[(AUDIT_ID, id)].into_iter().collect(), &Random::seeded(1))
        };
        let long = "x".repeat(AUDIT_ID_BYTES_MAX);
        assert_eq!(given(long.as_bytes()), long.as_str());
        assert_eq!(given(format!("{long}x").as_bytes()).len(), 36);
        assert_eq!(given(b"j\xfcrgen").as_bytes(), b"j\xfcrgen");
        assert_eq!(given(b"").len(), 36);
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
            ("-1s", Some(0)),
            ("-1.5h", Some(0)),
            ("-", None),
            ("s", None),
            ("1x", None),
        ] {
            assert_eq!(asked_timeout(text).ok(), want.map(Duration::from_millis), "{text}");
        }
    }
}
