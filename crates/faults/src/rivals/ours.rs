//! Ours: `forebay-informer` over connections of `forebay-connector`, as its documentation has it.
//!
//! In: a [`Setting`]. Out: a [`Subject`]. Owner of its threads. It has no timeout of a whole request: a watch
//! that falls silent is found by its bookmarks and by pings.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use forebay_informer::{Encoding, Factory, Handle, Handling, Informer, Notice, Options, Watched};
use k8s_openapi::api::core::v1::ConfigMap;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Runtime;

use crate::Error;
use crate::subject::{Digest, InformerState, Setting, Subject};

const NAME: &str = "forebay-informer";

struct Ours {
    informers: Vec<One>,
    // The informers' tasks end with it.
    _runtime: Runtime,
}

struct One {
    namespace: String,
    informer: Informer<ConfigMap>,
    told: Arc<Told>,
    _handling: Handling,
}

#[derive(Debug, Default)]
struct Told {
    seen: AtomicU64,
    last_event_ms: AtomicU64,
}

pub fn start_json(setting: &Setting) -> Result<Box<dyn Subject>, Error> {
    start(setting, Encoding::Json)
}

pub fn start_protobuf(setting: &Setting) -> Result<Box<dyn Subject>, Error> {
    start(setting, Encoding::Protobuf)
}

fn start(setting: &Setting, encoding: Encoding) -> Result<Box<dyn Subject>, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(NAME)
        .enable_all()
        .build()
        .map_err(Error::Start)?;
    let entered = runtime.enter();
    let failed = |why| Error::Subject { subject: NAME, why };
    let factory = factory(setting, encoding).map_err(failed)?;
    let informers: Result<Vec<_>, _> =
        setting.namespaces.iter().map(|namespace| one(&factory, namespace)).collect();
    let informers = informers.map_err(failed)?;
    drop(entered);
    Ok(Box::new(Ours { informers, _runtime: runtime }))
}

fn factory(setting: &Setting, encoding: Encoding) -> Result<Factory, String> {
    let host = Ipv4Addr::LOCALHOST;
    let url = format!("https://{host}:{}", setting.port).parse().map_err(|e| format!("{e}"))?;
    let mut config = kube::Config::new(url);
    let roots = CertificateDer::pem_slice_iter(setting.authority.as_bytes());
    let roots: Result<Vec<_>, _> = roots.map(|root| root.map(|root| root.to_vec())).collect();
    config.root_cert = Some(roots.map_err(|e| e.to_string())?);
    let options = Options { user_agent: NAME.into(), encoding, ..Options::default() };
    let connected = forebay_connector::connect(config, forebay_connector::PoolOptions::default());
    Ok(Factory::new(connected.map_err(|e| e.to_string())?, options))
}

fn one(factory: &Factory, namespace: &str) -> Result<One, String> {
    let watched = Watched::<ConfigMap>::all().namespace(namespace);
    let informer = factory.informer(&watched).map_err(|e| e.to_string())?;
    let told = Arc::<Told>::default();
    let tells = told.clone();
    let handling = informer.handle(namespace, move |notice| {
        tells.take(&notice);
        std::future::ready(())
    });
    Ok(One { namespace: namespace.to_owned(), informer, told, _handling: handling })
}

impl Told {
    fn take(&self, notice: &Notice<ConfigMap>) {
        let saw = |map: &Handle<ConfigMap>| {
            self.seen.fetch_max(map.revision().get(), Ordering::Relaxed);
        };
        match notice {
            Notice::Added(map) | Notice::Updated { new: map, .. } | Notice::Deleted(map) => saw(map),
            Notice::Synced
            | Notice::Relisted { .. }
            | Notice::LetGo { .. }
            | Notice::Resync(_)
            | Notice::Ended => {}
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.last_event_ms.store(now.unwrap_or(Duration::ZERO).as_millis() as u64, Ordering::Relaxed);
    }
}

impl Subject for Ours {
    fn look(&mut self) -> Result<Vec<InformerState>, Error> {
        Ok(self.informers.iter().map(One::look).collect())
    }
}

impl One {
    fn look(&self) -> InformerState {
        // What was seen comes first: a store that is newer does no harm.
        let seen = self.told.seen.load(Ordering::Relaxed);
        let last_event_ms = self.told.last_event_ms.load(Ordering::Relaxed);
        let namespace = self.namespace.clone();
        let Ok(view) = self.informer.view() else {
            return InformerState { namespace, seen, last_event_ms, ..InformerState::default() };
        };
        let mut digest = Digest::default();
        for map in view.iter() {
            digest.add(map.name(), &map.revision().to_string());
        }
        InformerState {
            namespace,
            synced: true,
            objects: view.len() as u64,
            digest: digest.0,
            seen,
            last_event_ms,
        }
    }
}
