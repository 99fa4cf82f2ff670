//! The connections of a proxy: accepting them or not, TLS, HTTP/1.1 and HTTP/2, and their ends.
//!
//! In: a port, orders. Out: requests for [`answer`]. Owner of a task for the port and of one for each
//! connection; they end when the proxy is dropped. Never: a connection that goes on after a fault that ends
//! connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::effects::{OfConnection, OfNew};
use super::service::answer;
use super::state::{Order, State};
use super::upstream::Upstream;
use crate::fault::Fault;
use crate::limits::{GOAWAY_MS, HELLO_BYTES_MAX, STREAMS_MAX};

/// A fatal alert, handshake_failure, as TLS 1.2 and 1.3 write it before they encrypt.
const ALERT: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 40];

/// What each connection has.
#[derive(Clone)]
pub struct Shared {
    pub state: Arc<State>,
    pub upstream: Arc<Upstream>,
    pub tls: Arc<ServerConfig>,
}

/// Accepts connections at `port` for as long as the proxy lives, except while a fault says that nobody
/// listens.
///
/// - `first`: listens there already.
pub async fn accept(shared: Shared, port: u16, first: TcpListener) {
    let mut orders = shared.state.subscribe();
    let mut listening = Some(first);
    loop {
        let order = *orders.borrow_and_update();
        if order.closed {
            return;
        }
        if order.now().is_some_and(Fault::closes_the_port) {
            listening = None;
        } else if listening.is_none() {
            // The port is below those that the kernel hands out, so that nobody takes it meanwhile; its old
            // connections do not hinder.
            listening = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.ok();
        }
        let Some(listener) = &listening else {
            if orders.changed().await.is_err() {
                return;
            }
            continue;
        };
        tokio::select! {
            biased;
            changed = orders.changed() => if changed.is_err() { return },
            accepted = listener.accept() => if let Ok((tcp, _)) = accepted {
                let connection = Connection { shared: shared.clone(), done: order.number, orders: orders.clone() };
                tokio::spawn(connection.run(tcp));
            },
        }
    }
}

struct Connection {
    shared: Shared,
    /// The number of the last order that it has no more to do with.
    done: u64,
    orders: watch::Receiver<Order>,
}

/// What ends a connection from our side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Reset,
    Closed,
    SentAway,
    Held,
}

impl Connection {
    async fn run(mut self, mut tcp: TcpStream) {
        let now = self.orders.borrow().now();
        match now.map_or(OfNew::Served, Fault::of_new) {
            OfNew::Served => {}
            OfNew::Reset => {
                let _ = tcp.read(&mut vec![0; HELLO_BYTES_MAX]).await;
                return reset(tcp);
            }
            OfNew::Alert => {
                let _ = tcp.read(&mut vec![0; HELLO_BYTES_MAX]).await;
                let _ = tcp.write_all(&ALERT).await;
                let _ = tcp.shutdown().await;
                return;
            }
            OfNew::Waits => {
                let waits = |order: &Order| order.now().is_none_or(|now| now.of_new() != OfNew::Waits);
                if self.orders.wait_for(|order| order.closed || waits(order)).await.is_err() {
                    return;
                }
            }
        }
        let _ = tcp.set_nodelay(true);
        // The socket, to end it by when TLS has it.
        let Ok((tcp, spare)) = duplicated(tcp) else { return };
        let accepting = TlsAcceptor::from(self.shared.tls.clone()).accept(tcp);
        let accepted = tokio::select! {
            biased;
            end = self.end() => Err(end),
            accepted = accepting => Ok(accepted),
        };
        match accepted {
            Ok(Ok(tls)) => self.serve(TokioIo::new(tls), spare).await,
            Ok(Err(_)) => {}
            Err(end) => {
                if end == End::Reset {
                    linger_not(&spare);
                }
            }
        }
    }

    async fn serve(mut self, io: impl Read + Write + Unpin + Send + 'static, spare: std::net::TcpStream) {
        let Shared { state, upstream, .. } = self.shared.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let answering = answer(state.clone(), upstream.clone(), request);
            async move { Ok::<_, std::convert::Infallible>(answering.await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http2().max_concurrent_streams(STREAMS_MAX);
        let mut connection = Box::pin(builder.serve_connection(io, service));
        let end = tokio::select! {
            biased;
            end = self.end() => end,
            _ = connection.as_mut() => return,
        };
        match end {
            End::Reset => linger_not(&spare),
            End::Closed => finish(&spare),
            End::SentAway => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(Duration::from_millis(GOAWAY_MS), connection.as_mut()).await;
                finish(&spare);
            }
            End::Held => {
                let held = self.orders.wait_for(|order| order.closed).await;
                drop(held);
            }
        }
    }

    /// Waits for what ends this connection.
    async fn end(&mut self) -> End {
        loop {
            let order = *self.orders.borrow_and_update();
            if order.closed {
                return End::Reset;
            }
            if order.number > self.done {
                self.done = order.number;
                match order.begun.map_or(OfConnection::Stays, Fault::of_connection) {
                    OfConnection::Stays => {}
                    OfConnection::Reset => return End::Reset,
                    OfConnection::Closed => return End::Closed,
                    OfConnection::SentAway => return End::SentAway,
                    OfConnection::Held => return End::Held,
                }
            }
            if self.orders.changed().await.is_err() {
                return End::Reset;
            }
        }
    }
}

/// The same socket twice.
fn duplicated(tcp: TcpStream) -> std::io::Result<(TcpStream, std::net::TcpStream)> {
    let tcp = tcp.into_std()?;
    let spare = tcp.try_clone()?;
    Ok((TcpStream::from_std(tcp)?, spare))
}

fn reset(tcp: TcpStream) {
    let _ = SockRef::from(&tcp).set_linger(Some(Duration::ZERO));
}

/// Makes the end of the socket, when its last owner drops it, an RST.
fn linger_not(spare: &std::net::TcpStream) {
    let _ = SockRef::from(spare).set_linger(Some(Duration::ZERO));
}

/// Sends FIN, before what was not read makes the end of the socket an RST.
fn finish(spare: &std::net::TcpStream) {
    let _ = spare.shutdown(std::net::Shutdown::Write);
}
