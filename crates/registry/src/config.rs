//! What a registry is made with.
//!
//! In: the program's flags. Out: values that every room of the registry reads. Never: state.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use forebay_admission::Admission;
use forebay_api::{Authorizer, Because, Decision, Eventual, Rules};
use forebay_apimachinery::{Attributes, Caller};
use forebay_backend::Backend;
use forebay_catalog::Opener;
use forebay_rbac::RightsInForce;
use forebay_rt::{Clock, Tasks};
use forebay_service_claims::{AddressRange, GivenOut, PortRange};
use forebay_strategy::Privileged;
use forebay_watchcache::limits::{self, Pace};
use forebay_watchcache::{EarlyReaders, History, Room};
use forebay_webhooks::{Calls, NobodyCalls, WebhookMetrics};

use crate::identity::Identity;

/// What a registry is made with.
#[derive(Clone)]
pub struct Config {
    /// `/registry`: what every storage key begins with.
    pub storage_prefix: String,
    /// How long events are kept (`--event-ttl`); `None` is until they are deleted.
    pub event_ttl: Option<Duration>,
    /// A watch without a timeout of its own ends after this to twice this (`--min-request-timeout`).
    pub min_request_timeout: Duration,
    pub services: ServicesConfig,
    /// Which admission plugins are on (`--disable-admission-plugins`).
    pub admission: Admission,
    /// Whether pods may have privileged containers (`--allow-privileged`).
    pub privileged: Privileged,
    /// Who carries what webhooks are asked.
    pub webhooks: Arc<dyn Calls>,
    /// What is counted of that.
    pub webhook_metrics: Arc<WebhookMetrics>,
    /// Who is asked when a policy asks what somebody may, and whether somebody may give rights that they have
    /// not.
    pub authorizer: Arc<dyn Authorizer>,
    /// Where the rights of roles and bindings are published; none where nobody asks for them.
    pub rights: Option<Arc<RightsInForce>>,
    /// How soon the caches seal what is quiet.
    pub pace: Pace,
    /// Whose the store's history is.
    pub history: History,
    /// For what the caches hold in plain form and have not put at rest yet.
    pub room: Arc<Room>,
    /// Held back until [`Registry::start`] is through.
    pub early: Arc<EarlyReaders>,
    /// Bytes before each shared frame of a watch, for whoever sends it.
    pub frame_lead_bytes: usize,
    /// Which server this is; one without says nowhere that it is there.
    pub identity: Option<Identity>,
}

impl Config {
    /// What every store of the server is opened with.
    pub(crate) fn opener(&self, backend: &Arc<dyn Backend>, clock: &Clock, tasks: &Tasks) -> Opener {
        Opener {
            storage_prefix: self.storage_prefix.clone(),
            pace: self.pace,
            history: self.history,
            room: self.room.clone(),
            early: self.early.clone(),
            backend: backend.clone(),
            clock: clock.clone(),
            tasks: tasks.clone(),
        }
    }
}

/// A lone server's: nobody makes service accounts, so that pods need none, and events are kept.
impl Default for Config {
    fn default() -> Config {
        Config {
            storage_prefix: "/registry".to_string(),
            event_ttl: None,
            min_request_timeout: Duration::from_secs(1_800),
            services: ServicesConfig::default(),
            admission: Admission::without(["ServiceAccount"]),
            privileged: Privileged::Allowed,
            webhooks: Arc::new(NobodyCalls),
            webhook_metrics: Arc::default(),
            authorizer: Arc::new(NobodyAsked),
            rights: None,
            pace: limits::PACE,
            history: History::Own,
            room: Arc::new(Room::new(limits::LOOSE_BYTES_MAX)),
            early: Arc::new(EarlyReaders::held_back()),
            frame_lead_bytes: 0,
            identity: None,
        }
    }
}

/// What Services are given, and where this server is to be found.
#[derive(Clone, Debug)]
pub struct ServicesConfig {
    /// `--service-cluster-ip-range`: one range, or one of each family; the first family is the default.
    pub cluster_ip_ranges: Vec<AddressRange>,
    /// `--service-node-port-range`.
    pub node_ports: PortRange,
    /// Where what this server sends to a service goes: a webhook's, an aggregated server's
    /// (`--enable-aggregator-routing`).
    pub routing: ServiceRouting,
    /// Where the `kubernetes` Service leads to; without it there is none.
    pub endpoint: Option<(IpAddr, u16)>,
    /// How old a claim must be that no Service has before it is given back. Zero where no other server writes
    /// to the store; else longer than a write takes, because another server may be between claim and Service.
    pub leak_grace: Duration,
}

/// Where requests for a service go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceRouting {
    /// To its address, and where that does not connect to its endpoints.
    ClusterAddress,
    /// To its endpoints.
    Endpoints,
}

impl Default for ServicesConfig {
    fn default() -> ServicesConfig {
        let range = AddressRange::new(IpAddr::from([10, 0, 0, 0]), 24);
        ServicesConfig {
            cluster_ip_ranges: range.into_iter().collect(),
            node_ports: PortRange::DEFAULT,
            routing: ServiceRouting::ClusterAddress,
            endpoint: None,
            leak_grace: Duration::ZERO,
        }
    }
}

impl ServicesConfig {
    /// What they are given out of.
    pub(crate) fn given_out(&self) -> GivenOut {
        GivenOut {
            cluster_ip_ranges: self.cluster_ip_ranges.clone(),
            node_ports: self.node_ports,
            leak_grace: self.leak_grace,
        }
    }
}

/// The authorizer of a registry that has none: it knows nothing.
struct NobodyAsked;

impl Authorizer for NobodyAsked {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        Eventual::Now(Decision::NoOpinion(Because::Unsaid))
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}
