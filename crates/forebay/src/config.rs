//! What was decided: the typed configuration of `forebay serve`, made from what was typed.
//!
//! What was typed and the facts about the machine go in; [`ServeConfig`] or the first error comes out. Reads
//! no files: what the named files hold is [`crate::prepare`]'s.

mod admission;
mod audit;
mod authentication;
mod authorization;
mod cidr;
mod decide;
mod front_proxy;
mod host;
mod operating;
mod reader;
mod tls;
mod tls_policy;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use forebay_auth::{BootstrapTokenUse, Ways};
use forebay_controllers::Selection;
use forebay_encryption::Reload;
use forebay_endpoints::config::{PodTokens, SecretTokens};
use forebay_etcd::Endpoint;
use forebay_pki::{CertificateFiles, NamedFiles, ServingNames};
use forebay_registry::{Admission, PortRange, Privileged, ServiceRouting};
use http::HeaderValue;

pub use audit::AuditConfig;
pub use authentication::{OidcProvider, TokenWebhook};
pub use authorization::AuthorizationSource;
pub use cidr::Cidr;
pub use host::Host;
pub use operating::Operating;
pub use tls_policy::{TlsPolicy, TlsVersion};

/// Everything that `forebay serve` was told, checked.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// Holds everything that is kept; no other place is written to, `tls.cert_dir` apart.
    pub data_dir: PathBuf,
    /// Begins with a slash and does not end with one: `/registry`.
    pub etcd_prefix: String,
    /// `None`: objects are kept in the data directory.
    pub etcd: Option<EtcdConfig>,
    /// `None`: nothing is encrypted at rest.
    pub encryption: Option<EncryptionFile>,
    /// `None`: events are kept until they are deleted.
    pub event_ttl: Option<Duration>,
    pub administrator: Administrator,
    pub serving: Serving,
    pub tls: Tls,
    pub authentication: Authentication,
    pub front_proxy: FrontProxy,
    pub kubelets: Kubelets,
    /// Who is asked whether somebody may.
    pub authorization: AuthorizationSource,
    /// Which controllers run beside the API.
    pub controllers: Selection,
    pub limits: Limits,
    pub operating: Operating,
    pub admission: Admission,
    /// What its plugins are told.
    pub admission_file: Option<PathBuf>,
    /// Whether pods may have privileged containers.
    pub privileged: Privileged,
    pub audit: AuditConfig,
    /// One, or one of each family; the first is the primary one.
    pub service_cluster_ip_ranges: Vec<Cidr>,
    pub service_node_ports: PortRange,
    pub service_routing: ServiceRouting,
    /// As `-v`: 0 to 10 and beyond.
    pub verbosity: u32,
    /// For the log, in order.
    pub warnings: Vec<String>,
}

/// The etcd cluster that objects are kept in.
#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// At least one.
    pub endpoints: Vec<Endpoint>,
    pub ca_file: Option<PathBuf>,
    pub client: Option<CertificateFiles>,
    /// `None`: others compact it.
    pub compaction_interval: Option<Duration>,
}

/// What says how objects are encrypted at rest.
#[derive(Debug, Clone)]
pub struct EncryptionFile {
    pub file: PathBuf,
    pub reload: Reload,
}

/// Where and how to listen.
#[derive(Debug, Clone)]
pub struct Serving {
    pub bind_address: IpAddr,
    /// 0: a free port is taken.
    pub secure_port: u16,
    /// At which others reach this server; `None` when nothing better than loopback is known.
    pub advertise_address: Option<IpAddr>,
    pub external_hostname: Option<String>,
    pub http2: Http2,
    /// `None`: the server's own choice.
    pub http2_max_streams_per_connection: Option<u32>,
    /// What every answer says of HTTPS, if it is to.
    pub transport_security: Option<HeaderValue>,
    /// How long to go on serving, not ready, before shutdown begins.
    pub shutdown_delay: Duration,
    /// Over how long watches are ended then; zero: the server's own choice.
    pub watch_termination_grace: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2 {
    Enabled,
    Disabled,
}

/// Certificates and what is spoken with them.
#[derive(Debug, Clone)]
pub struct Tls {
    pub cert_dir: PathBuf,
    /// Served instead of a made certificate.
    pub given: Option<CertificateFiles>,
    /// Served to who asks for one of their names.
    pub named: Vec<NamedFiles>,
    pub client_ca_file: Option<PathBuf>,
    pub policy: TlsPolicy,
    /// What a made serving certificate covers.
    pub names: ServingNames,
}

/// Who is who.
#[derive(Debug, Clone)]
pub struct Authentication {
    pub token_auth_file: Option<PathBuf>,
    pub anonymous: Anonymous,
    /// Whether that is what was typed.
    pub anonymous_is_said: bool,
    pub service_accounts: ServiceAccounts,
    /// An `AuthenticationConfiguration`.
    pub config_file: Option<PathBuf>,
    /// What flags say instead.
    pub oidc: Option<OidcProvider>,
    pub webhook: Option<TokenWebhook>,
    pub bootstrap_tokens: BootstrapTokenUse,
    /// In which ways somebody may act as somebody else.
    pub ways: Ways,
}

/// Proxies in front of this server, and it as one in front of others.
#[derive(Debug, Clone)]
pub struct FrontProxy {
    /// Authorities of proxies that are believed whom a request is from; `None`: there are none.
    pub client_ca_file: Option<PathBuf>,
    /// What their certificates are called; any, if there is none.
    pub allowed_names: Vec<String>,
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    pub extra_prefixes: Vec<String>,
    /// What is shown to other servers instead of a made certificate.
    pub client: Option<CertificateFiles>,
}

/// How kubelets are asked.
#[derive(Debug, Clone)]
pub struct Kubelets {
    /// What is shown to them; `None`: they are not asked.
    pub client: Option<CertificateFiles>,
    pub authority: Option<PathBuf>,
    /// The first that a node has is where it is reached.
    pub address_types: Vec<String>,
    /// Of kubelets whose node does not say.
    pub port: u16,
}

/// What is answered without credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anonymous {
    /// `/healthz`, `/livez`, `/readyz`, `/version`; 401 elsewhere.
    HealthAndVersion,
    /// 401 everywhere.
    Nothing,
}

/// Tokens of service accounts.
#[derive(Debug, Clone)]
pub struct ServiceAccounts {
    /// The first one signs; all are accepted. Never empty.
    pub issuers: Vec<String>,
    /// The issuers, unless it is said; never empty.
    pub api_audiences: Vec<String>,
    pub key_files: Vec<PathBuf>,
    pub signing_key_file: Option<PathBuf>,
    pub max_token_expiration: Option<Duration>,
    pub pod_tokens: PodTokens,
    pub secret_tokens: SecretTokens,
    /// Where others find the keys, if not here.
    pub keys_uri: Option<String>,
}

/// How much at once, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub request_timeout: Duration,
    pub min_request_timeout: Duration,
    pub priority_and_fairness: bool,
    /// `None`: no limit.
    pub max_requests_inflight: Option<u32>,
    /// `None`: no limit.
    pub max_mutating_requests_inflight: Option<u32>,
    pub memory: MemoryLimit,
}

/// Whom the server knows without having been told of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Administrator {
    /// One whose kubeconfig it writes, and whoever else its own authority vouches for.
    Made,
    /// Nobody: clients are those of `--client-ca-file`.
    None,
}

/// How much memory the process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// What the system lets it use, if that is limited.
    Systems,
    None,
    Bytes(u64),
}

impl ServeConfig {
    /// Where to listen.
    pub fn listen(&self) -> SocketAddr {
        SocketAddr::new(self.serving.bind_address, self.serving.secure_port)
    }

    /// The URL for clients on this machine.
    pub fn local_url(&self, port: u16) -> String {
        format!("https://{}", SocketAddr::new(self.local_address(), port))
    }

    /// The address for clients on this machine.
    pub fn local_address(&self) -> IpAddr {
        match self.serving.bind_address {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            address => address,
        }
    }

    /// Where the kubeconfig of the administrator is written, if one is made.
    pub fn admin_kubeconfig(&self) -> Option<PathBuf> {
        match self.administrator {
            Administrator::Made => Some(self.data_dir.join("admin.kubeconfig")),
            Administrator::None => None,
        }
    }

    /// What is believed of clients beside the given authorities: `made`, or nothing.
    pub fn own_authority<'a>(&self, made: &'a str) -> &'a str {
        match self.administrator {
            Administrator::Made => made,
            Administrator::None => "",
        }
    }
}

#[cfg(test)]
mod tests;
