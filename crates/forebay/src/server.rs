//! A server put together and taken apart: store, registry and endpoints, in this order and back.
//!
//! In: an open store and what was [`Prepared`]. Out: a [`Server`] that listens, and then serves until it is
//! told to stop. `forebay serve` and the test server of the crate `testing` are both made here, so that what
//! one has the other has. Never: reads a flag, a file or a signal.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forebay_aggregator::{
    Aggregator, AggregatorConfig, ContentElsewhere, ObjectsOfOthers, PublishedAuthentication, keep_published,
};
use forebay_apimachinery::Status;
use forebay_audit::Audit;
use forebay_auth::Authorizers;
use forebay_controllers::{ControllerConfig, RootCa, Signing};
use forebay_documents::health::{Check, Endpoints};
use forebay_documents::metrics::SignerMetrics;
use forebay_endpoints::{Aggregation, Backing, Bound, Identity, Neighbours, OwnDoor};
use forebay_kubelet::{KubeletConfig, KubeletCredentials, Kubelets};
use forebay_node_rights::NodesInForce;
use forebay_proxy::{ClientIdentity, Connects, RemoteHeaders};
use forebay_registry::{AddressRange, History, KindsElsewhere, Registry, ServicesConfig};
use forebay_rt::{Clock, Random, Shutdown, Tasks};
use forebay_span_export::ExportConfig;
use forebay_spans::{Tracer, TracingConfiguration};
use forebay_webhook_client::{OwnServer, WebhookClient};
use forebay_webhooks::WebhookMetrics;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::aggregation;
use crate::authorization::{Chain, Reloading};
use crate::config::{Administrator, Host, ServeConfig};
use crate::edge;
use crate::error::Error;
use crate::prepare::{self, KubeletFiles, Prepared};
use crate::remote::Remote;
use crate::store::Store;
use crate::token_signing::TokenSigning;
use forebay_pki::trust;

/// How long the tasks of the caches may take to end.
const TASKS_WAIT: Duration = Duration::from_secs(5);

/// How long it may take to hand out what is noted of requests: as many attempts at a webhook as at other
/// times, with short pauses. Those who end a server wait for 30 seconds, if they are told nothing else.
const AUDIT_WAIT: Duration = Duration::from_secs(10);

/// Before what others are to know, and could not be published, is tried again.
const PUBLISH_PAUSE: Duration = Duration::from_secs(1);

/// How long it may take to say that nobody is to be led here any more.
const WITHDRAW_WAIT: Duration = Duration::from_secs(3);

/// A server that listens. Clients that come before [`Server::run`] wait in the kernel's backlog.
pub struct Server {
    store: Store,
    bound: Bound,
    registry: Registry,
    clock: Clock,
    controllers: ControllerConfig,
    tasks: Tasks,
    /// What tells who asks, for programs beside this server.
    authentication: watch::Sender<PublishedAuthentication>,
    aggregator: AggregatorConfig,
    remote_headers: Arc<RemoteHeaders>,
    kubelets: Option<KubeletConfig>,
    trusted: Trusted,
    webhook_metrics: Arc<WebhookMetrics>,
    shown_to_others: ClientIdentity,
    made_proxy_authority: Option<String>,
    remote: Remote,
    /// What leads to nodes, where somebody is judged by it.
    nodes: Option<Arc<NodesInForce>>,
    /// The file that says who is asked whether somebody may.
    authorization: Option<Reloading>,
    tracer: Option<Arc<Tracer>>,
    audit: Option<Arc<Audit>>,
    /// By which webhooks are asked that are behind this server.
    own_door: Arc<OwnDoor>,
    /// What is counted of who signs, if that is somebody else.
    token_signer: Option<Arc<SignerMetrics>>,
    /// The kinds that aggregated servers serve, once these are followed.
    kinds_elsewhere: KindsElsewhere,
}

/// The authorities that clients of this server are to trust, PEM.
type Trusted = Arc<Mutex<String>>;

/// What replaces a server's certificate, and whom it knows, while it runs.
#[derive(Clone)]
pub struct Replacing {
    pub identity: Identity,
    registry: Registry,
    trusted: Trusted,
    authentication: watch::Sender<PublishedAuthentication>,
    shown_to_others: ClientIdentity,
    kubelets: Option<KubeletCredentials>,
    made_proxy_authority: Option<String>,
}

impl Replacing {
    /// Others are to trust `authority` from now on: where it is published is seen to as each place is looked
    /// at next.
    pub fn trust(&self, authority: &str) {
        authority.clone_into(&mut self.trusted.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Wall time as the server has it.
    pub fn timestamp(&self) -> Timestamp {
        self.registry.timestamp()
    }

    /// Whose certificates of clients are believed now, for programs beside this server.
    ///
    /// - `client_ca`: PEM.
    pub fn are_client_authorities(&self, client_ca: &str) {
        self.authentication.send_modify(|own| client_ca.clone_into(&mut own.client_authorities));
    }

    /// The same of proxies.
    pub fn are_proxy_authorities(&self, believed: &str) {
        let all = prepare::joined(Some(believed), self.made_proxy_authority.as_deref().unwrap_or_default());
        self.authentication.send_modify(|own| own.proxy_authorities = all);
    }

    /// Shows aggregated servers another certificate from now on.
    ///
    /// # Errors
    /// It cannot be used, and what was shown still is.
    pub fn show_to_others(&self, cert: &str, key: &str) -> Result<(), String> {
        self.shown_to_others.replace(cert, key)?;
        self.identity.shown_to_others();
        Ok(())
    }

    /// Shows another certificate to kubelets, and believes other authorities of theirs.
    ///
    /// # Errors
    /// It cannot be used, and what was shown still is.
    pub fn show_to_kubelets(&self, files: &KubeletFiles) -> Result<(), String> {
        if let Some(kubelets) = &self.kubelets {
            kubelets.replace(&files.client.cert, &files.client.key, files.authority.as_deref())?;
            self.identity.shown_to_kubelets();
        }
        Ok(())
    }

    /// Tells programs beside this server whom it believes now.
    ///
    /// # Errors
    /// Why the store does not take it.
    pub async fn publish_authorities(&self) -> Result<(), String> {
        let own = self.authentication.borrow().clone();
        aggregation::publish(self.registry.clone(), own).await.map_err(|status| status.message)
    }
}

/// The two ways to end a server.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Requests may finish, and watches end at a limited rate.
    pub orderly: Shutdown,
    /// Every connection is cut.
    pub at_once: Shutdown,
}

impl Server {
    /// Puts a server together on `store`, and listens. To be called within a runtime.
    ///
    /// - `clock`: the store's.
    /// - `tasks`: what the server does beside answering; all of them end with it.
    ///
    /// # Errors
    /// [`Error::Serve`]: it cannot listen, or its certificate cannot be used.
    pub fn listen(
        prepared: &Prepared,
        store: impl Into<Store>,
        clock: Clock,
        tasks: Tasks,
    ) -> Result<Server, Error> {
        let (config, store) = (&prepared.config, store.into());
        if config.authentication.service_accounts.signing_endpoint.is_some()
            && prepared.token_signing.is_none()
        {
            return Err(Error::Serve("the external signer of tokens was not waited for".to_owned()));
        }
        let mut chain = Chain::new(&prepared.authorization, &clock)?;
        let audit = prepared.audit.as_ref().map(|files| files.begin(&clock)).transpose()?.map(Arc::new);
        let bound = Bound::listen(edge::config(prepared, &chain.authorization)).map_err(failed)?;
        let services = services(config, bound.address().port(), store.leak_grace());
        let webhook_metrics = Arc::<WebhookMetrics>::default();
        let identity = identity(store.history(), &services);
        let (own_door, kinds_elsewhere) = (Arc::<OwnDoor>::default(), KindsElsewhere::default());
        let webhooks = WebhookClient::new(clock.clone(), prepared.webhook_credentials.clone());
        let webhooks = webhooks.beside(own_server(own_door.clone()));
        let authorization = chain.reloading(identity.name());
        let tracer = prepared.tracing.as_ref().map(|to| trace(to, &identity, &clock, &tasks));
        if let Some(metrics) = store.encryption_metrics() {
            metrics.belong_to(identity.name());
        }
        let registry_config = forebay_registry::Config {
            storage_prefix: config.etcd_prefix.clone(),
            event_ttl: config.event_ttl,
            min_request_timeout: config.limits.min_request_timeout,
            identity: Some(identity),
            services,
            admission: config.admission.clone().with_elsewhere(kinds_elsewhere.clone()),
            privileged: config.privileged,
            webhooks: Arc::new(webhooks),
            webhook_metrics: webhook_metrics.clone(),
            authorizer: Arc::new(Authorizers::of(&chain.authorization)),
            rights: chain.followed_rights(),
            history: store.history(),
            frame_lead_bytes: forebay_transport::limits::SHARED_LEAD_BYTES,
            ..Default::default()
        };
        let registry =
            Registry::new(registry_config, store.backend(), clock.clone(), Random::system(), tasks.clone());
        let trusted: Trusted = Arc::new(Mutex::new(prepared.authority().to_owned()));
        let shown_to_others = aggregation::shown(prepared)?;
        let controllers = ControllerConfig {
            selection: config.controllers.clone(),
            root_ca: root_ca(trusted.clone(), store.history(), registry.clone()),
            authorizer: Arc::new(Authorizers::of(&chain.authorization)),
            // Nobody would believe what another one signs.
            signing: (config.administrator == Administrator::Made).then(|| Signing {
                authority: prepared.signing.clone(),
                duration: config.operating.signing_duration,
            }),
            elsewhere: None,
            objects_elsewhere: None,
        };
        Ok(Server {
            store,
            bound,
            registry,
            clock: clock.clone(),
            controllers,
            tasks,
            authentication: watch::Sender::new(aggregation::authentication(prepared)),
            aggregator: aggregation::config(prepared, shown_to_others.clone()),
            remote_headers: Arc::new(aggregation::remote_headers(prepared)),
            kubelets: aggregation::kubelets(prepared)?,
            trusted,
            webhook_metrics,
            shown_to_others,
            made_proxy_authority: prepared.front_proxy.made.clone(),
            remote: Remote::new(prepared, &clock)?,
            nodes: chain.followed_nodes(),
            authorization,
            tracer,
            audit,
            own_door,
            token_signer: prepared.token_signing.as_ref().map(TokenSigning::metrics),
            kinds_elsewhere,
        })
    }

    /// What replaces who it is and whom it knows.
    pub fn replacing(&self) -> Replacing {
        Replacing {
            identity: self.bound.identity().clone(),
            registry: self.registry.clone(),
            trusted: self.trusted.clone(),
            authentication: self.authentication.clone(),
            shown_to_others: self.shown_to_others.clone(),
            kubelets: self.kubelets.as_ref().map(|kubelets| kubelets.credentials.clone()),
            made_proxy_authority: self.made_proxy_authority.clone(),
        }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.bound.address()
    }

    /// Starts, says so by `ready`, serves until `stop` is raised, and takes the server apart.
    ///
    /// # Errors
    /// [`Error::Serve`]: the store cannot be served. What `ready` returned.
    pub async fn run(self, stop: &Stop, ready: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let Server {
            store,
            bound,
            registry,
            clock,
            controllers,
            tasks,
            authentication,
            aggregator,
            remote_headers,
            kubelets,
            trusted: _,
            webhook_metrics,
            shown_to_others: _,
            made_proxy_authority: _,
            remote,
            nodes,
            authorization,
            tracer,
            audit,
            own_door,
            token_signer,
            kinds_elsewhere,
        } = self;
        let noted = audit.clone();
        let served = async {
            tokio::select! {
                started = start(&registry, &authentication, &tasks) => started?,
                () = stop.orderly.raised() => return Ok(()),
                () = stop.at_once.raised() => return Ok(()),
            }
            if let Some(nodes) = nodes {
                let followed = tokio::select! {
                    followed = forebay_controllers::follow_node_rights(&registry, nodes, &tasks) => followed,
                    () = stop.orderly.raised() => return Ok(()),
                    () = stop.at_once.raised() => return Ok(()),
                };
                followed
                    .map_err(|status| Error::Serve(format!("nodes have no rights: {}", status.message)))?;
            }
            if let Some(authorization) = authorization {
                tasks.spawn("authorization configuration", authorization.follow());
            }
            ready()?;
            let aggregator = forebay_aggregator::start(aggregator, &registry, &tasks);
            kinds_elsewhere.are(aggregation::kinds(aggregator.extensions.clone()));
            let elsewhere = ContentElsewhere::new(aggregator.clone(), clock.clone());
            let objects = ObjectsOfOthers::new(aggregator.clone(), clock.clone(), Random::system());
            let controllers = ControllerConfig {
                elsewhere: Some(Arc::new(elsewhere)),
                objects_elsewhere: Some(Arc::new(objects)),
                ..controllers
            };
            // Nobody waits for them: what they do can be done at any time.
            forebay_controllers::start(&controllers, &registry, Random::system(), &tasks);
            let published = registry.clone();
            let publish = move |own| aggregation::publish(published.clone(), own);
            let kept = keep_published(registry.clone(), authentication.subscribe(), publish);
            tasks.spawn("published authentication", kept);
            let checks = checks(&store);
            let leaving = async {
                stop.orderly.raised().await;
                tokio::select! { () = registry.withdraw() => {}, () = clock.sleep(WITHDRAW_WAIT) => {} }
                std::future::pending::<()>().await
            };
            let flow_control = forebay_controllers::follow_flow_control(&registry, &tasks);
            let backing = Backing::new(Arc::new(registry.clone()), clock.clone(), Random::system());
            let neighbours = neighbours(&registry);
            let Aggregator { routes, extensions, availability, .. } = aggregator;
            let kubelets = Kubelets::new(registry.clone(), kubelets);
            let behind = Some(Arc::new(kubelets) as Arc<dyn Connects>);
            let aggregation = Aggregation { routes, extensions, availability, remote_headers, behind };
            let webhooks = webhook_metrics;
            let authentication = remote.start(&clock, &tasks);
            let encryption = store.encryption_metrics();
            let backing = Backing {
                flow_control,
                neighbours,
                webhooks,
                encryption,
                token_signer,
                aggregation,
                authentication,
                tracer,
                audit,
                own_door,
                ..backing
            };
            let running = tasks.clone();
            tokio::select! {
                () = leaving => {}
                () = bound.serve(backing, checks, running, stop.orderly.clone()) => {}
                () = stop.at_once.raised() => {}
            }
            Ok(())
        };
        let served = served.await;
        if !tasks.stop(TASKS_WAIT).await {
            tracing::warn!("some tasks did not end in time");
        }
        // Whoever was cut is noted, too.
        if let Some(audit) = noted {
            audit.finish(AUDIT_WAIT).await;
        }
        store.close();
        served
    }
}

/// This server, as it answers itself.
fn own_server(door: Arc<OwnDoor>) -> OwnServer {
    Arc::new(move |stream| Some(Box::pin(door.speak(stream)?)))
}

/// What tells of requests, as `to` says, until the server leaves.
fn trace(
    to: &TracingConfiguration,
    identity: &forebay_registry::Identity,
    clock: &Clock,
    tasks: &Tasks,
) -> Arc<Tracer> {
    let (tracer, ended) = Tracer::new(to, clock.clone(), Random::system());
    let service = ("apiserver".to_owned(), identity.name().to_owned());
    let config = ExportConfig { collector: to.collector.clone(), service };
    let export = forebay_span_export::run(config, tracer.clone(), ended, clock.clone(), tasks.clone());
    tasks.spawn_graceful("spans", export);
    tracer
}

/// The other servers of the store, where there may be any.
fn neighbours(registry: &Registry) -> Option<Neighbours> {
    let (own, says) = watch::channel(None);
    (!registry.is_alone()).then(|| Neighbours { heard: registry.follow_neighbours(says), own })
}

/// What Services are given, and where the one called `kubernetes` leads to.
fn services(config: &ServeConfig, port: u16, leak_grace: Duration) -> ServicesConfig {
    // Where nothing better is known, it leads those on this machine here.
    let address = config.serving.advertise_address.unwrap_or_else(|| config.local_address());
    let ranges = config.service_cluster_ip_ranges.iter();
    ServicesConfig {
        cluster_ip_ranges: ranges
            .filter_map(|range| AddressRange::new(range.network(), range.prefix()))
            .collect(),
        node_ports: config.service_node_ports,
        routing: config.service_routing,
        endpoint: Some((address, port)),
        leak_grace,
    }
}

/// What this server is called: by its host alone where nobody else can be on the store, else by where it is
/// reached as well.
fn identity(history: History, services: &ServicesConfig) -> forebay_registry::Identity {
    let hostname = Host::this().name.unwrap_or_else(|| "localhost".to_owned());
    let place = match history {
        History::Own => None,
        History::Shared { .. } => {
            services.endpoint.map(|(address, port)| SocketAddr::new(address, port).to_string())
        }
    };
    forebay_registry::Identity::new(&hostname, place.as_deref())
}

/// The authorities of serving certificates that are published: this server's, and beside it, where others
/// share the store, theirs.
fn root_ca(own: Trusted, history: History, registry: Registry) -> RootCa {
    let own = move || own.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match history {
        History::Own => Arc::new(move |_| own()),
        History::Shared { .. } => {
            Arc::new(move |published| trust::combined(published, &own(), registry.timestamp()))
        }
    }
}

/// Everything that has to be there before the first request is answered.
async fn start(
    registry: &Registry,
    authentication: &watch::Sender<PublishedAuthentication>,
    tasks: &Tasks,
) -> Result<(), Error> {
    let own = authentication.borrow().clone();
    let started = async {
        registry.start().await?;
        // Once it is there somebody keeps it, and tries again.
        unless_hindered(registry, aggregation::publish(registry.clone(), own).await)?;
        if !unless_hindered(registry, registry.publish_tokens_tracked().await)? {
            tasks.spawn("tokens tracked", track_tokens(registry.clone()));
        }
        Ok(())
    };
    let failed = |status: Status| Error::Serve(format!("the store cannot be served: {}", status.message));
    started.await.map_err(failed)
}

/// Whether it was published. What is told to programs beside this server is no reason to serve nobody: where
/// it cannot be read or written because somebody who has a key does not answer, it is published later.
fn unless_hindered(registry: &Registry, published: Result<(), Status>) -> Result<bool, Status> {
    match (published, registry.hindered()) {
        (Ok(()), _) => Ok(true),
        (Err(status), None) => Err(status),
        (Err(status), Some(why)) => {
            tracing::error!(why, error = status.message, "what others are to know is published later");
            Ok(false)
        }
    }
}

async fn track_tokens(registry: Registry) {
    while registry.publish_tokens_tracked().await.is_err() {
        registry.clock().sleep(PUBLISH_PAUSE).await;
    }
}

/// What the health endpoints ask of the store.
fn checks(store: &Store) -> Vec<Check> {
    let encryption = store.encryption().filter(|encryption| encryption.is_checked()).cloned();
    let store = store.clone();
    // Named as clients and dashboards know the check of the storage.
    let mut checks = vec![
        Check::new("etcd", Endpoints::All, move || store.failure().map_or(Ok(()), Err)),
        // Nobody is answered before it is done, and who cannot do it does not start.
        Check::new("poststarthook/rbac/bootstrap-roles", Endpoints::All, || Ok(())),
    ];
    if let Some(encryption) = encryption {
        // A server is not to be started anew because a plugin is not well.
        checks.push(Check::new("kms-providers", Endpoints::NotLive, move || encryption.check()));
    }
    checks
}

/// What went wrong, and why, as one line.
pub(crate) fn failed(error: impl std::error::Error) -> Error {
    Error::Serve(forebay_migrate::line(&error))
}
