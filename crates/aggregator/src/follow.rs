//! The task that follows APIServices, and looks at who is behind them.
//!
//! In: notices of APIServices; of services and endpoints, as long as somebody is behind an APIService. Out:
//! routes, extensions and conditions. Never: waits for one server before it looks at another, or for what one
//! says before it looks at it.
//!
//! Owner of what is known: this task.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_catalog::{Served, Target};
use forebay_documents::discovery::Extension;
use forebay_object::Object;
use forebay_proxy::{Locator, ProxyRoute, ServiceReference, Spoken, Upstream};
use forebay_registry::{Informer, Notice, Registry};
use forebay_rt::Clock;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::aggregator::{Aggregator, AggregatorConfig};
use crate::check;
use crate::condition::{Condition, Written};
use crate::documents;
use crate::known::{Question, Registrations, Task, retry};
use crate::limits::{LOCAL_ATTEMPTS_MAX, LOOKS_MAX, NOTICES_MAX, READS_MAX};
use crate::registered::{self, Registered};

const GROUP: &str = "apiregistration.k8s.io";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label of APIServices that a server keeps for versions of its own.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// What was found out of one.
struct Found {
    name: String,
    route: Arc<ProxyRoute>,
    is_available: bool,
    is_well: bool,
}

/// What one says it serves; nothing where that cannot be told.
struct Said {
    name: String,
    route: Arc<ProxyRoute>,
    extension: Option<Extension>,
}

struct Following {
    config: AggregatorConfig,
    spoken: Arc<Spoken>,
    reach: Arc<dyn Locator>,
    registry: Registry,
    aggregator: Aggregator,
    served: Arc<Served>,
    known: Registrations,
    // name -> uid of those that nobody else serves and that do not say so yet
    local: BTreeMap<String, String>,
}

/// Where services are, as this server has them.
struct OfRegistry {
    registry: Registry,
}

/// Runs until it is dropped.
pub async fn run(config: AggregatorConfig, registry: Registry, aggregator: Aggregator) {
    let followed = informer(&registry, (GROUP, "apiservices"));
    let (served, mut services) = match followed {
        Ok(followed) => followed,
        Err(status) => return tracing::error!(why = status.message, "no APIService is followed"),
    };
    let reach = Arc::new(OfRegistry { registry: registry.clone() });
    let spoken = Arc::new(config.spoken.clone());
    let (known, local) = (Registrations::default(), BTreeMap::new());
    let mut following = Following { config, spoken, reach, registry, aggregator, served, known, local };
    // Of services and of endpoints, while they matter to somebody.
    let mut behind: Vec<Informer> = Vec::new();
    let (mut looks, mut questions) = (FuturesUnordered::new(), FuturesUnordered::new());
    let mut written = FuturesUnordered::new();
    loop {
        following.take_in(&mut services);
        match (following.known.is_empty(), behind.is_empty()) {
            (false, true) => behind = following.behind(),
            (true, false) => behind.clear(),
            _ => following.look_behind(&mut behind),
        }
        while looks.len() < LOOKS_MAX {
            let now = following.now();
            let Some(task) = following.known.next(now) else { break };
            looks.push(following.look(task));
        }
        while questions.len() < READS_MAX {
            let now = following.now();
            let Some(question) = following.known.next_question(now) else { break };
            questions.push(ask(question, following.registry.clock().clone()));
        }
        while written.len() < LOOKS_MAX {
            let Some((name, uid)) = following.local.pop_first() else { break };
            written.push(say_local(following.registry.clone(), following.served.clone(), name, uid));
        }
        let look = following.known.next_due().filter(|_| looks.len() < LOOKS_MAX);
        let question = following.known.next_question_due().filter(|_| questions.len() < READS_MAX);
        let due = look.into_iter().chain(question).min();
        let clock = following.registry.clock().clone();
        let alarm = async {
            match due {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(found) = looks.next() => following.found(found),
            Some(said) = questions.next() => following.said(said),
            Some(()) = written.next() => {}
            () = services.ready() => {}
            () = any_ready(&mut behind) => {}
            () = alarm => {}
        }
    }
}

/// Waits until one of them may have a notice; for ever where there is none. Cancel-safe.
async fn any_ready(informers: &mut [Informer]) {
    match informers {
        [services, slices] => tokio::select! {
            () = services.ready() => {}
            () = slices.ready() => {}
        },
        _ => std::future::pending().await,
    }
}

fn informer(registry: &Registry, (group, resource): (&str, &str)) -> Result<(Arc<Served>, Informer), Status> {
    let served = registry.catalog().resource(group, "v1", resource).cloned();
    let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
    let target = Target::of_server(served.clone(), None, None);
    let informer = registry.informer(&target, &ListOptions::default())?;
    Ok((served, informer))
}

/// Looks at one, and says in its condition what was found out.
async fn look(registry: Registry, served: Arc<Served>, task: Task, aggregator: Aggregator) -> Found {
    let Task { name, uid, registered, route } = task;
    let condition = check::look(&registry, &registered, &route).await;
    let is_available = condition.is_available();
    // Whoever reads that it is there is not to be told otherwise.
    if is_available {
        route.set_available(true);
    }
    let written = condition.write(&registry, &served, &name, &uid).await;
    let is_written = match &written {
        Ok(Written::Other { was_available }) => {
            let (reason, message) = (&*condition.reason, &*condition.message);
            tracing::info!(name, is_available, reason, message, "an APIService has changed");
            if *was_available && !is_available {
                aggregator.availability.lost(&name, reason);
            }
            true
        }
        Ok(Written::Same) => true,
        Ok(Written::Gone) => false,
        Err(status) => {
            tracing::debug!(name, why = status.message, "its condition is not written yet");
            false
        }
    };
    if !matches!(written, Ok(Written::Gone)) {
        route.set_available(is_available);
        aggregator.availability.set(&name, is_available);
    }
    Found { name, route, is_available, is_well: is_available && is_written }
}

/// Says of one that nobody else serves it. Where that cannot be written for long, it is said once the
/// APIService is told of again.
async fn say_local(registry: Registry, served: Arc<Served>, name: String, uid: String) {
    for failures in 1..=LOCAL_ATTEMPTS_MAX {
        match Condition::local().write(&registry, &served, &name, &uid).await {
            Ok(_) => return,
            Err(status) => tracing::debug!(name, why = status.message, "its condition is not written yet"),
        }
        registry.clock().sleep(retry(failures)).await;
    }
}

/// Asks one what it serves.
async fn ask(question: Question, clock: Clock) -> Said {
    let Question { name, path, route, told } = question;
    let read = documents::read(told, &path, &route, &clock).await;
    let extension =
        read.inspect_err(|why| tracing::warn!(name, why, "what another server serves cannot be told")).ok();
    Said { name, route, extension }
}

impl Following {
    fn now(&self) -> forebay_rt::Instant {
        self.registry.clock().now()
    }

    fn look(&self, task: Task) -> impl Future<Output = Found> + Send + use<> {
        look(self.registry.clone(), self.served.clone(), task, self.aggregator.clone())
    }

    /// Takes in what there is to be told of APIServices.
    fn take_in(&mut self, services: &mut Informer) {
        let (mut is_other, mut is_synced) = (false, false);
        for _ in 0..NOTICES_MAX {
            let Some(notice) = services.try_next() else { break };
            is_other |= match notice {
                Notice::Put(object) => self.put(&object),
                Notice::Deleted(object) => self.gone(object.name()),
                Notice::Synced => {
                    is_synced = true;
                    false
                }
                Notice::Ended => false,
            };
        }
        if is_other {
            self.publish();
        }
        if is_synced {
            self.aggregator.is_told.store(true, Ordering::Release);
            self.aggregator.changes.tell();
        }
    }

    fn put(&mut self, object: &Object) -> bool {
        // There may be as many as CRDs, which this server serves itself whatever they say.
        if object.label(AUTOMANAGED) == Some("true") {
            return self.gone(object.name());
        }
        let value = match self.served.to_value(object) {
            Ok(value) => value,
            Err(status) => {
                tracing::warn!(name = object.name(), why = status.message, "it is not followed");
                return self.gone(object.name());
            }
        };
        let uid = value["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let name = object.name().to_owned();
        let Some(registered) = Registered::read(&value) else {
            // One that was new said so from the beginning; this one was another server's.
            if Condition::of(&value) != Some(Condition::local()) {
                self.local.insert(name, uid);
            }
            return self.gone(object.name());
        };
        let is_available = registered::is_available(&value);
        if let Some(entry) = self.known.same(&name, &uid, &registered) {
            entry.route.set_available(is_available);
            return false;
        }
        let route = Arc::new(self.route(&registered));
        route.set_available(is_available);
        self.aggregator.availability.set(&name, is_available);
        self.known.put(name, uid, registered, route, self.now());
        true
    }

    fn gone(&mut self, name: &str) -> bool {
        let was_known = self.known.remove(name);
        if was_known {
            self.aggregator.availability.forget(name);
        }
        was_known
    }

    fn route(&self, registered: &Registered) -> ProxyRoute {
        let own = self.config.identity.as_ref();
        let clock = self.registry.clock().clone();
        let backend = Upstream::new(&registered.server_name(), &registered.trust, own, clock);
        let names = (&*registered.group, &*registered.version);
        ProxyRoute::new(names, registered.service.clone(), backend, self.reach.clone(), self.spoken.clone())
    }

    fn behind(&self) -> Vec<Informer> {
        let all = [("", "services"), ("discovery.k8s.io", "endpointslices")];
        let all: Result<Vec<_>, Status> =
            all.into_iter().map(|of| informer(&self.registry, of).map(|(_, informer)| informer)).collect();
        all.unwrap_or_else(|status| {
            tracing::error!(why = status.message, "services are not followed");
            Vec::new()
        })
    }

    /// Takes in what there is to be told of services and their endpoints.
    fn look_behind(&mut self, behind: &mut [Informer]) {
        let now = self.now();
        for (at, informer) in behind.iter_mut().enumerate() {
            for _ in 0..NOTICES_MAX {
                let Some(notice) = informer.try_next() else { break };
                let (Notice::Put(object) | Notice::Deleted(object)) = notice else { continue };
                let name = if at == 0 { Some(object.name()) } else { object.label(SERVICE_NAME) };
                if let Some(name) = name {
                    self.known.service_changed(object.namespace(), name, now);
                }
            }
        }
    }

    fn found(&mut self, found: Found) {
        let Found { name, route, is_available, is_well } = found;
        if self.known.looked((&name, &route), (is_available, is_well), self.now()) {
            self.publish();
        }
    }

    fn said(&mut self, said: Said) {
        let Said { name, route, extension } = said;
        if self.known.answered((&name, &route), extension, self.now()) {
            self.publish();
        }
    }

    fn publish(&self) {
        let (routes, extensions) = self.known.told();
        self.aggregator.routes.replace(routes);
        self.aggregator.extensions.replace(extensions);
        // Before all of them are told of for the first time, nobody is to take them for all there are.
        if self.aggregator.is_told() {
            self.aggregator.changes.tell();
        }
    }
}

impl Locator for OfRegistry {
    fn address(&self, service: &ServiceReference) -> Result<Box<str>, String> {
        let ServiceReference { namespace, name, port } = service;
        self.registry.service_address(namespace, name, *port)
    }

    fn others(&self, service: &ServiceReference) -> Vec<Box<str>> {
        self.registry.service_endpoints(&service.namespace, &service.name, service.port)
    }
}
