//! Connections: accepted within a limit, made secure, spoken to in HTTP/1.1 or HTTP/2, and let go of.
//!
//! In: a listening socket. Out: requests for the [`Service`], and its replies to clients. Every buffer and wait of a connection
//! has a limit from [`limits`]. On shutdown connections are asked to finish, and cut when their time is over.

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
use crate::dead_peers::DeadPeers;
use crate::drain::Drain;
use crate::http1::{self, Answering, ConnectionError};
use crate::http2::{self, ReaderWaits, Streams};
use crate::limits;
use crate::reply::Exchange;
use crate::response_channel::ResponseChannel;
use crate::server_tls::{self, ServerTls};
use crate::service::Service;
use crate::socket::SocketStream;
use crate::tls_stream::{BeforeRead, BufferedTls, TlsConnection};

/// A socket that is listened on. Clients that come before it is [served](HttpServer::serve) wait in the kernel's backlog.
///
/// # Errors
/// As the kernel says.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(limits::BACKLOG)
}

/// What serves connections.
pub struct HttpServer<S> {
    pub service: Arc<S>,
    pub tls: Arc<ServerTls>,
    /// The open connections, and how many there may be.
    pub connections: Connections,
    /// How the server shuts down.
    pub drain: Drain,
    pub clock: Clock,
    /// Requests in flight on one HTTP/2 connection; `None` is our own choice.
    pub streams_max: Option<u32>,
}

impl<S: Service> HttpServer<S> {
    /// Serves until `leave` is ready, then lets go of everybody in order. Cancel-safe: dropped, it cuts every connection.
    ///
    /// - `tasks`: what looks after connections, for ever.
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
            connections,
            readers: Arc::new(move || waits.wait_for_reader()),
            streams_max: streams_max.unwrap_or(limits::STREAMS_MAX),
        };
        tokio::select! {
            () = serving.accept_all(listener) => {}
            () = leave => {}
        }
        drain.begin();
        tracing::info!(watches = drain.watches(), "shutting down: letting requests finish");
        if !open.stop(drain.wait()).await {
            tracing::warn!("some connections did not finish in time and were cut");
        }
    }
}

/// Answers what comes over any stream of bytes, in HTTP/1.1 and without TLS, until the client is done. Whoever drops this has
/// cut it. For who has a server in the own process, and for simulations.
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

/// What a connection does once it is secure, until its end.
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
    /// Accepts for ever. Those for whom there is no [seat](Connections::take) are closed at once: who waits in a backlog
    /// does not know it.
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

    /// The handshake; then what the connection does until its end.
    async fn secure<'s>(
        &'s self,
        wire: SocketStream,
        connection: &'s Arc<Connection>,
    ) -> io::Result<Spoken<'s>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), wire).await?;
        let config = server_tls::for_client(&self.tls.current(), hello.client_hello().cipher_suites());
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
        let (service, own) = (self.service.clone(), connection.clone());
        // Boxed, because it is large, and over HTTP/2 its connection would be kept for as long as the stream lives.
        let answer = move |request: Request<Incoming>, channel: ResponseChannel| -> Answering<S::Body> {
            let (service, peer, connection) = (service.clone(), peer.clone(), own.clone());
            // Over HTTP/2 a stream has one of its own, and lives longer.
            let open = (!is_http2).then(|| connection.begin_request());
            Box::pin(async move {
                let exchange = Exchange { peer: &*peer, connection: &connection, channel: channel.clone() };
                let reply = service.answer(request, exchange).await;
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

/// Who a connection's client is, looked at again.
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
