//! The network: connections of memory, each with buffers of a drawn size, over which clients speak HTTP/1.1
//! with the server's own code.
//!
//! In: requests. Out: responses whose bodies come as the client takes them. A response that is dropped closes
//! its connection; the server's end closes all.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use forebay_documents::version::VersionInfo;
use forebay_endpoints::config::{
    Anonymous, ApiServerConfig, Authorization, FlowControl, Http2, Memory, PodTokens, SecretTokens,
    ServiceAccounts, Tls, TokenKeys, TokenUser,
};
use forebay_endpoints::{Backing, InProcess};
use forebay_registry::Registry;
use forebay_rt::{Random, Tasks};
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

const TOKEN: &str = "simulated";

/// The server's side of all connections of one life.
pub struct Network {
    server: InProcess,
    tasks: Tasks,
    random: Random,
}

impl Network {
    pub fn new(registry: Registry, tasks: Tasks, random: Random) -> Network {
        let clock = registry.clock().clone();
        let server = InProcess::new(
            &config(),
            Backing::new(Arc::new(registry), clock, Random::seeded(random.next_u64())),
            &tasks,
        );
        Network { server, tasks, random }
    }

    /// Sends a request over a connection of its own. None: the connection broke.
    pub async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Option<Response<Incoming>> {
        self.send_with(method, path, &[], body).await
    }

    /// The same with more headers.
    pub async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Option<Response<Incoming>> {
        let (ours, theirs) = tokio::io::duplex(64 << self.random.below(11));
        let server = self.server.clone();
        self.tasks.spawn_graceful("connection", async move { server.speak(theirs).await });
        let (mut sender, connection) = http1::handshake(TokioIo::new(ours)).await.ok()?;
        self.tasks.spawn_graceful("client's connection", async move {
            // An end that is no end is seen in the body.
            let _ = connection.await;
        });
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "server")
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        sender.send_request(request.body(Full::new(Bytes::from(body))).ok()?).await.ok()
    }
}

/// What a server is told that nobody but the simulation talks to.
fn config() -> ApiServerConfig {
    ApiServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 6443)),
        tls: Tls {
            cert_chain: String::new(),
            key: String::new(),
            named: Vec::new(),
            client_ca: None,
            front_proxies: None,
            provider: rustls::crypto::ring::default_provider(),
            versions: rustls::DEFAULT_VERSIONS,
            http2: Http2::Disabled,
        },
        tokens: vec![TokenUser {
            token: TOKEN.into(),
            user: "client".into(),
            uid: String::new(),
            groups: vec!["system:masters".into()],
        }],
        service_accounts: ServiceAccounts {
            issuers: vec!["https://server".into()],
            api_audiences: vec!["https://server".into()],
            keys: keys(),
            max_expiration: None,
            pod_tokens: PodTokens::AsRequested,
            secret_tokens: SecretTokens::Believed,
            keys_uri: None,
        },
        anonymous: Anonymous::Nothing,
        authorization: Authorization::always_allow(),
        request_timeout: Duration::from_secs(60),
        flow_control: FlowControl::MaxInFlight,
        max_requests_inflight: None,
        max_mutating_requests_inflight: None,
        transport_security: None,
        http2_max_streams: None,
        connections_max: None,
        shutdown_delay: Duration::ZERO,
        watch_termination_grace: Duration::ZERO,
        memory: Memory::UNLIMITED,
        external_address: None,
        flags: Default::default(),
        version: VersionInfo {
            kubernetes: "v1.36.3".into(),
            forebay: "0.0.0".into(),
            git_commit: String::new(),
            build_date: String::new(),
            platform: String::new(),
        },
    }
}

/// Made once for a process; nothing that is simulated depends on it.
fn keys() -> TokenKeys {
    static KEYS: OnceLock<TokenKeys> = OnceLock::new();
    let make = || {
        let key = rcgen::KeyPair::generate().expect("a key can be made").serialize_pem();
        TokenKeys::from_pem(&key, &[]).expect("it is a key")
    };
    KEYS.get_or_init(make).clone()
}
