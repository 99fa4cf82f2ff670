//! What a server is told, checked by its caller.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use forebay_documents::version::VersionInfo;
use http::HeaderValue;
use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;

pub use forebay_auth::config::{
    Anonymous, Authorization, AuthorizationMode, PodTokens, SecretTokens, ServiceAccounts, TokenUser,
};
pub use forebay_auth::tokens::{KeyError, SigningKey, TokenKeys, public_halves};
pub use forebay_transport::{Http2, NamedCertificate, NamesBy};

/// Everything the edge is told.
#[derive(Clone, Debug)]
pub struct ApiServerConfig {
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    pub tls: Tls,
    pub tokens: Vec<TokenUser>,
    pub service_accounts: ServiceAccounts,
    pub anonymous: Anonymous,
    pub authorization: Authorization,
    /// Longest time for a request that is not a watch.
    pub request_timeout: Duration,
    pub flow_control: FlowControl,
    /// Reads in flight; `None` is no limit.
    pub max_requests_inflight: Option<usize>,
    /// Writes in flight; `None` is no limit.
    pub max_mutating_requests_inflight: Option<usize>,
    /// What browsers are told of HTTPS with every answer (`Strict-Transport-Security`); `None` is nothing.
    pub transport_security: Option<HeaderValue>,
    /// Requests in flight on one HTTP/2 connection; `None` is our own choice.
    pub http2_max_streams: Option<u32>,
    /// Connections that the system has files for; `None` is our own limit alone.
    pub connections_max: Option<usize>,
    /// How long to go on serving, not ready, before shutdown begins.
    pub shutdown_delay: Duration,
    /// Over how long watches are ended then; zero leaves it to the server.
    pub watch_termination_grace: Duration,
    /// Where clients reach this server, `host:port`, as discovery tells them.
    pub external_address: Option<String>,
    pub version: VersionInfo,
    /// What this process was told, for `/flagz`: flags by name, each as it counts.
    pub flags: BTreeMap<String, String>,
    pub memory: Memory,
}

/// Whether requests take turns by what they cost, or are refused by how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// FlowSchemas and PriorityLevelConfigurations decide. How many may be in flight bounds the limit, which
    /// finds itself.
    PriorityAndFairness,
    /// So many in flight.
    MaxInFlight,
}

/// How much memory the process may use, and how it is told what it does use.
#[derive(Clone, Copy)]
pub struct Memory {
    /// Bytes; `None` is no limit.
    pub limit: Option<u64>,
    /// What is used now, in bytes; `None` where that cannot be told.
    pub read: fn() -> Option<u64>,
}

impl Memory {
    /// Nobody counts.
    pub const UNLIMITED: Memory = Memory { limit: None, read: || None };
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// What is shown to clients, and whom they are believed by.
#[derive(Clone)]
pub struct Tls {
    /// PEM: the certificate, then its chain.
    pub cert_chain: String,
    /// PEM.
    pub key: String,
    /// Shown instead to who asks for one of their names.
    pub named: Vec<NamedCertificate>,
    /// PEM; without it no client certificate is asked for.
    pub client_ca: Option<String>,
    /// Proxies in front of this server that are believed whom a request is from.
    pub front_proxies: Option<FrontProxyTrust>,
    pub provider: CryptoProvider,
    pub versions: &'static [&'static SupportedProtocolVersion],
    pub http2: Http2,
}

/// By whom, and as what, such proxies are known.
#[derive(Clone)]
pub struct FrontProxyTrust {
    /// PEM.
    pub authorities: String,
    /// What their certificates are called; any, if there is none.
    pub names: Vec<String>,
}

/// Without the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("versions", &self.versions)
            .field("http2", &self.http2)
            .finish_non_exhaustive()
    }
}
