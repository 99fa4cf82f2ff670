//! The server: a socket that is listened on, and everything that answers what comes there, put together.
//!
//! In: a configuration, and what answers the verbs. Out: a server, which [transport](forebay_transport)
//! speaks for. On shutdown it is not ready first, and goes on for a while.

use std::net::SocketAddr;
use std::sync::Arc;

use forebay_api::{Api, Caches};
use forebay_audit::Audit;
use forebay_auth::{Access, Authenticators, FurtherAuthentication, Impersonation};
use forebay_documents::Documents;
use forebay_documents::health::{Check, Checks, Endpoints};
use forebay_documents::metrics::process;
use forebay_documents::openapi::OpenApi;
use forebay_documents::version;
use forebay_documents::zpages::Zpages;
use forebay_encryption::EncryptionMetrics;
use forebay_flow::Configuration;
use forebay_pieces::{EventBlocks, SharedLists};
use forebay_rt::{Clock, Random, Shutdown, Tasks};
use forebay_spans::Tracer;
use forebay_transport::{Arrivals, Connections, Drain, HttpServer, StalledReaders, listen};
use forebay_usage::Usages;
use forebay_webhooks::WebhookMetrics;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::aggregation::Aggregation;
use crate::config::{self, ApiServerConfig};
use crate::flow_control::{FlowControl, Learned};
use crate::handler::Handler;
use crate::identity::{Identity, Known};
use crate::inflight::Inflight;
use crate::limits;
use crate::memory::{Level, Memory};
use crate::metrics::{CountedElsewhere, Metrics};
use crate::neighbourhood::{Neighbourhood, Neighbours};
use crate::own_door::OwnDoor;
use crate::rooms::Rooms;
use crate::tls::TlsError;
use crate::tokens;

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        cause: std::io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// What a server stands in front of.
pub struct Backing {
    pub api: Arc<dyn Api>,
    pub caches: Arc<dyn Caches>,
    pub clock: Clock,
    pub random: Random,
    /// The objects that decide whose turn it is.
    pub flow_control: watch::Receiver<Configuration>,
    /// Where there may be other servers on the same store.
    pub neighbours: Option<Neighbours>,
    /// What is counted of calls of webhooks.
    pub webhooks: Arc<WebhookMetrics>,
    /// What is counted of encryption at rest, if there is any.
    pub encryption: Option<Arc<EncryptionMetrics>>,
    pub aggregation: Aggregation,
    pub authentication: FurtherAuthentication,
    /// What is told of requests; none where nothing is.
    pub tracer: Option<Arc<Tracer>>,
    /// What notes requests, if anything does.
    pub audit: Option<Arc<Audit>>,
    /// Is opened once the server serves.
    pub own_door: Arc<OwnDoor>,
}

impl Backing {
    /// With the turns that are built in, and without neighbours.
    ///
    /// - `answers`: who answers the verbs, and holds the state that they answer from.
    pub fn new(answers: Arc<impl Api + Caches + 'static>, clock: Clock, random: Random) -> Backing {
        let (_, flow_control) = watch::channel(Configuration::built_in());
        let (neighbours, webhooks, audit) = (None, Arc::default(), None);
        let (api, caches, aggregation) = (answers.clone(), answers, Aggregation::default());
        let (authentication, encryption, tracer) = (FurtherAuthentication::default(), None, None);
        Backing {
            api,
            caches,
            clock,
            random,
            flow_control,
            neighbours,
            webhooks,
            encryption,
            aggregation,
            authentication,
            tracer,
            audit,
            own_door: Arc::default(),
        }
    }

    /// What metrics tell of it.
    pub(crate) fn counted(&self, config: &ApiServerConfig) -> CountedElsewhere {
        CountedElsewhere {
            version: Some(config.version.clone()),
            webhooks: self.webhooks.clone(),
            authentication: self.authentication.metrics.clone(),
            authorization: config.authorization.metrics.clone(),
            encryption: self.encryption.clone(),
        }
    }
}

/// A socket that is listened on. Clients that come before [`Bound::serve`] wait in the kernel's backlog.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    identity: Identity,
    config: ApiServerConfig,
}

impl Bound {
    /// Listens.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn listen(config: ApiServerConfig) -> Result<Bound, ServeError> {
        let address = config.listen;
        let cause = |cause| ServeError::Listen { address, cause };
        let listener = listen(address).map_err(cause)?;
        let address = listener.local_addr().map_err(cause)?;
        let identity = Identity::new(&config, external_address(&config, address))?;
        Ok(Bound { listener, address, identity, config })
    }

    /// What replaces who the server is and whom it knows.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves what is behind it until `stop` is raised, then lets go of everybody in order. Cancel-safe:
    /// dropped, it cuts every connection.
    ///
    /// - `checks`: what the health endpoints ask besides the server's own.
    pub async fn serve(self, backing: Backing, checks: Vec<Check>, tasks: Tasks, stop: Shutdown) {
        let clock = backing.clock.clone();
        let drain = Drain::new(clock.clone(), self.config.watch_termination_grace);
        let stalled_readers = StalledReaders::new(clock.clone());
        tasks.spawn("stalled readers", stalled_readers.clone().end_them());
        let delay = self.config.shutdown_delay;
        let Bound { listener, address, identity, config } = self;
        let counted = backing.counted(&config);
        let metrics = Arc::new(Metrics::new(clock.clone(), identity.known().counts.clone(), counted));
        let (caches, configuration) = (backing.caches.clone(), backing.flow_control.clone());
        let own_door = backing.own_door.clone();
        let checks = all_checks(checks, &caches, &drain);
        let parts = (checks, drain.clone(), stalled_readers.clone(), metrics.clone());
        let address = external_address(&config, address);
        let handler = Arc::new(handler(&config, address, identity.known(), backing, parts));
        let (memory, rooms) = (handler.memory.clone(), handler.rooms.clone());
        handler.start_flow_control(configuration, &tasks);
        own_door.open(&handler);
        let connections_max = config.connections_max.unwrap_or(usize::MAX).min(memory.connections_max());
        let seats = Connections::new(clock.clone(), connections_max, metrics.connections.clone());
        let made = (handler.event_blocks.clone(), handler.shared_lists.clone());
        let readers = (stalled_readers, made, seats.clone());
        if let Some(neighbourhood) = &handler.neighbourhood {
            let (memory, caches) = (memory.clone(), caches.clone());
            let may_take_more = move || memory.level() < Level::Readers && caches.unready() == 0;
            let spread = neighbourhood.clone().spread(seats.clone(), drain.clone(), may_take_more);
            tasks.spawn("neighbourhood", spread);
        }
        tasks.spawn("memory", memory.watch(clock.clone(), caches, rooms, readers));
        let goodbyes = seats.clone();
        let server = HttpServer {
            service: handler,
            tls: identity.serving().tls().clone(),
            connections: seats,
            drain: drain.clone(),
            clock: clock.clone(),
            streams_max: config.http2_max_streams,
        };
        let leave = async {
            stop.raised().await;
            drain.leave();
            // Half of the time is for balancers to see that it leaves. Until the end all requests are served.
            clock.sleep(delay / 2).await;
            if !delay.is_zero() {
                let told_all = goodbyes.let_all_go(delay / 2);
                tokio::join!(told_all, clock.sleep(delay / 2));
            }
        };
        server.serve(listener, &tasks, leave).await;
    }
}

/// Where others reach this server: at `bound`, unless the configuration knows better.
pub(crate) fn external_address(config: &ApiServerConfig, bound: SocketAddr) -> String {
    config.external_address.clone().unwrap_or_else(|| bound.to_string())
}

/// What answers requests.
///
/// - `address`: where others reach this server.
pub(crate) fn handler(
    config: &ApiServerConfig,
    address: String,
    known: &Known,
    backing: Backing,
    (checks, drain, stalled_readers, metrics): (Vec<Check>, Drain, StalledReaders, Arc<Metrics>),
) -> Handler {
    let Backing { api, clock, random, neighbours, aggregation, authentication, tracer, audit, .. } = backing;
    let neighbourhood = neighbours.map(|all| Arc::new(Neighbourhood::new(clock.clone(), all)));
    let accounts = known.accounts.clone();
    let usages = Usages::new(clock.clone(), random.next_u64());
    let (rooms, memory) = (Rooms::new(clock.clone()), Memory::new(config.memory));
    let shared_lists = SharedLists::new(clock.clone(), memory.limit());
    if let Some(audit) = &audit {
        audit.hold_of(rooms.answers.clone());
    }
    Handler {
        authenticator: Authenticators::new(
            clock.clone(),
            known.credentials.clone(),
            accounts.clone(),
            tokens::Stored(api.clone()),
            &authentication,
        ),
        impersonation: Impersonation::new(clock.clone(), authentication.metrics.clone(), authentication.ways),
        authentication_metrics: authentication.metrics,
        accounts,
        access: Arc::new(Access::new(&config.authorization, config.anonymous.clone())),
        inflight: inflight(config),
        flow_control: flow_control(config, &clock),
        learned: Learned::default(),
        arrivals: Arrivals::new(clock.clone(), limits::ARRIVALS_MAX),
        rooms,
        memory,
        documents: Documents {
            openapi: OpenApi::default(),
            checks: Checks::new(checks),
            version: version::document(&config.version).into(),
            address,
            zpages: zpages(config, &clock),
        },
        tracer,
        request_timeout: config.request_timeout,
        transport_security: config.transport_security.clone(),
        api,
        clock,
        random,
        stalled_readers,
        event_blocks: EventBlocks::default(),
        shared_lists,
        metrics,
        usages,
        drain,
        audit,
        aggregation,
        neighbourhood,
    }
}

/// What is told of this process.
fn zpages(config: &ApiServerConfig, clock: &Clock) -> Zpages {
    let version = config.version.kubernetes.trim_start_matches('v').to_owned();
    let emulated = version.split('.').take(2).collect::<Vec<_>>().join(".");
    let started = process::started().map_or(clock.unix_ms() as i64 / 1_000, |seconds| seconds as i64);
    Zpages { flags: config.flags.clone(), version, emulated, started }
}

/// With flow control there are no limits beside its own.
fn inflight(config: &ApiServerConfig) -> Inflight {
    match config.flow_control {
        config::FlowControl::PriorityAndFairness => Inflight::new(None, None),
        config::FlowControl::MaxInFlight => {
            Inflight::new(config.max_requests_inflight, config.max_mutating_requests_inflight)
        }
    }
}

fn flow_control(config: &ApiServerConfig, clock: &Clock) -> Option<FlowControl> {
    let is_on = config.flow_control == config::FlowControl::PriorityAndFairness;
    is_on.then(|| FlowControl::new(config, clock.clone()))
}

/// The server's own checks around those that it was given.
fn all_checks(given: Vec<Check>, caches: &Arc<dyn Caches>, drain: &Drain) -> Vec<Check> {
    let mut checks = vec![
        Check::new("ping", Endpoints::All, || Ok(())),
        // The log is written by the process itself: while this runs, it works.
        Check::new("log", Endpoints::All, || Ok(())),
    ];
    checks.extend(given);
    let caches = caches.clone();
    checks.push(Check::new("informer-sync", Endpoints::Ready, move || match caches.unready() {
        0 => Ok(()),
        unready => Err(format!("{unready} resources are not read yet")),
    }));
    let drain = drain.clone();
    checks.push(Check::new("shutdown", Endpoints::Ready, move || {
        if drain.is_leaving() { Err("process is shutting down".to_string()) } else { Ok(()) }
    }));
    checks
}
