//! The server: a socket that is listened on, and everything that answers what comes there, put together.
//!
//! In: a configuration and a registry. Out: a server, which [transport](forebay_transport) speaks for. On shutdown it is not
//! ready first, and goes on for a while.

use std::net::SocketAddr;
use std::sync::Arc;

use forebay_auth::{Access, Authenticators};
use forebay_documents::health::{Check, Checks, Endpoints};
use forebay_documents::openapi::OpenApi;
use forebay_documents::version;
use forebay_registry::Registry;
use forebay_rt::{Random, Shutdown, Tasks};
use forebay_transport::{Connections, Drain, HttpServer, StalledReaders, listen};
use tokio::net::TcpListener;

use crate::arrivals::Arrivals;
use crate::config::Config;
use crate::documents::Documents;
use crate::event_blocks::EventBlocks;
use crate::handler::Handler;
use crate::identity::{Identity, Known};
use crate::inflight::Inflight;
use crate::limits;
use crate::memory::Memory;
use crate::metrics::Metrics;
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

/// A socket that is listened on. Clients that come before [`Bound::serve`] wait in the kernel's backlog.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    identity: Identity,
    config: Config,
}

impl Bound {
    /// Listens.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn listen(config: Config) -> Result<Bound, ServeError> {
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

    /// Serves `registry` until `stop` is raised, then lets go of everybody in order. Cancel-safe: dropped, it cuts every
    /// connection.
    ///
    /// - `checks`: what the health endpoints ask besides the server's own.
    pub async fn serve(
        self,
        registry: Registry,
        checks: Vec<Check>,
        random: Random,
        tasks: Tasks,
        stop: Shutdown,
    ) {
        let clock = registry.clock().clone();
        let drain = Drain::new(clock.clone(), self.config.watch_termination_grace);
        let stalled_readers = StalledReaders::new(clock.clone());
        tasks.spawn("stalled readers", stalled_readers.clone().end_them());
        let delay = self.config.shutdown_delay;
        let Bound { listener, address, identity, config } = self;
        let metrics = Arc::new(Metrics::new(clock.clone(), identity.known().counts.clone()));
        let checks = all_checks(checks, &registry, &drain);
        let parts = (checks, random, drain.clone(), stalled_readers.clone(), metrics.clone());
        let address = external_address(&config, address);
        let handler = Arc::new(handler(&config, address, identity.known(), registry.clone(), parts));
        let (memory, rooms) = (handler.memory.clone(), handler.rooms.clone());
        let connections_max = config.connections_max.unwrap_or(usize::MAX).min(memory.connections_max());
        let seats = Connections::new(clock.clone(), connections_max, metrics.connections.clone());
        let readers = (stalled_readers, handler.event_blocks.clone(), seats.clone());
        tasks.spawn("memory", memory.watch(clock.clone(), registry, rooms, readers));
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
            clock.sleep(delay).await;
        };
        server.serve(listener, &tasks, leave).await;
    }
}

/// Where others reach this server: at `bound`, unless the configuration knows better.
pub(crate) fn external_address(config: &Config, bound: SocketAddr) -> String {
    config.external_address.clone().unwrap_or_else(|| bound.to_string())
}

/// What answers requests.
///
/// - `address`: where others reach this server.
pub(crate) fn handler(
    config: &Config,
    address: String,
    known: &Known,
    registry: Registry,
    (checks, random, drain, stalled_readers, metrics): (
        Vec<Check>,
        Random,
        Drain,
        StalledReaders,
        Arc<Metrics>,
    ),
) -> Handler {
    let clock = registry.clock().clone();
    let accounts = known.accounts.clone();
    let (rooms, memory) = (Rooms::new(clock.clone()), Memory::new(config.memory));
    Handler {
        authenticator: Authenticators::new(
            clock.clone(),
            known.credentials.clone(),
            accounts.clone(),
            tokens::Stored(registry.clone()),
        ),
        accounts,
        access: Arc::new(Access::new(config.authorization, config.anonymous)),
        inflight: Inflight::new(config.max_requests_inflight, config.max_mutating_requests_inflight),
        arrivals: Arrivals::new(clock.clone(), limits::ARRIVALS_MAX),
        rooms,
        memory,
        documents: Documents {
            openapi: OpenApi::default(),
            checks: Checks::new(checks),
            version: version::document(&config.version).into(),
            address,
        },
        request_timeout: config.request_timeout,
        api: Arc::new(registry.clone()),
        registry,
        clock,
        random,
        stalled_readers,
        event_blocks: EventBlocks::default(),
        metrics,
        drain,
    }
}

/// The server's own checks around those that it was given.
fn all_checks(given: Vec<Check>, registry: &Registry, drain: &Drain) -> Vec<Check> {
    let mut checks = vec![
        Check::new("ping", Endpoints::All, || Ok(())),
        // The log is written by the process itself: while this runs, it works.
        Check::new("log", Endpoints::All, || Ok(())),
    ];
    checks.extend(given);
    let registry = registry.clone();
    checks.push(Check::new("informer-sync", Endpoints::Ready, move || match registry.unready() {
        0 => Ok(()),
        unready => Err(format!("{unready} resources are not read yet")),
    }));
    let drain = drain.clone();
    checks.push(Check::new("shutdown", Endpoints::Ready, move || {
        if drain.is_leaving() { Err("process is shutting down".to_string()) } else { Ok(()) }
    }));
    checks
}
