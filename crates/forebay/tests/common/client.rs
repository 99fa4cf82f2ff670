//! HTTPS as a client speaks it, one protocol at a time.
//!
//! In: a port, whom to trust, who one is, requests. Out: answers, whole, or streams of events. HTTP/1.1 takes
//! a connection for each request, HTTP/2 one for all.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{WAIT, Watch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    pub const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

    fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::Http1 => b"http/1.1",
            Protocol::Http2 => b"h2",
        }
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    Nobody,
    /// PEM.
    Certificate {
        chain: &'a str,
        key: &'a str,
    },
}

/// Talks to one server. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    port: u16,
    tls: TlsConnector,
    sender: Sender,
}

#[derive(Clone)]
enum Sender {
    /// A connection for each request.
    Http1,
    Http2(conn::http2::SendRequest<Full<Bytes>>),
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

/// An answer, whole.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Ask {
    pub fn new(method: Method, path: impl Into<String>) -> Ask {
        Ask { method, path: path.into(), headers: Vec::new(), body: Bytes::new() }
    }

    pub fn get(path: impl Into<String>) -> Ask {
        Ask::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>, body: &Value) -> Ask {
        Ask::new(Method::POST, path).body("application/json", body.to_string())
    }

    pub fn put(path: impl Into<String>, body: &Value) -> Ask {
        Ask::new(Method::PUT, path).body("application/json", body.to_string())
    }

    pub fn patch(path: impl Into<String>, content_type: &str, body: impl Into<Bytes>) -> Ask {
        Ask::new(Method::PATCH, path).body(content_type, body)
    }

    pub fn delete(path: impl Into<String>) -> Ask {
        Ask::new(Method::DELETE, path)
    }

    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Ask {
        Ask { body: body.into(), ..self }.header("content-type", content_type)
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.headers.push((name, value.into()));
        self
    }

    pub fn accept(self, value: &str) -> Ask {
        self.header("accept", value)
    }

    pub fn bearer(self, token: &str) -> Ask {
        self.header("authorization", format!("Bearer {token}"))
    }

    fn request(self, protocol: Protocol, port: u16) -> Request<Full<Bytes>> {
        let host = format!("127.0.0.1:{port}");
        let mut request = Request::builder().method(self.method);
        request = match protocol {
            Protocol::Http1 => request.uri(self.path).header(header::HOST, host),
            Protocol::Http2 => request.uri(format!("https://{host}{}", self.path)),
        };
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body)).expect("a request")
    }
}

impl Client {
    /// # Errors
    /// There is no such server, or it wants no such client.
    pub async fn connect(
        port: u16,
        authority: &str,
        protocol: Protocol,
        identity: Identity<'_>,
    ) -> Result<Client, String> {
        let tls = TlsConnector::from(Arc::new(config(authority, protocol, identity)));
        let mut client = Client { port, tls, sender: Sender::Http1 };
        if protocol == Protocol::Http2 {
            client.sender = client.begin().await?;
        }
        Ok(client)
    }

    async fn begin(&self) -> Result<Sender, String> {
        let stream = TokioIo::new(self.open(Protocol::Http2).await?);
        let (sender, connection) =
            conn::http2::handshake(TokioExecutor::new(), stream).await.map_err(shown)?;
        tokio::spawn(connection);
        Ok(Sender::Http2(sender))
    }

    /// Connects anew if the connection has ended, as clients do; in any case others get their turn.
    ///
    /// # Errors
    /// The server wants no new connection.
    pub async fn renew(&mut self) -> Result<(), String> {
        tokio::task::yield_now().await;
        if let Sender::Http2(sender) = &self.sender
            && sender.is_closed()
        {
            self.sender = self.begin().await?;
        }
        Ok(())
    }

    pub fn protocol(&self) -> Protocol {
        match self.sender {
            Sender::Http1 => Protocol::Http1,
            Sender::Http2(_) => Protocol::Http2,
        }
    }

    async fn open(&self, protocol: Protocol) -> Result<TlsStream<TcpStream>, String> {
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.map_err(shown)?;
        tcp.set_nodelay(true).map_err(shown)?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let stream = timeout(WAIT, self.tls.connect(name, tcp)).await.map_err(shown)?.map_err(shown)?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.alpn()));
        Ok(stream)
    }

    /// A connection of its own whose machine has room for so many bytes, and nothing sent on it yet.
    pub async fn raw(&self, receive_bytes: u32) -> TlsStream<TcpStream> {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(receive_bytes).expect("a small buffer");
        let address = (Ipv4Addr::LOCALHOST, self.port).into();
        let tcp = socket.connect(address).await.expect("a connection");
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        timeout(WAIT, self.tls.connect(name, tcp)).await.expect("in time").expect("a secure connection")
    }

    /// Sends a request and reads the head of the answer.
    pub async fn open_reply(&self, ask: Ask) -> Result<Response<Incoming>, String> {
        let request = ask.request(self.protocol(), self.port);
        let sent = match self.sender.clone() {
            Sender::Http2(mut sender) => {
                timeout(WAIT, async {
                    sender.ready().await?;
                    sender.send_request(request).await
                })
                .await
            }
            Sender::Http1 => {
                let stream = TokioIo::new(self.open(Protocol::Http1).await?);
                let (mut sender, connection) = conn::http1::handshake(stream).await.map_err(shown)?;
                tokio::spawn(connection);
                timeout(WAIT, sender.send_request(request)).await
            }
        };
        sent.map_err(shown)?.map_err(shown)
    }

    /// # Errors
    /// There was no answer, or not a whole one.
    pub async fn try_ask(&self, ask: Ask) -> Result<Reply, String> {
        let (head, body) = self.open_reply(ask).await?.into_parts();
        let body = timeout(WAIT, body.collect()).await.map_err(shown)?.map_err(shown)?.to_bytes();
        Ok(Reply { code: head.status.as_u16(), headers: head.headers, body })
    }

    pub async fn ask(&self, ask: Ask) -> Reply {
        let line = format!("{} {}", ask.method, ask.path);
        self.try_ask(ask).await.unwrap_or_else(|why| panic!("{line}: {why}"))
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask(Ask::get(path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask(Ask::post(path, body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.ask(Ask::put(path, body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.ask(Ask::delete(path)).await
    }

    /// Opens a watch, which must be granted.
    pub async fn watch(&self, path: &str) -> Watch {
        self.watch_as(Ask::get(path)).await
    }

    pub async fn watch_as(&self, ask: Ask) -> Watch {
        let line = format!("{} {}", ask.method, ask.path);
        let response = self.open_reply(ask).await.unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(response.status().as_u16(), 200, "{line}");
        Watch::new(response.into_body())
    }
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// What it says, given that it has this code.
    pub fn expect(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// A header; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The texts of its `Warning` headers.
    pub fn warnings(&self) -> Vec<&str> {
        self.headers.get_all(header::WARNING).iter().map(|value| value.to_str().expect("text")).collect()
    }
}

fn config(authority: &str, protocol: Protocol, identity: Identity) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let mut config = match identity {
        Identity::Nobody => builder.with_no_client_auth(),
        Identity::Certificate { chain, key } => {
            let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<_, _>>();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            builder.with_client_auth_cert(chain.expect("PEM"), key).expect("a key of the certificate")
        }
    };
    config.alpn_protocols = vec![protocol.alpn().to_vec()];
    config
}

/// An error with what caused it.
fn shown(why: impl std::error::Error + 'static) -> String {
    let causes = std::iter::successors(Some(&why as &dyn std::error::Error), |why| why.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
