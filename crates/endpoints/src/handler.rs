//! What answering takes, and what each request may take of it: a seat, room for a body, a read or an object.
//!
//! In: the head of a request, and what it weighs. Out: a seat, a lease, a body; or a refusal. Never: who
//! answers.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use forebay_api::{Api, MayCreate, TokenUse};
use forebay_apimachinery::accept::{AsKind, Media};
use forebay_apimachinery::caller::MASTERS;
use forebay_apimachinery::options::Query;
use forebay_apimachinery::{Attributes, Caller};
use forebay_audit::Audit;
use forebay_auth::tokens::ServiceAccountTokens;
use forebay_auth::{Access, Asker, Authenticators, Impersonation, Peer};
use forebay_catalog::{RequestContext, Served, Target, TimedPart, Turn, WebhookWaits};
use forebay_documents::Documents;
use forebay_documents::metrics::AuthenticationMetrics;
use forebay_flow::Configuration;
use forebay_object::Object;
use forebay_pieces::{EventBlocks, SharedLists};
use forebay_reads::{Rendering, Weight};
use forebay_room::Held;
use forebay_rt::{Clock, Instant, Random, Shutdown, Tasks};
use forebay_spans::{Trace, Tracer};
use forebay_transport::{Arrivals, Drain, ResponseChannel, StalledReaders};
use forebay_usage::{ReadBefore, Usage, Usages};
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::aggregation::Aggregation;
use crate::authz;
use crate::body_in::{self, Received};
use crate::cost::{self, ListWork};
use crate::flow_control::{
    self, Cost, FlowControl, Learned, ListForeseen, ListMeter, ListPrice, OfRequest, Ticket,
};
use crate::inflight::{Inflight, Privilege, RequestKind, Seat};
use crate::limits::ANSWER_LARGE_BYTES;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::negotiate::{self, Form};
use crate::neighbourhood::Neighbourhood;
use crate::request_info::RequestInfo;
use crate::rooms::Rooms;
use crate::status::Failure;
use crate::trails::Audited;
use crate::used_tokens::UsedTokens;

/// Everything that answering takes; one for the whole server.
pub struct Handler {
    /// The verbs that answer.
    pub api: Arc<dyn Api>,
    pub clock: Clock,
    pub random: Random,
    pub accounts: Arc<ServiceAccountTokens>,
    pub authenticator: Authenticators,
    pub impersonation: Impersonation,
    pub authentication_metrics: Arc<AuthenticationMetrics>,
    pub access: Arc<Access>,
    pub inflight: Inflight,
    pub flow_control: Option<FlowControl>,
    /// What lists take on this machine.
    pub learned: Learned,
    pub arrivals: Arrivals,
    pub rooms: Rooms,
    pub memory: Memory,
    pub stalled_readers: StalledReaders,
    pub event_blocks: EventBlocks,
    pub shared_lists: SharedLists,
    pub metrics: Arc<Metrics>,
    pub usages: Usages,
    /// Secrets that are to say that their tokens are used.
    pub used_tokens: Arc<UsedTokens>,
    pub drain: Drain,
    /// What notes requests, if anything does.
    pub audit: Option<Arc<Audit>>,
    /// What other servers answer.
    pub aggregation: Aggregation,
    /// Where there may be other servers.
    pub neighbourhood: Option<Arc<Neighbourhood>>,
    pub documents: Documents,
    /// What is told of requests; none where nothing is.
    pub tracer: Option<Arc<Tracer>>,
    pub request_timeout: Duration,
    /// What browsers are told of HTTPS.
    pub transport_security: Option<HeaderValue>,
}

/// What is known of a connection: who it is, and what was read on it.
#[derive(Default)]
pub struct OnConnection {
    pub peer: Peer,
    pub read: Arc<ReadBefore>,
    /// This server itself is at the other end, as this user.
    pub own: Option<Arc<Caller>>,
}

/// A request's head, read once.
pub struct Head {
    pub method: Method,
    /// As it came.
    pub uri: Uri,
    pub headers: HeaderMap,
    pub query: Query,
    pub info: RequestInfo,
    pub asker: Asker,
    /// Who is at the other end of its connection.
    pub remote: Option<IpAddr>,
    pub flow: OfRequest,
    /// Nothing before it is known who asks.
    pub usage: Option<Arc<Usage>>,
    /// What is answered is written to it.
    pub channel: ResponseChannel,
    /// Raised when its connection is told to go.
    pub going: Shutdown,
    pub audit_id: HeaderValue,
    /// What a part of the work is told by.
    pub trace: Option<Trace>,
    /// Where something is noted of it.
    pub audited: Option<Audited>,
    /// When it has to be answered; none if it may take as long as it likes.
    pub ends: Option<Instant>,
    /// When those that are asked on its behalf are to have answered; none if it may take as long as it likes.
    pub deadline: Option<Instant>,
    /// How its token is used, if that is one of a service account.
    pub token_uses: Vec<TokenUse>,
    /// How long it waits for webhooks, once it may.
    pub waits: OnceLock<Arc<WebhookWaits>>,
    // Taken at once, or when the body is there.
    pub seat: Mutex<Option<Seat>>,
}

impl Head {
    pub fn takes_gzip(&self) -> bool {
        negotiate::takes_gzip(&self.headers)
    }

    /// What is asked, by whom.
    pub fn asked<'a>(&'a self, caller: &'a Caller) -> Attributes<'a> {
        Attributes { caller, verb: &self.info.verb, about: self.info.about() }
    }

    /// It came to something else than was foreseen.
    pub fn came_to(&self, cpu: Duration) {
        self.flow.ticket().iter().for_each(|ticket| ticket.came_to(cpu));
        self.usage.iter().for_each(|usage| usage.came_to(cpu));
    }

    /// What goes on beside it, once it has its turn.
    pub fn context(&self) -> RequestContext {
        let turn = self.flow.ticket().map(|ticket| ticket as Arc<dyn Turn>);
        let audit = self.audited.as_ref().map(|audited| audited.notes.clone());
        let (trace, deadline) = (self.trace.clone(), self.deadline);
        let waits = Some(self.waits.get_or_init(Arc::default).clone());
        RequestContext { audit, turn, trace, program: String::new(), waits, deadline }
    }

    /// How long it waited, for its turn and for webhooks.
    ///
    /// - `ticket`: its turn.
    pub fn waited(&self, ticket: Option<&Ticket>) -> Duration {
        let webhooks = self.waits.get().map_or(Duration::ZERO, |waits| waits.all());
        webhooks + ticket.map_or(Duration::ZERO, Ticket::waited)
    }

    pub fn seat(&self) -> MutexGuard<'_, Option<Seat>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler {
    /// Whether there is a seat for it now.
    pub fn has_seat(&self, head: &Head) -> bool {
        self.inflight.has_room(kind(head), privilege(head))
    }

    /// A seat, for as long as the request is worked on.
    pub fn sit(&self, head: &Head) -> Result<(), Failure> {
        let seat = self.inflight.take(kind(head), privilege(head)).ok_or_else(|| self.rooms.full())?;
        *head.seat() = Some(seat);
        Ok(())
    }

    /// The body, whole. The request has a seat from then on, as long as it is worked on, and none while it
    /// waits.
    ///
    /// - `cost`: what it costs with a body of so many bytes.
    ///
    /// # Errors
    /// See [`body_in::read`]; 429 when there is no seat, or it came so slowly that it had to give way.
    pub async fn receive(
        &self,
        head: &Head,
        body: Incoming,
        cost: impl FnOnce(usize) -> Cost,
    ) -> Result<Received, Failure> {
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
        self.begin(head, || cost(received.bytes.len())).await?;
        Ok(received)
    }

    /// Begins what goes on beside requests: those take turns, where they do, and Secrets whose tokens are
    /// used say so.
    pub fn start(&self, configuration: watch::Receiver<Configuration>, tasks: &Tasks) {
        let labelled = self.used_tokens.clone().label_all(self.api.clone(), self.clock.clone());
        tasks.spawn("secrets of used tokens", labelled);
        if let Some(control) = &self.flow_control {
            control.start(configuration, &self.rooms, tasks);
        }
    }

    /// Waits for the request's turn, unless it had it. Cancel-safe.
    ///
    /// # Errors
    /// 429, with a slot to come back in, and why.
    pub async fn begin(&self, head: &Head, cost: impl FnOnce() -> Cost) -> Result<(), Failure> {
        let cost = cost();
        if let Some(control) = &self.flow_control {
            let caller = head.asker.caller();
            let _timing = head.time(TimedPart::QueueWait);
            head.flow.begin(control, (&head.asked(&caller), &head.info.path), cost).await?;
        }
        let (price, keeps) = (cost.price, cost.watch_bytes.unwrap_or(0));
        head.usage.iter().for_each(|usage| usage.begun(price.cpu, price.bytes, keeps));
        Ok(())
    }

    /// What a LIST costs, if it is made; the same beside what it costs if it is there; and what measures it.
    pub fn list_cost(
        &self,
        served: &Served,
        weight: Weight,
        rendering: Rendering,
    ) -> (Cost, ListForeseen, ListMeter) {
        let mut cost = flow_control::list(weight, rendering);
        let price = ListPrice::of(cost, weight, rendering);
        let subject = price.subject(served.gvr.clone(), rendering, weight.found);
        let foreseen = self.learned.foreseen(&subject, price);
        cost.price.cpu = foreseen.made;
        (cost, foreseen, ListMeter::new(&self.learned, subject, price))
    }

    /// Admits a LIST, or a WATCH with its initial state, by what it may come to: at once, or after a wait.
    /// One that is cheap holds nothing.
    ///
    /// - `is_as_stored`: nothing is made of the objects but what is stored of them.
    ///
    /// # Errors
    /// 429 when there is no memory for it.
    pub async fn admit_read(
        &self,
        head: &Head,
        weight: Weight,
        is_as_stored: bool,
    ) -> Result<Option<Held>, Failure> {
        let Some(bytes) = cost::list(ListWork::of(weight, is_as_stored)) else { return Ok(None) };
        let held = self.rooms.lists.take(head.asker.name(), bytes).await;
        held.map(Some).map_err(|_full| self.rooms.full())
    }

    /// Admits the answer to a GET: at once for most, after a wait for a large object. The lease is for what
    /// is sent, and for the tree that the object is read into to be shown, where that is large.
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

    /// What it takes to change the object that is there, where that is large. It is asked for with the
    /// room for the body, once that is there: who waits for one holds nothing of the other.
    pub fn bytes_to_change(&self, target: &Target) -> usize {
        let object = target.cached().filter(|object| object.body_len() > ANSWER_LARGE_BYTES);
        object.map_or(0, |object| cost::change(&object.body()))
    }

    /// Wall time as Tables show ages at.
    pub fn timestamp(&self) -> Timestamp {
        forebay_reads::timestamp(&self.clock)
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
}

fn kind(head: &Head) -> RequestKind {
    if head.info.verb.is_read_only() { RequestKind::ReadOnly } else { RequestKind::Mutating }
}

fn privilege(head: &Head) -> Privilege {
    if head.asker.is_in(MASTERS) { Privilege::Exempt } else { Privilege::None }
}
