//! A server that does what the path of a request says, for tests of what carries requests.
//!
//! In: connections on a port of 127.0.0.1. Out: answers, and the failures that a path names. Each answer says
//! the number of its connection. Never: an API server.
//!
//! - `/ok`: an answer. `…/headers`: what came. `/echo`: the request's body. `/watch…`: the head and a piece,
//!   and then nothing more.
//! - `/late`: over HTTP/1.1, no answer, ever. `/refused-once`, `/refused`: REFUSED_STREAM, once or always.
//! - `/reset`, `/reset-within`: RST_STREAM before the head, or within the body.
//! - `/goaway`: GOAWAY after an answer.
//! - `/cut`, `/cut-within`: the connection ends, before the head or within the body. `/stops`: nothing is
//!   read or written any more.

use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

pub struct Server {
    pub address: SocketAddr,
    pub certificate: CertificateDer<'static>,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

/// What is spoken.
#[derive(Clone, Copy, PartialEq)]
pub enum Speaks {
    /// With so many streams; `None` is no limit.
    Http2(Option<u32>),
    /// Over TLS, whatever the client offers.
    Http1,
    /// HTTP/1.1 without TLS.
    Plain,
    /// Without TLS, these bytes are what comes after a request, and then the end.
    PlainBytes(&'static [u8]),
    /// HTTP/2 is agreed on, and these bytes are what comes.
    Bytes(&'static [u8]),
    /// HTTP/2: each connection goes away at its first request, and says that it did not serve it.
    GoesAway,
    /// HTTP/2 is agreed on, and nothing comes.
    Nothing,
}

impl Server {
    pub async fn start(speaks: Speaks) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (certificate, tls) = tls(speaks);
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        let open = Arc::new(AtomicUsize::new(0));
        let count_open = open.clone();
        let once = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let served = serve(tcp, tls.clone(), speaks, number, once.clone());
                let open = count_open.clone();
                open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    served.await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Server { address, certificate, accepted, open }
    }

    /// A configuration for this server.
    pub fn config(&self, scheme: &str) -> kube::Config {
        let url = format!("{scheme}://{}", self.address);
        let mut config = kube::Config::new(url.parse().expect("a URL"));
        config.root_cert = Some(vec![self.certificate.to_vec()]);
        config
    }

    /// Connections that were made.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Connections that the client has not ended.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

fn tls(speaks: Speaks) -> (CertificateDer<'static>, TlsAcceptor) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("signed").der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate.clone()], key).expect("they fit");
    config.alpn_protocols = match speaks {
        Speaks::Http1 | Speaks::Plain | Speaks::PlainBytes(_) => Vec::new(),
        _ => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    (certificate, TlsAcceptor::from(Arc::new(config)))
}

/// What ends here is what the client is to find out.
async fn serve(tcp: TcpStream, tls: TlsAcceptor, speaks: Speaks, number: usize, once: Arc<AtomicUsize>) {
    if speaks == Speaks::Plain {
        return http1(tcp, number).await;
    }
    if let Speaks::PlainBytes(bytes) = speaks {
        return plain(tcp, bytes).await;
    }
    let tcp = tcp.into_std().expect("a socket");
    let cuts = tcp.try_clone().expect("the socket once more");
    let tcp = TcpStream::from_std(tcp).expect("a socket");
    let Ok(mut stream) = tls.accept(tcp).await else { return };
    match speaks {
        Speaks::Http2(_) if stream.get_ref().1.alpn_protocol() != Some(b"h2") => http1(stream, number).await,
        Speaks::Http2(streams) => {
            let mut builder = h2::server::Builder::new();
            if let Some(streams) = streams {
                builder.max_concurrent_streams(streams);
            }
            let Ok(connection) = builder.handshake(stream).await else { return };
            Http2 { connection, cuts, number, once, open: Vec::new() }.run().await;
        }
        Speaks::Bytes(bytes) => {
            let _ = stream.write_all(bytes).await;
            let _ = stream.flush().await;
            std::future::pending().await
        }
        Speaks::Nothing => std::future::pending().await,
        Speaks::GoesAway => goes_away(stream).await,
        Speaks::Http1 | Speaks::Plain | Speaks::PlainBytes(_) => http1(stream, number).await,
    }
}

/// Frames by hand: h2's server serves whatever it has read.
async fn goes_away(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    const PREFACE_BYTES: usize = 24;
    const HEADERS: u8 = 1;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut preface = [0; PREFACE_BYTES];
    let _ = stream.read_exact(&mut preface).await;
    let _ = stream.write_all(&settings).await;
    let _ = stream.flush().await;
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        let _ = stream.read_exact(&mut payload).await;
        if head[3] == HEADERS {
            let _ = stream.write_all(&goaway).await;
            let _ = stream.flush().await;
        }
    }
}

async fn plain(mut tcp: TcpStream, bytes: &[u8]) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = tcp.read_u8().await else { return };
        head.push(byte);
    }
    let _ = tcp.write_all(bytes).await;
    let _ = tcp.shutdown().await;
}

async fn http1(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, number: usize) {
    let answers = service_fn(move |request: Request<Incoming>| async move {
        if let Some(protocol) = request.headers().get(http::header::UPGRADE).cloned() {
            let answer = Response::builder().status(101).header(http::header::UPGRADE, protocol);
            return answer.body(Full::default().boxed());
        }
        let body = match request.uri().path() {
            "/echo" => request.into_body().collect().await.expect("a body").to_bytes(),
            "/late" => std::future::pending().await,
            _ => Bytes::from(number.to_string()),
        };
        Ok::<_, http::Error>(Response::new(Full::new(body).boxed()))
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), answers);
    let _ = served.with_upgrades().await;
}

struct Http2 {
    connection: Connection<tokio_rustls::server::TlsStream<TcpStream>, Bytes>,
    cuts: std::net::TcpStream,
    number: usize,
    once: Arc<AtomicUsize>,
    /// Answers that go on.
    open: Vec<(SendStream<Bytes>, SendResponse<Bytes>)>,
}

impl Http2 {
    async fn run(mut self) {
        while let Some(Ok((request, respond))) = self.connection.accept().await {
            self.answer(request, respond).await;
        }
    }

    async fn answer(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        match request.uri().path().to_owned().as_str() {
            "/echo" => self.echo(request, respond),
            path if path.starts_with("/watch") => {
                let stream = self.begin(&mut respond, false);
                self.open.push((stream, respond));
            }
            "/reset" => respond.send_reset(Reason::INTERNAL_ERROR),
            "/reset-within" => {
                let mut stream = self.begin(&mut respond, false);
                self.flush().await;
                stream.send_reset(Reason::INTERNAL_ERROR);
            }
            "/refused" => respond.send_reset(Reason::REFUSED_STREAM),
            "/refused-once" if self.once.fetch_add(1, Ordering::SeqCst) == 0 => {
                respond.send_reset(Reason::REFUSED_STREAM);
            }
            "/goaway" => {
                self.begin(&mut respond, true);
                self.connection.graceful_shutdown();
            }
            path if path.ends_with("/headers") => {
                let said = ["authorization", "user-agent", "content-length", "connection", "host"];
                let said =
                    said.map(|it| request.headers().get(it).map_or("-", |it| it.to_str().expect("a text")));
                let text = format!("{} {path} {}", request.method(), said.join(" "));
                let mut stream =
                    respond.send_response(Response::new(()), false).expect("the stream is there");
                stream.send_data(text.into(), true).expect("the stream is there");
            }
            "/cut" => {
                self.flush().await;
                self.cuts.shutdown(Shutdown::Write).expect("it was open");
                std::future::pending().await
            }
            "/cut-within" => {
                let _open = self.begin(&mut respond, false);
                self.flush().await;
                self.cuts.shutdown(Shutdown::Write).expect("it was open");
                std::future::pending().await
            }
            "/stops" => std::future::pending().await,
            _ => drop(self.begin(&mut respond, true)),
        }
    }

    /// The head, and the number of the connection.
    fn begin(&self, respond: &mut SendResponse<Bytes>, is_all: bool) -> SendStream<Bytes> {
        let mut stream = respond.send_response(Response::new(()), false).expect("the stream is there");
        stream.send_data(Bytes::from(self.number.to_string()), is_all).expect("the stream is there");
        stream
    }

    fn echo(&self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        tokio::spawn(async move {
            let mut body = request.into_body();
            let mut stream = respond.send_response(Response::new(()), false).expect("the stream is there");
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
                stream.send_data(data, false).expect("the stream is there");
            }
            stream.send_data(Bytes::new(), true).expect("the stream is there");
        });
    }

    /// Writes what there is to write.
    async fn flush(&mut self) {
        let connection = &mut self.connection;
        std::future::poll_fn(|cx| {
            let _ = connection.poll_closed(cx);
            std::task::Poll::Ready(())
        })
        .await;
    }
}
