//! What a client sees, in words.
//!
//! In: a proxy's port. Out: requests and their ends. Never: a retry; a wait without a limit.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{ACCEPT, HOST, RETRY_AFTER};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longest wait for what must come.
pub const COMES_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// A connection.
pub enum Client {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

/// An answer whose body is still to come.
pub struct Open {
    pub status: String,
    body: Incoming,
}

impl Client {
    /// Connects; an error is what was seen instead.
    pub async fn connect(port: u16, authority: &str, protocol: Protocol) -> Result<Client, String> {
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(|why| named(&why))?;
        Client::over(tcp, authority, protocol).await
    }

    pub async fn over(tcp: TcpStream, authority: &str, protocol: Protocol) -> Result<Client, String> {
        let io = TokioIo::new(tls(tcp, authority, protocol).await?);
        Ok(match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await.map_err(|why| named(&why))?;
                tokio::spawn(connection);
                Client::Http1(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), io).await.map_err(|why| named(&why))?;
                tokio::spawn(connection);
                Client::Http2(sender)
            }
        })
    }

    /// GETs, and returns with the head.
    pub async fn get(&mut self, path: &str, accept: &str) -> Result<Open, String> {
        let request = Request::builder().uri(format!("https://127.0.0.1{path}")).header(ACCEPT, accept);
        let answer = match self {
            Client::Http1(sender) => {
                let request = Request::builder().uri(path).header(HOST, "127.0.0.1").header(ACCEPT, accept);
                sender.send_request(request.body(Empty::new()).unwrap()).await
            }
            Client::Http2(sender) => sender.send_request(request.body(Empty::new()).unwrap()).await,
        };
        answer.map(Open::of).map_err(|why| named(&why))
    }
}

impl Open {
    fn of(answer: Response<Incoming>) -> Open {
        let after = answer.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let after = after.map(|after| format!(", Retry-After {after}")).unwrap_or_default();
        Open { status: format!("{}{after}", answer.status().as_u16()), body: answer.into_body() }
    }

    /// What comes next: bytes, `the end`, or what broke.
    pub async fn next(&mut self) -> String {
        loop {
            let bytes = match self.body.frame().await {
                None => return "the end".to_owned(),
                Some(Err(why)) => return named(&why),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            // HTTP/2 may end by an empty one.
            if !bytes.is_empty() {
                let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
                return line.escape_ascii().to_string().replace("\\\"", "\"");
            }
        }
    }

    /// All that comes, to the end.
    pub async fn rest(&mut self) -> String {
        let mut all = Vec::new();
        loop {
            let next = self.next().await;
            let is_over = !next.contains(['{', '\\']);
            all.push(next);
            if is_over {
                return all.join(" ");
            }
        }
    }
}

/// A TLS connection on which nothing was said.
pub async fn tls(
    tcp: TcpStream,
    authority: &str,
    protocol: Protocol,
) -> Result<TlsStream<TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = match protocol {
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
        Protocol::Http2 => vec![b"h2".to_vec()],
    };
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("127.0.0.1").unwrap();
    connector.connect(name, tcp).await.map_err(|why| named(&why))
}

/// What an error is.
fn named(why: &(dyn std::error::Error + 'static)) -> String {
    let mut all = format!("{why:?}");
    let mut source = why.source();
    while let Some(cause) = source {
        all += &format!(" {cause:?}");
        source = cause.source();
    }
    let names = [
        ("ConnectionRefused", "refused"),
        ("ConnectionReset", "reset by peer"),
        ("HandshakeFailure", "alert: handshake failure"),
        ("GoAway", "GOAWAY"),
        ("Reset(StreamId", "RST_STREAM"),
        ("UnexpectedEof", "EOF"),
        ("IncompleteMessage", "EOF"),
        ("BrokenPipe", "EOF"),
    ];
    let name = names.iter().find(|(part, _)| all.contains(part)).map(|(_, name)| (*name).to_owned());
    name.unwrap_or(all)
}
