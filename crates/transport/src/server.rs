//! The server: accepts connections within a limit, does the TLS handshake, speaks HTTP/1.1 or HTTP/2, and
//! shuts down.
//!
//! In: a listening socket. Out: requests for the [`Service`], and its replies to clients. Every buffer and
//! wait of a connection has a limit from [`limits`]. On shutdown connections are asked to finish, and are cut
//! when their time is over. Never: knows what is served.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use forebay_rt::{Clock, Tasks};
use futures_util::FutureExt as _;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connections::{Connection, ConnectionSlot, Connections};
use crate::counts::GoesFor;
use crate::dead_peers::DeadPeers;
use crate::drain::Drain;
use crate::http1::{self, Answering, ConnectionError};
use crate::http2::{self, ReaderWaits, Streams};
use crate::limits;
use crate::reply::Exchange;
use crate::response_channel::ResponseChannel;
use crate::server_tls::ServerTls;
use crate::service::Service;
use crate::socket::SocketStream;
use crate::tls_stream::{BeforeRead, BufferedTls, TlsConnection};

/// A listening socket. Clients that connect before it is [served](HttpServer::serve) wait in the kernel's
/// backlog.
///
/// # Errors
/// As the kernel says.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(limits::BACKLOG)
}

/// A server of one [`Service`].
pub struct HttpServer<S> {
    pub service: Arc<S>,
    pub tls: Arc<ServerTls>,
    /// The open connections, and how many there may be.
    pub connections: Connections,
    /// How the server shuts down.
    pub drain: Drain,
    pub clock: Clock,
    /// How many requests may be in flight on one HTTP/2 connection; `None` is [`limits::STREAMS_MAX`].
    pub streams_max: Option<u32>,
}

impl<S: Service> HttpServer<S> {
    /// Serves until `leave` is ready, then shuts down in order. Cancel-safe: dropping it cuts every
    /// connection.
    ///
    /// - `tasks`: where the tasks run that look for idle, stalled and dead clients.
    pub async fn serve(self, listener: TcpListener, tasks: &Tasks, leave: impl Future<Output = ()>) {
        let HttpServer { service, tls, connections, drain, clock, streams_max } = self;
        let dead_peers = DeadPeers::new(clock.clone());
        tasks.spawn("silent clients", dead_peers.clone().end_them());
        tasks.spawn("seats", connections.clone().end_idle_and_stuck());
        let open = Tasks::new();
        // When this future is dropped, every connection is cut.
        let _held = open.cut_on_drop();
        let waits = service.clone();
        let serving = Serving {
            service,
            tls,
            drain: drain.clone(),
            dead_peers,
            clock,
            tasks: open.clone(),
            connections: connections.clone(),
            readers: Arc::new(move || waits.wait_for_reader()),
            streams_max: streams_max.unwrap_or(limits::STREAMS_MAX),
        };
        tokio::select! {
            () = serving.accept_all(listener) => {}
            () = leave => {}
        }
        drain.begin();
        tasks.spawn("goodbyes", connections.let_all_go(drain.goodbyes()));
        tracing::info!(watches = drain.watches(), "shutting down: letting requests finish");
        if !open.stop(drain.wait()).await {
            tracing::warn!("some connections did not finish in time and were cut");
        }
    }
}

/// Serves one client over any stream of bytes, in HTTP/1.1 and without TLS, until it is done. Dropping this
/// cuts the connection. For programs that have a server in their own process, and for simulations.
pub async fn serve_stream<S: Service>(
    service: Arc<S>,
    peer: Arc<S::Peer>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let (service, peer) = (service.clone(), peer.clone());
        async move {
            let connection = Connection::default();
            let exchange =
                Exchange { peer: &*peer, connection: &connection, channel: ResponseChannel::default() };
            Ok::<_, Infallible>(service.answer(request, exchange).await.into_response())
        }
    });
    let served = http1::builder().serve_connection(TokioIo::new(stream), answer).await;
    ended(served.map_err(ConnectionError::from));
}

/// What a connection does after its TLS handshake, until its end.
type Spoken<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

struct Serving<S> {
    service: Arc<S>,
    tls: Arc<ServerTls>,
    drain: Drain,
    dead_peers: DeadPeers,
    clock: Clock,
    tasks: Tasks,
    connections: Connections,
    readers: ReaderWaits,
    streams_max: u32,
}

impl<S: Service> Serving<S> {
    /// Accepts connections for ever. One for which there is no [seat](Connections::take) is closed at once: a
    /// client that waits in the backlog would not know why.
    async fn accept_all(self, listener: TcpListener) {
        let serving = Arc::new(self);
        let (first, last) = limits::ACCEPT_PAUSE;
        let mut pause = first;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    pause = first;
                    serving.connections.counts().accepted.add(1);
                    let Some(seat) = serving.connections.take() else {
                        serving.connections.counts().refused.add(1);
                        continue;
                    };
                    let one = serving.clone();
                    serving
                        .tasks
                        .spawn_graceful("connection", async move { one.connection(stream, seat).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    serving.clock.sleep(pause).await;
                    pause = (pause * 2).min(last);
                }
            }
        }
    }

    async fn connection(&self, stream: TcpStream, seat: ConnectionSlot) {
        let connection = seat.connection();
        // Each step is boxed, so that its memory is given back when it is over, however long the connection
        // lives.
        if let Some(Some(mut spoken)) = connection.carry(Box::pin(self.begin(stream, connection))).await {
            let spoken = std::future::poll_fn(|cx| {
                // Thousands of other tasks may have been polled since: the memory is no longer in the CPU's
                // cache.
                forebay_rt::prefetch(&*spoken);
                spoken.as_mut().poll(cx)
            });
            connection.carry(spoken).await;
        }
    }

    /// Does everything that comes before the first request. Returns what the connection does until its end,
    /// or `None` when it has ended already.
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
                self.connections.counts().handshake_errors.add(1);
                return None;
            }
            () = self.drain.draining() => return None,
        };
        spoken
            .inspect_err(|error| {
                self.connections.counts().handshake_errors.add(1);
                tracing::debug!(%error, "TLS handshake failed");
            })
            .ok()
    }

    /// Does the TLS handshake. Returns what the connection does until its end.
    async fn secure<'s>(
        &'s self,
        wire: SocketStream,
        connection: &'s Arc<Connection>,
    ) -> io::Result<Spoken<'s>> {
        let address = wire.socket().local_address();
        let hello = LazyConfigAcceptor::new(Acceptor::default(), wire).await?;
        let config = self.tls.for_client(&hello.client_hello(), address);
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
        let peer = Arc::new(self.service.peer(chain));
        let shown = Box::new(Rechecked { service: self.service.clone(), peer: peer.clone() });
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        connection.writes_to(&socket);
        let (service, own, drain) = (self.service.clone(), connection.clone(), self.drain.clone());
        // Boxed, because it is large, and over HTTP/2 its connection would be kept for as long as the stream
        // lives.
        let answer = move |request: Request<Incoming>, channel: ResponseChannel| -> Answering<S::Body> {
            let (service, peer, connection) = (service.clone(), peer.clone(), own.clone());
            let drain = drain.clone();
            // Over HTTP/2 the stream counts as the open request, because it lives longer.
            let open = (!is_http2).then(|| connection.begin_request());
            Box::pin(async move {
                let exchange = Exchange { peer: &*peer, connection: &connection, channel: channel.clone() };
                let mut reply = service.answer(request, exchange).await;
                channel.act_on(&reply);
                drop(open);
                // A request that is answered now may have been refused: the next one is for another server.
                if drain.is_draining() {
                    connection.tell_to_go(GoesFor::Shutdown);
                }
                if !is_http2 && connection.is_going() {
                    reply.says_close();
                }
                reply
            })
        };
        if is_http2 {
            connection.limit_idleness();
            let streams = Streams::new(
                self.tasks.clone(),
                connection.clone(),
                self.clock.clone(),
                self.readers.clone(),
            );
            let stream = BufferedTls::new(stream).looked_at(shown);
            let (read, flusher) = (stream.bytes_read(), stream.flusher());
            let builder = http2::builder(streams.clone(), self.streams_max);
            let begins = streams.clone();
            let service = service_fn(move |request| {
                let answering = answer(request, begins.begin());
                answering.map(|reply| Ok::<_, Infallible>(reply.into_response()))
            });
            let served = builder.serve_connection(TokioIo::new(stream), service);
            let carried = Box::pin(streams.carried_by(served, flusher));
            Box::pin(async move {
                let spoken = self
                    .until_drained(carried, connection, |mut carried| carried.hyper().graceful_shutdown());
                tokio::select! {
                    spoken = spoken => ended(spoken.map_err(ConnectionError::from)),
                    () = http2::unspoken(read, &self.clock) => {
                        tracing::debug!("a client did not begin to speak HTTP/2");
                    }
                }
            })
        } else {
            self.dead_peers.watch_over(&socket);
            let channel = ResponseChannel::connection(socket);
            let own = channel.clone();
            let answer = move |request| answer(request, own.clone());
            let served = http1::serve(
                TlsConnection::new(stream).looked_at(shown),
                answer,
                &*self.service,
                &self.drain,
                &self.clock,
            );
            Box::pin(channel.carry(served).map(|served| ended(served.unwrap_or(Ok(())))))
        }
    }

    /// Speaks HTTP/2 until the client is done, or is told to go, by a GOAWAY: because it was idle for long,
    /// because it is to go to another server, or because this one shuts down. Requests in flight may finish
    /// then; on shutdown for as long as the server waits. `carried` is boxed, because it is large and would
    /// be moved from one future into the next.
    async fn until_drained<C: Future<Output = hyper::Result<()>>>(
        &self,
        mut carried: Pin<Box<C>>,
        connection: &Connection,
        finish: impl FnOnce(Pin<&mut C>),
    ) -> hyper::Result<()> {
        tokio::select! {
            ended = carried.as_mut() => return ended,
            () = connection.going().raised() => {}
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

/// Looks again at who a connection's client is, before something is read.
struct Rechecked<S: Service> {
    service: Arc<S>,
    peer: Arc<S::Peer>,
}

impl<S: Service> BeforeRead for Rechecked<S> {
    fn look(&self, certificates: Option<&[CertificateDer<'_>]>) {
        self.service.recheck(&self.peer, certificates);
    }
}

fn ended(how: Result<(), ConnectionError>) {
    if let Err(error) = how {
        tracing::debug!(%error, "connection ended");
    }
}
