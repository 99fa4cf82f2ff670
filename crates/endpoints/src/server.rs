//! Connections: accepted within a limit, made secure, spoken to in HTTP/1.1 or HTTP/2, and let go of.
//!
//! In: a listening socket. Out: requests for the [`Handler`]. Every buffer and wait of a connection has a limit from
//! [`limits`]. On shutdown connections are asked to finish, and cut when their time is over.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use forebay_auth::{Access, Authenticators};
use forebay_registry::Registry;
use forebay_rt::{Clock, Random, Shutdown, Tasks};
use forebay_transport::{
    Connection, ConnectionSlot, Connections, DeadPeers, Drain, Exchange, ResponseChannel, SocketStream,
    limits,
};
use futures_util::FutureExt as _;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConnection;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::arrivals::Arrivals;
use crate::config::Config;
use crate::documents::Documents;
use crate::event_blocks::EventBlocks;
use crate::handler::Handler;
use crate::health::{Check, Checks, Endpoints};
use crate::http1::{self, Answering, ConnectionError};
use crate::http2::{self, Streams};
use crate::identity::{Identity, Known};
use crate::inflight::Inflight;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::pins::Pins;
use crate::rooms::Rooms;
use crate::secure::{Gathering, Secure};
use crate::tls::{self, Serving, TlsError};
use crate::tokens;
use crate::{limits as own, version};

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
        let socket =
            if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(cause)?;
        socket.set_reuseaddr(true).map_err(cause)?;
        socket.bind(address).map_err(cause)?;
        let listener = socket.listen(limits::BACKLOG).map_err(cause)?;
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
        let pins = Pins::new(clock.clone());
        tasks.spawn("stalled readers", pins.clone().reap());
        let dead_peers = DeadPeers::new(clock.clone());
        tasks.spawn("silent clients", dead_peers.clone().end_them());
        let delay = self.config.shutdown_delay;
        let Bound { listener, address, identity, config } = self;
        let metrics = Arc::new(Metrics::new(clock.clone(), identity.known().counts.clone()));
        let checks = all_checks(checks, &registry, &drain);
        let parts = (checks, random, drain.clone(), pins.clone(), metrics.clone());
        let address = external_address(&config, address);
        let handler = Arc::new(handler(&config, address, identity.known(), registry.clone(), parts));
        let (memory, rooms) = (handler.memory.clone(), handler.rooms.clone());
        let connections_max = config.connections_max.unwrap_or(usize::MAX).min(memory.connections_max());
        let seats = Connections::new(clock.clone(), connections_max, metrics.connections.clone());
        tasks.spawn("seats", seats.clone().end_idle_and_stuck());
        let readers = (pins, handler.event_blocks.clone(), seats.clone());
        tasks.spawn("memory", memory.watch(clock.clone(), registry, rooms, readers));
        let connections = Tasks::new();
        // Whoever drops this future cuts every connection.
        let _held = connections.cut_on_drop();
        let server = Acceptor {
            serving: identity.serving().clone(),
            handler,
            metrics,
            drain: drain.clone(),
            dead_peers,
            clock: clock.clone(),
            tasks: connections.clone(),
            seats,
            streams_max: config.http2_max_streams.unwrap_or(limits::STREAMS_MAX),
        };
        let leave = async {
            stop.raised().await;
            drain.leave();
            clock.sleep(delay).await;
        };
        tokio::select! {
            () = server.accept_all(listener) => {}
            () = leave => {}
        }
        drain.begin();
        tracing::info!(watches = drain.watches(), "shutting down: letting requests finish");
        if !connections.stop(drain.wait()).await {
            tracing::warn!("some connections did not finish in time and were cut");
        }
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
    (checks, random, drain, pins, metrics): (Vec<Check>, Random, Drain, Pins, Arc<Metrics>),
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
        arrivals: Arrivals::new(clock.clone(), own::ARRIVALS_MAX),
        rooms,
        memory,
        documents: Documents {
            openapi: OpenApi::default(),
            checks: Checks::new(checks),
            version: version::document(&config.version).into(),
            address,
        },
        request_timeout: config.request_timeout,
        registry,
        clock,
        random,
        pins,
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

/// What a connection does once it is secure, until its end.
type Spoken<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

struct Acceptor {
    serving: Arc<Serving>,
    handler: Arc<Handler>,
    metrics: Arc<Metrics>,
    drain: Drain,
    dead_peers: DeadPeers,
    clock: Clock,
    tasks: Tasks,
    seats: Connections,
    streams_max: u32,
}

impl Acceptor {
    /// Accepts for ever. Those for whom there is no [seat](Connections::take) are closed at once: who waits in a backlog does not know it.
    async fn accept_all(self, listener: TcpListener) {
        let acceptor = Arc::new(self);
        let (first, last) = limits::ACCEPT_PAUSE;
        let mut pause = first;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    pause = first;
                    acceptor.metrics.connections.accepted.add(1);
                    let Some(seat) = acceptor.seats.take() else {
                        acceptor.metrics.connections.refused.add(1);
                        continue;
                    };
                    let one = acceptor.clone();
                    acceptor
                        .tasks
                        .spawn_graceful("connection", async move { one.connection(stream, seat).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    acceptor.clock.sleep(pause).await;
                    pause = (pause * 2).min(last);
                }
            }
        }
    }

    async fn connection(&self, stream: TcpStream, seat: ConnectionSlot) {
        let connection = seat.connection();
        // Boxed: what each step takes is given back when it is over, however long the connection lives.
        if let Some(Some(mut spoken)) = connection.carry(Box::pin(self.begin(stream, connection))).await {
            let spoken = std::future::poll_fn(|cx| {
                // Thousands of others may have been polled since.
                forebay_rt::prefetch(&*spoken);
                spoken.as_mut().poll(cx)
            });
            connection.carry(spoken).await;
        }
    }

    /// Everything until requests come; then what the connection does until its end. `None` when it is over.
    async fn begin<'s>(&'s self, stream: TcpStream, connection: &'s Arc<Connection>) -> Option<Spoken<'s>> {
        let wire = match SocketStream::new(stream, self.clock.clone()) {
            Ok(wire) => wire.at(connection.clone()),
            Err(error) => {
                tracing::debug!(%error, "a client left before it was served");
                return None;
            }
        };
        let spoken = tokio::select! {
            spoken = self.secure(wire, connection) => spoken,
            () = self.clock.sleep(limits::HANDSHAKE_WAIT) => {
                self.metrics.connections.handshake_errors.add(1);
                return None;
            }
            () = self.drain.draining() => return None,
        };
        spoken
            .inspect_err(|error| {
                self.metrics.connections.handshake_errors.add(1);
                tracing::debug!(%error, "TLS handshake failed");
            })
            .ok()
    }

    /// The handshake; then what the connection does until its end.
    async fn secure<'s>(
        &'s self,
        wire: SocketStream,
        connection: &'s Arc<Connection>,
    ) -> io::Result<Spoken<'s>> {
        let hello = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), wire).await?;
        let config = tls::for_client(&self.serving.current(), hello.client_hello().cipher_suites());
        let limited = |session: &mut ServerConnection| {
            session.set_buffer_limit(Some(limits::TLS_BUFFER_BYTES));
        };
        let mut stream = hello.into_stream_with(config, limited).await?;
        stream.get_mut().0.is_secure();
        Ok(self.speak(stream, connection))
    }

    fn speak<'s>(&'s self, stream: TlsStream<SocketStream>, connection: &'s Arc<Connection>) -> Spoken<'s> {
        let (wire, session) = stream.get_ref();
        let socket = wire.socket().clone();
        let chain = session.peer_certificates().unwrap_or_default();
        let peer = Arc::new(self.handler.authenticator.peer(chain));
        let shown = peer.clone();
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        connection.writes_to(&socket);
        let (handler, own) = (self.handler.clone(), connection.clone());
        // Boxed, because it is large, and over HTTP/2 its connection would be kept for as long as the stream lives.
        let answer = move |request: Request<Incoming>, channel: ResponseChannel| -> Answering {
            let (handler, peer, connection) = (handler.clone(), peer.clone(), own.clone());
            // Over HTTP/2 a stream has one of its own, and lives longer.
            let open = (!is_http2).then(|| connection.begin_request());
            Box::pin(async move {
                let exchange = Exchange { peer: &*peer, connection: &connection, channel: channel.clone() };
                let reply = handler.answer(request, exchange).await;
                channel.act_on(&reply);
                drop(open);
                reply
            })
        };
        if is_http2 {
            connection.limit_idleness();
            let streams = Streams::new(
                self.tasks.clone(),
                connection.clone(),
                self.clock.clone(),
                self.handler.rooms.answers.clone(),
            );
            let stream = Gathering::new(stream).of(shown);
            let (heard, outlet) = (stream.heard(), stream.outlet());
            let builder = http2::builder(streams.clone(), self.streams_max);
            let begins = streams.clone();
            let service = service_fn(move |request| {
                let answering = answer(request, begins.begin());
                answering.map(|reply| Ok::<_, std::convert::Infallible>(reply.into_response()))
            });
            let served = builder.serve_connection(TokioIo::new(stream), service);
            let carried = Box::pin(streams.carried_by(served, outlet));
            Box::pin(async move {
                let spoken = self
                    .until_drained(carried, connection, |mut carried| carried.hyper().graceful_shutdown());
                tokio::select! {
                    spoken = spoken => ended(spoken.map_err(ConnectionError::from)),
                    () = http2::unspoken(heard, &self.clock) => {
                        tracing::debug!("a client did not begin to speak HTTP/2");
                    }
                }
            })
        } else {
            self.dead_peers.watch_over(&socket);
            let channel = ResponseChannel::connection(socket);
            let own = channel.clone();
            let answer = move |request| answer(request, own.clone());
            let served = http1::serve(Secure::new(stream).of(shown), answer, &self.drain, &self.clock);
            Box::pin(channel.carry(served).map(|served| ended(served.unwrap_or(Ok(())))))
        }
    }

    /// Speaks HTTP/2 until the client is done, or is asked to be: as nothing was asked for long, or as the server leaves. Then
    /// what has begun may end, when the server leaves for as long as it waits. It is boxed, because it is large and would be
    /// moved from one future into the next.
    async fn until_drained<C: Future<Output = hyper::Result<()>>>(
        &self,
        mut carried: Pin<Box<C>>,
        connection: &Connection,
        finish: impl FnOnce(Pin<&mut C>),
    ) -> hyper::Result<()> {
        tokio::select! {
            ended = carried.as_mut() => return ended,
            () = self.drain.draining() => {}
            () = connection.asked_to_end() => {}
        }
        finish(carried.as_mut());
        tokio::select! {
            ended = carried.as_mut() => return ended,
            () = self.drain.draining() => {}
        }
        tokio::select! {
            ended = carried => ended,
            () = self.clock.sleep(self.drain.wait()) => Ok(()),
        }
    }
}

fn ended(how: Result<(), ConnectionError>) {
    if let Err(error) = how {
        tracing::debug!(%error, "connection ended");
    }
}
