//! A server for tests of the whole edge: everything but files and flags, on a free port, its store in memory.
//!
//! Its users are `somebody`, and `master`, who may do everything; the token of each is the name.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use forebay_api::Api;
use forebay_documents::version::VersionInfo;
use forebay_embedded::{Engine, Options};
use forebay_registry::Registry;
use forebay_rt::{Clock, Random, Shutdown, Tasks};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::{
    Anonymous, ApiServerConfig, Authorization, FlowControl, Http2, Memory, PodTokens, SecretTokens,
    ServiceAccounts, Tls, TokenKeys, TokenUser,
};
use crate::neighbourhood::Neighbours;
use crate::server::{Backing, Bound};

/// Anything that takes longer does not come.
pub const WAIT: Duration = Duration::from_secs(100);

/// What a client of HTTP/1.1 says to be somebody.
pub const KNOWN: &str = "Authorization: Bearer somebody\r\n";

/// The same of HTTP/2.
pub const TOKEN: &str = "Bearer somebody";

/// A server that serves until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    roots: Arc<RootCertStore>,
    stop: Shutdown,
    served: JoinHandle<()>,
}

/// What may differ.
pub struct Setup {
    pub connections_max: usize,
    pub writes_max: usize,
    pub flow_control: FlowControl,
    pub neighbours: Option<Neighbours>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            connections_max: 1_000,
            writes_max: 100,
            flow_control: FlowControl::PriorityAndFairness,
            neighbours: None,
        }
    }
}

impl Server {
    pub async fn start(setup: Setup) -> Server {
        Server::start_with(setup, |registry| Arc::new(registry)).await
    }

    /// One whose verbs are answered by what `api` makes of the registry.
    pub async fn start_with(setup: Setup, api: impl FnOnce(Registry) -> Arc<dyn Api>) -> Server {
        let key = rcgen::KeyPair::generate().expect("a key");
        let own = rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).expect("parameters");
        let own = own.self_signed(&key).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(own.der().clone()).expect("a root");
        let bound = Bound::listen(config(&own.pem(), &key.serialize_pem(), &setup)).expect("listens");
        let (address, clock, tasks) = (bound.address(), Clock::system(), Tasks::new());
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let registry =
            Registry::new(Default::default(), engine, clock.clone(), Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        let stop = Shutdown::default();
        let api = api(registry.clone());
        let backing = Backing::new(Arc::new(registry), clock, Random::seeded(8));
        let backing = Backing { api, neighbours: setup.neighbours, ..backing };
        let served = tokio::spawn(bound.serve(backing, Vec::new(), tasks, stop.clone()));
        Server { address, roots: Arc::new(roots), stop, served }
    }

    /// Tells it to end in order.
    pub fn stop(&self) {
        self.stop.raise();
    }

    fn tls(&self, protocol: &[u8], versions: &[&'static rustls::SupportedProtocolVersion]) -> TlsConnector {
        let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocol.to_vec()];
        TlsConnector::from(Arc::new(tls))
    }

    /// A connection on which nothing was said, over TLS or otherwise.
    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("a connection")
    }

    /// A secure connection on which nothing was said. The client's machine has room for so many bytes.
    ///
    /// # Errors
    /// It was closed instead.
    pub async fn try_open(
        &self,
        protocol: &[u8],
        room: Option<u32>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4().expect("a socket");
        if let Some(room) = room {
            socket.set_recv_buffer_size(room).expect("a buffer");
        }
        let tcp = socket.connect(self.address).await?;
        tcp.set_nodelay(true)?;
        let tls = self.tls(protocol, rustls::ALL_VERSIONS);
        timeout(WAIT, tls.connect(self.address.ip().into(), tcp)).await?
    }

    /// The same, which must be there.
    pub async fn open(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        self.try_open(protocol, None).await.expect("a secure connection")
    }

    /// What somebody is answered over HTTP/1.1: the code, and the body.
    ///
    /// - `headers`: whole lines, `Accept: …\r\n`.
    pub async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.open(b"http/1.1").await;
        let len = body.len();
        let ask = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{KNOWN}Content-Length: {len}\r\n{headers}\r\n{body}"
        );
        stream.write_all(ask.as_bytes()).await.expect("open");
        let mut answer = Vec::new();
        timeout(WAIT, stream.read_to_end(&mut answer)).await.expect("in time").expect("whole");
        let answer = String::from_utf8(answer).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let code = head.strip_prefix("HTTP/1.1 ").and_then(|line| line[..3].parse().ok());
        (code.expect("a code"), body.to_owned())
    }

    /// Says `text` on a connection of HTTP/1.1, and returns the codes of the answers until it ends.
    pub async fn codes(&self, text: &[u8]) -> String {
        let mut stream = self.open(b"http/1.1").await;
        // One that is refused half-way is not written to any more.
        let _refused = stream.write_all(text).await;
        let _refused = stream.flush().await;
        let mut answers = Vec::new();
        let _reset = timeout(WAIT, stream.read_to_end(&mut answers)).await.expect("an end");
        codes(&answers)
    }

    /// A series of `/metrics`, and 0 if it is not there.
    pub async fn metric(&self, series: &str) -> f64 {
        let (_code, text) = self.ask("GET", "/metrics", "", "").await;
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.raise();
        self.served.abort();
    }
}

/// The codes of answers of HTTP/1.1, one behind the other.
pub fn codes(mut answers: &[u8]) -> String {
    let mut codes = Vec::new();
    while let Some(end) = answers.windows(4).position(|four| four == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&answers[..end]).to_lowercase();
        let (code, _) =
            head.strip_prefix("http/1.").and_then(|line| line[2..].split_at_checked(3)).expect("a head");
        codes.push(code.to_owned());
        answers = &answers[end + 4..];
        let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if let Some(len) = value("content-length:") {
            answers = &answers[len.parse::<usize>().expect("a length").min(answers.len())..];
        } else if value("transfer-encoding:").is_some() {
            let last = answers.windows(5).position(|five| five == b"0\r\n\r\n").expect("an end of chunks");
            answers = &answers[last + 5..];
        }
    }
    assert!(answers.is_empty(), "not an answer: {:?}", String::from_utf8_lossy(answers));
    codes.join(" ")
}

pub fn config(certificate: &str, key: &str, setup: &Setup) -> ApiServerConfig {
    let user = |token: &str, group: &str| TokenUser {
        token: token.into(),
        user: token.into(),
        uid: String::new(),
        groups: vec![group.into()],
    };
    ApiServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        tls: Tls {
            cert_chain: certificate.into(),
            key: key.into(),
            named: Vec::new(),
            client_ca: None,
            front_proxies: None,
            provider: ring::default_provider(),
            versions: rustls::ALL_VERSIONS,
            http2: Http2::Enabled,
        },
        tokens: vec![user("somebody", "people"), user("master", "system:masters")],
        service_accounts: ServiceAccounts {
            issuers: vec!["https://issuer".into()],
            api_audiences: vec!["api".into()],
            keys: TokenKeys::from_pem(key, &[key.into()]).expect("keys"),
            max_expiration: None,
            pod_tokens: PodTokens::Extended,
            secret_tokens: SecretTokens::LookedUp,
            keys_uri: None,
        },
        anonymous: Anonymous::HealthAndVersion,
        authorization: Authorization::always_allow(),
        request_timeout: Duration::from_secs(60),
        flow_control: setup.flow_control,
        max_requests_inflight: Some(400),
        max_mutating_requests_inflight: Some(setup.writes_max),
        transport_security: None,
        http2_max_streams: None,
        connections_max: Some(setup.connections_max),
        shutdown_delay: Duration::ZERO,
        watch_termination_grace: Duration::ZERO,
        external_address: None,
        flags: Default::default(),
        version: VersionInfo {
            kubernetes: "v1.36.3".into(),
            forebay: "0.0.0".into(),
            git_commit: String::new(),
            build_date: "1970-01-01T00:00:00Z".into(),
            platform: "linux/amd64".into(),
        },
        memory: Memory::UNLIMITED,
    }
}
