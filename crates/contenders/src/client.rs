//! A light HTTPS client: one connection a client, HTTP/1.1 kept alive or HTTP/2, with a client certificate.
//!
//! In: a [`RestConfig`] and requests. Out: status and body. The same code and the same bodies go to every
//! server. A connection that the server has ended between two requests is made anew, as any client does.
//! Never: a retry, a pool or a redirect; what fails is counted by the caller.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper::header::HeaderName;
use hyper::{Method, Request, Response, body::Incoming, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::Error;

const JSON: (HeaderName, &str) = (header::ACCEPT, "application/json");

/// Where a server listens and how to be let in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RestConfig {
    pub address: SocketAddr,
    pub tls: Arc<ClientConfig>,
}

/// HTTP version of a connection; chosen by ALPN, and an error when the server wants another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// One connection; a request at a time.
#[derive(Debug)]
pub struct Client {
    target: RestConfig,
    protocol: Protocol,
    /// How far ahead of the caller is read, if that is bounded.
    narrow: Option<usize>,
    sender: Sender,
    host: String,
    driver: JoinHandle<()>,
}

/// One request more on a connection of HTTP/2, whatever else is under way on it. Dropping what it began
/// resets that stream alone.
#[derive(Clone, Debug)]
pub struct Http2Stream {
    sender: http2::SendRequest<Full<Bytes>>,
    host: String,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct WholeResponse {
    pub status: u16,
    pub body: Bytes,
}

impl RestConfig {
    /// A port on the loopback interface.
    pub fn local(port: u16, tls: Arc<ClientConfig>) -> RestConfig {
        RestConfig { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), tls }
    }
}

impl Client {
    /// Connects and finishes the handshakes.
    pub async fn connect(target: &RestConfig, protocol: Protocol) -> Result<Client, Error> {
        Client::connected(target, protocol, None).await
    }

    /// Connects over HTTP/1.1 in a way that nobody, the kernel included, reads much more than `bytes` ahead
    /// of the caller.
    pub async fn connect_narrow(target: &RestConfig, bytes: usize) -> Result<Client, Error> {
        Client::connected(target, Protocol::Http1, Some(bytes)).await
    }

    async fn connected(
        target: &RestConfig,
        protocol: Protocol,
        narrow: Option<usize>,
    ) -> Result<Client, Error> {
        let (sender, driver) = connection(target, protocol, narrow).await?;
        let (target, host) = (target.clone(), target.address.to_string());
        Ok(Client { target, protocol, narrow, sender, host, driver })
    }

    /// Waits until the connection takes a request; one that the server has ended meanwhile is made anew.
    async fn ready(&mut self) -> Result<(), Error> {
        let ready = match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await,
            Sender::Http2(sender) => sender.ready().await,
        };
        if ready.is_err() {
            let (sender, driver) = connection(&self.target, self.protocol, self.narrow).await?;
            self.sender = sender;
            std::mem::replace(&mut self.driver, driver).abort();
        }
        Ok(())
    }

    /// A way to ask beside what is under way; `None` over HTTP/1.1, and once the connection is lost.
    pub fn stream(&self) -> Option<Http2Stream> {
        match &self.sender {
            Sender::Http2(sender) if !sender.is_closed() => {
                Some(Http2Stream { sender: sender.clone(), host: self.host.clone() })
            }
            _ => None,
        }
    }

    /// GETs `path` as JSON.
    pub async fn get(&mut self, path: &str) -> Result<WholeResponse, Error> {
        self.send(Method::GET, path, "application/json", Bytes::new()).await
    }

    /// POSTs the JSON `body` to `path`.
    pub async fn post(&mut self, path: &str, body: Bytes) -> Result<WholeResponse, Error> {
        self.send(Method::POST, path, "application/json", body).await
    }

    /// Sends one request and reads the whole answer.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        accept: &str,
        body: Bytes,
    ) -> Result<WholeResponse, Error> {
        let response = self.start(method, path, accept, body).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(lost)?.to_bytes();
        Ok(WholeResponse { status, body })
    }

    /// PATCHes `path` with the JSON merge patch `body`.
    pub async fn patch(&mut self, path: &str, body: Bytes) -> Result<WholeResponse, Error> {
        let kind = (header::CONTENT_TYPE, "application/merge-patch+json");
        let response = self.start_with(Method::PATCH, path, &[JSON, kind], body).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(lost)?.to_bytes();
        Ok(WholeResponse { status, body })
    }

    /// Sends one request and returns with the head of the answer; the body is the caller's to read.
    pub async fn start(
        &mut self,
        method: Method,
        path: &str,
        accept: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let kind = (header::CONTENT_TYPE, "application/json");
        let headers = [(header::ACCEPT, accept), kind];
        let sent = if body.is_empty() { &headers[..1] } else { &headers[..] };
        self.start_with(method, path, sent, body).await
    }

    /// [`Client::start`] with just these headers.
    pub async fn start_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let request = Request::builder().method(method);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        self.ready().await?;
        match &mut self.sender {
            Sender::Http1(sender) => {
                let request =
                    request.uri(path).header(header::HOST, &self.host).body(Full::new(body)).map_err(lost)?;
                sender.send_request(request).await.map_err(lost)
            }
            Sender::Http2(sender) => {
                let uri = format!("https://{}{path}", self.host);
                let request = request.uri(uri).body(Full::new(body)).map_err(lost)?;
                sender.send_request(request).await.map_err(lost)
            }
        }
    }
}

impl Http2Stream {
    /// GETs `path` with just these headers; the body is the caller's to read.
    pub async fn get(
        mut self,
        path: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<Response<Incoming>, Error> {
        let request = Request::get(format!("https://{}{path}", self.host));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        let request = request.body(Full::new(Bytes::new())).map_err(lost)?;
        self.sender.ready().await.map_err(lost)?;
        self.sender.send_request(request).await.map_err(lost)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl WholeResponse {
    /// The answer if its status is one of `wanted`.
    pub fn expect(self, what: &str, wanted: &[u16]) -> Result<WholeResponse, Error> {
        match wanted.contains(&self.status) {
            true => Ok(self),
            false => Err(Error::Answer { what: what.to_owned(), answer: self.shown() }),
        }
    }

    /// Status and the start of the body, for a message.
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(500)]);
        format!("{} {}", self.status, text.trim())
    }
}

impl Protocol {
    fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::Http1 => b"http/1.1",
            Protocol::Http2 => b"h2",
        }
    }
}

/// A connection, its handshakes finished.
async fn connection(
    target: &RestConfig,
    protocol: Protocol,
    narrow: Option<usize>,
) -> Result<(Sender, JoinHandle<()>), Error> {
    let mut http1 = http1::Builder::new();
    let tcp = match narrow {
        None => TcpStream::connect(target.address).await.map_err(lost)?,
        Some(bytes) => {
            let socket = TcpSocket::new_v4().map_err(lost)?;
            socket.set_recv_buffer_size(bytes as u32).map_err(lost)?;
            http1.max_buf_size(bytes.max(8_192));
            socket.connect(target.address).await.map_err(lost)?
        }
    };
    let mut tls = ClientConfig::clone(&target.tls);
    tls.alpn_protocols = vec![protocol.alpn().to_vec()];
    tcp.set_nodelay(true).map_err(lost)?;
    let name = ServerName::IpAddress(target.address.ip().into());
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, tcp).await.map_err(lost)?;
    let io = TokioIo::new(stream);
    Ok(match protocol {
        Protocol::Http1 => {
            let (sender, connection) = http1.handshake(io).await.map_err(lost)?;
            (Sender::Http1(sender), drive(connection))
        }
        Protocol::Http2 => {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.map_err(lost)?;
            (Sender::Http2(sender), drive(connection))
        }
    })
}

/// A connection's other half, until [`Client`] is dropped; how it ended is seen by the next request.
fn drive<E>(connection: impl Future<Output = Result<(), E>> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(async move {
        let _ = connection.await;
    })
}

fn lost(why: impl std::error::Error) -> Error {
    let mut text = why.to_string();
    let mut source = why.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    Error::Connection(text)
}
