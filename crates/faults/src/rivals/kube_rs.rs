//! kube-rs: `runtime::watcher` with its default backoff into a `reflector` store, as its documentation has
//! it.
//!
//! In: a [`Setting`]. Out: a [`Subject`]. One client for all informers, as the client builder makes it but
//! for the timeout where a row is about one. It dials 127.0.0.1: its default client has no way to say how a
//! name resolves. Owner of its threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watched};
use kube::{Api, Client, Resource, ResourceExt};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Runtime;

use crate::Error;
use crate::subject::{Digest, InformerState, Setting, Subject};

struct KubeRs {
    informers: Vec<Informer>,
    // The informers' tasks end with it.
    _runtime: Runtime,
}

struct Informer {
    namespace: String,
    store: Store<ConfigMap>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    synced: AtomicBool,
    seen: AtomicU64,
    last_event_ms: AtomicU64,
}

/// As it is by default: a LIST in pages, then a watch.
pub fn start_paged(setting: &Setting) -> Result<Box<dyn Subject>, Error> {
    start("kube-rs", setting, watcher::Config::default())
}

/// The state as a watch.
pub fn start_streaming(setting: &Setting) -> Result<Box<dyn Subject>, Error> {
    start("kube-rs-streaming", setting, watcher::Config::default().streaming_lists())
}

fn start(name: &'static str, setting: &Setting, config: watcher::Config) -> Result<Box<dyn Subject>, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(name)
        .enable_all()
        .build()
        .map_err(Error::Start)?;
    let entered = runtime.enter();
    let client = client(name, setting).map_err(|why| Error::Subject { subject: name, why })?;
    let informers =
        setting.namespaces.iter().map(|namespace| informer(&client, namespace, &config)).collect();
    drop(entered);
    Ok(Box::new(KubeRs { informers, _runtime: runtime }))
}

fn client(name: &'static str, setting: &Setting) -> Result<Client, String> {
    let url = format!("https://127.0.0.1:{}", setting.port).parse().map_err(|e| format!("{e}"))?;
    let mut config = kube::Config::new(url);
    let roots = CertificateDer::pem_slice_iter(setting.authority.as_bytes());
    let roots: Result<Vec<_>, _> = roots.map(|root| root.map(|root| root.to_vec())).collect();
    config.root_cert = Some(roots.map_err(|e| e.to_string())?);
    config.headers.push((hyper::header::USER_AGENT, hyper::header::HeaderValue::from_static(name)));
    if setting.timeout.is_some() {
        config.read_timeout = setting.timeout;
    }
    Client::try_from(config).map_err(|e| e.to_string())
}

fn informer(client: &Client, namespace: &str, config: &watcher::Config) -> Informer {
    let (store, writer) = reflector::store();
    let progress = Arc::new(Progress::default());
    let events = watched(Api::<ConfigMap>::namespaced(client.clone(), namespace), config.clone());
    let told = progress.clone();
    let events = reflector::reflector(writer, events).default_backoff();
    tokio::spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            // An error is followed by another try: the stream has no end.
            if let Ok(event) = event {
                told.take(&event);
            }
        }
    });
    Informer { namespace: namespace.to_owned(), store, progress }
}

impl Progress {
    fn take(&self, event: &Event<ConfigMap>) {
        match event {
            Event::Apply(map) | Event::Delete(map) | Event::InitApply(map) => {
                let revision = map.meta().resource_version.as_deref().and_then(|it| it.parse().ok());
                self.seen.fetch_max(revision.unwrap_or(0), Ordering::Relaxed);
            }
            Event::Init => {}
            Event::InitDone => self.synced.store(true, Ordering::Relaxed),
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.last_event_ms.store(now.as_millis() as u64, Ordering::Relaxed);
    }
}

impl Subject for KubeRs {
    fn look(&mut self) -> Result<Vec<InformerState>, Error> {
        Ok(self.informers.iter().map(Informer::look).collect())
    }
}

impl Informer {
    fn look(&self) -> InformerState {
        // What was seen comes first: a store that is newer does no harm.
        let seen = self.progress.seen.load(Ordering::Relaxed);
        let maps = self.store.state();
        let mut digest = Digest::default();
        for map in &maps {
            digest.add(&map.name_any(), map.meta().resource_version.as_deref().unwrap_or_default());
        }
        InformerState {
            namespace: self.namespace.clone(),
            synced: self.progress.synced.load(Ordering::Relaxed),
            objects: maps.len() as u64,
            digest: digest.0,
            seen,
            last_event_ms: self.progress.last_event_ms.load(Ordering::Relaxed),
        }
    }
}
