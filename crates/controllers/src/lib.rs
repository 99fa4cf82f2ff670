//! The controllers that a lone API server needs, each an informer on this very server.
//!
//! In: a registry, and which controllers are wanted. Out: tasks that delete, create and patch through the registry's
//! verbs until shutdown. What they keep can be had again from the store, so that a restart loses nothing. Never: reach
//! into a cache, speak HTTP, keep a copy of every object.

mod each;
mod gc;
mod informers;
pub mod limits;
mod meta;
mod namespaces;
mod objects;
mod queue;
mod root_ca;
mod run;
mod selection;
mod service_accounts;

use std::sync::Arc;

use forebay_registry::Registry;
use forebay_rt::{Random, Tasks};

pub use selection::{Controller, Selection, UnknownController};

/// From the authorities that are published to those that are to be, in PEM. What it returns for what it returned is the same, or
/// servers that share a store would go on writing for ever.
pub type RootCa = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What the controllers are started with.
#[derive(Clone)]
pub struct Config {
    pub selection: Selection,
    /// The authorities of the serving certificate, as `kube-root-ca.crt` shows them.
    pub root_ca: RootCa,
}

/// Starts the controllers that are wanted. Returns at once; they end with `tasks`.
pub fn start(config: &Config, registry: &Registry, random: Random, tasks: &Tasks) {
    let random = Arc::new(random);
    for controller in Controller::ALL {
        if !config.selection.has(controller) {
            continue;
        }
        let (registry, random) = (registry.clone(), random.clone());
        match controller {
            Controller::Namespace => {
                let namespaces = namespaces::Namespaces::new(registry.clone());
                tasks.spawn(controller.name(), run::run(namespaces, registry, random));
            }
            Controller::GarbageCollector => {
                tasks.spawn(controller.name(), gc::run(registry, random));
            }
            Controller::ServiceAccount => {
                let accounts = service_accounts::ServiceAccounts::new(registry.clone());
                tasks.spawn(controller.name(), run::run(accounts, registry, random));
            }
            Controller::RootCaPublisher => {
                let publisher = root_ca::Publisher::new(registry.clone(), config.root_ca.clone());
                tasks.spawn(controller.name(), run::run(publisher, registry, random));
            }
        }
    }
}
