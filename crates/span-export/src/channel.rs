//! One call of gRPC, over one connection of HTTP/2 without TLS.
//!
//! In: where the collector is, a message. Out: whether it took the message. Never: tries again.

use std::net::ToSocketAddrs as _;

use bytes::{BufMut as _, Bytes, BytesMut};
use forebay_rt::Tasks;
use forebay_spans::Collector;
use http::{HeaderMap, HeaderValue, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::limits;

/// Why spans were not taken.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the collector cannot be reached: {0}")]
    Unreachable(String),
    #[error("the collector did not answer: {0}")]
    Lost(String),
    /// By its code, with what it says.
    #[error("the collector refused: code {code}: {text}")]
    Refused { code: String, text: String },
}

/// A connection to a collector.
pub struct CollectorChannel {
    send: SendRequest<Full<Bytes>>,
    // `http://otel:4317`
    base: String,
}

impl CollectorChannel {
    /// # Errors
    /// [`ExportError::Unreachable`].
    pub async fn open(collector: &Collector, tasks: &Tasks) -> Result<CollectorChannel, ExportError> {
        let unreachable = |why: std::io::Error| ExportError::Unreachable(why.to_string());
        match collector {
            Collector::Tcp(place) => {
                let stream = dial(place).await.map_err(unreachable)?;
                CollectorChannel::speak(stream, format!("http://{place}"), tasks).await
            }
            Collector::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(unreachable)?;
                CollectorChannel::speak(stream, "http://localhost".to_owned(), tasks).await
            }
        }
    }

    async fn speak(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        base: String,
        tasks: &Tasks,
    ) -> Result<CollectorChannel, ExportError> {
        let made = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
            .await;
        let (send, connection) = made.map_err(|why| ExportError::Unreachable(why.to_string()))?;
        // Not among those that end when the server is told to: its last spans go over it.
        tasks.spawn_graceful("connection to a collector", async move {
            if let Err(why) = connection.await {
                tracing::debug!(%why, "a connection to a collector ended");
            }
        });
        Ok(CollectorChannel { send, base })
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.send.is_closed()
    }

    /// Sends `message` to the method at `path`; what comes back is nothing that anybody reads.
    ///
    /// # Errors
    /// It was not taken, or nobody knows.
    pub async fn call(&mut self, path: &str, message: &[u8]) -> Result<(), ExportError> {
        let lost = |why: &dyn std::fmt::Display| ExportError::Lost(why.to_string());
        let request = Request::post(format!("{}{path}", self.base))
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
            .header(header::TE, HeaderValue::from_static("trailers"))
            .header(header::USER_AGENT, HeaderValue::from_static("forebay"))
            .body(Full::new(framed(message)))
            .map_err(|why| lost(&why))?;
        let (head, body) = self.send.send_request(request).await.map_err(|why| lost(&why))?.into_parts();
        if !head.status.is_success() {
            return Err(ExportError::Refused { code: head.status.to_string(), text: String::new() });
        }
        let body = Limited::new(body, limits::ANSWER_BYTES_MAX).collect().await.map_err(|why| lost(&why))?;
        judged(body.trailers(), &head.headers)
    }
}

/// What a call came to: said behind its answer, or before it if there is none.
fn judged(trailers: Option<&HeaderMap>, headers: &HeaderMap) -> Result<(), ExportError> {
    let text = |name: &str| {
        let found = trailers.and_then(|trailers| trailers.get(name)).or_else(|| headers.get(name));
        found.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    match text("grpc-status") {
        Some(code) if code == "0" => Ok(()),
        Some(code) => Err(ExportError::Refused { code, text: text("grpc-message").unwrap_or_default() }),
        None => Err(ExportError::Lost("the answer broke off".to_owned())),
    }
}

/// A message with its length in front, not compressed.
fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

async fn dial(place: &str) -> std::io::Result<TcpStream> {
    // An address needs no thread that looks up names.
    let addresses = match place.parse() {
        Ok(address) => vec![address],
        Err(_) => {
            let place = place.to_owned();
            let found = forebay_rt::blocking(move || place.to_socket_addrs().map(Vec::from_iter));
            found.await.map_err(std::io::Error::other)??
        }
    };
    let stream = TcpStream::connect(&addresses[..]).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
