//! The controllers that a lone API server needs, each an informer on this very server.
//!
//! In: a registry, and which controllers are wanted. Out: tasks that delete, create and patch through the
//! registry's verbs until shutdown, each as its service account. What they keep can be had again from the
//! store, so that a restart loses nothing. Never: reach into a cache, speak HTTP, keep a copy of every
//! object.

mod acting;
mod bootstrap_tokens;
mod certificates;
mod claim_protection;
mod cluster_roles;
mod each;
mod finished_jobs;
mod flow_control;
mod gc;
mod informers;
pub mod limits;
mod meta;
mod namespaces;
mod node_rights;
mod objects;
mod policy_status;
mod protection;
mod queue;
mod quotas;
mod root_ca;
mod run;
mod selection;
mod service_accounts;
mod services;

use std::sync::Arc;

use forebay_api::{Authorizer, Elsewhere, ObjectsElsewhere};
use forebay_registry::Registry;
use forebay_rt::{Random, Tasks};

use acting::ActingRegistry;
pub use certificates::Signing;
pub use flow_control::follow_flow_control;
pub use node_rights::follow_node_rights;
pub use selection::{Controller, Selection, UnknownController};

/// From the authorities that are published to those that are to be, in PEM. What it returns for what it
/// returned is the same, or servers that share a store would go on writing for ever.
pub type RootCa = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What the controllers are started with.
#[derive(Clone)]
pub struct ControllerConfig {
    pub selection: Selection,
    /// The authorities of the serving certificate, as `kube-root-ca.crt` shows them.
    pub root_ca: RootCa,
    /// Who is asked what a controller's service account may.
    pub authorizer: Arc<dyn Authorizer>,
    /// Who signs certificates that were approved; nobody does without.
    pub signing: Option<Signing>,
    /// What other servers keep in namespaces.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
    /// The objects that they keep, one by one.
    pub objects_elsewhere: Option<Arc<dyn ObjectsElsewhere>>,
}

/// Starts the controllers that are wanted. Returns at once; they end with `tasks`.
pub fn start(config: &ControllerConfig, registry: &Registry, random: Random, tasks: &Tasks) {
    let random = Arc::new(random);
    for controller in Controller::ALL {
        if !config.selection.has(controller) {
            continue;
        }
        let random = random.clone();
        let registry = ActingRegistry::new(registry.clone(), controller.account(), config.authorizer.clone());
        match controller {
            Controller::Namespace => {
                let elsewhere = config.elsewhere.clone();
                let namespaces = namespaces::Namespaces::new(registry.clone(), elsewhere);
                tasks.spawn(controller.name(), run::run(namespaces, registry, random));
            }
            Controller::GarbageCollector => {
                let objects = config.objects_elsewhere.clone();
                tasks.spawn(controller.name(), gc::run(registry, objects, random));
            }
            Controller::ServiceAccount => {
                let accounts = service_accounts::ServiceAccountsController::new(registry.clone());
                tasks.spawn(controller.name(), run::run(accounts, registry, random));
            }
            Controller::RootCaPublisher => {
                let publisher = root_ca::Publisher::new(registry.clone(), config.root_ca.clone());
                tasks.spawn(controller.name(), run::run(publisher, registry, random));
            }
            Controller::ClaimProtection => {
                let claims = claim_protection::ClaimProtection::new(registry.clone());
                tasks.spawn(controller.name(), run::run(claims, registry, random));
            }
            Controller::VolumeProtection => {
                let volumes = protection::VolumeProtection(registry.clone());
                tasks.spawn(controller.name(), run::run(volumes, registry, random));
            }
            Controller::ClassProtection => {
                let classes = protection::ClassProtection(registry.clone());
                tasks.spawn(controller.name(), run::run(classes, registry, random));
            }
            Controller::ResourceQuota => {
                tasks.spawn(controller.name(), quotas::run(registry, random));
            }
            Controller::PolicyStatus => {
                let checker = policy_status::PolicyStatus::new(registry.clone());
                tasks.spawn(controller.name(), run::run(checker, registry, random));
            }
            Controller::RoleAggregation => {
                let roles = cluster_roles::RoleAggregation(registry.clone());
                tasks.spawn(controller.name(), run::run(roles, registry, random));
            }
            Controller::FinishedJobs => {
                let jobs = finished_jobs::FinishedJobs(registry.clone());
                tasks.spawn(controller.name(), run::run(jobs, registry, random));
            }
            Controller::Endpoints => {
                let endpoints = services::EndpointsController::new(registry.clone());
                tasks.spawn(controller.name(), run::run(endpoints, registry, random));
            }
            Controller::EndpointSlice => {
                let slices = services::SliceController::new(registry.clone());
                tasks.spawn(controller.name(), run::run(slices, registry, random));
            }
            Controller::EndpointSliceMirroring => {
                let mirror = services::MirrorController::new(registry.clone());
                tasks.spawn(controller.name(), run::run(mirror, registry, random));
            }
            Controller::TokenSigner => {
                let signer = bootstrap_tokens::TokenSigner(registry.clone());
                tasks.spawn(controller.name(), run::run(signer, registry, random));
            }
            Controller::TokenCleaner => {
                let cleaner = bootstrap_tokens::TokenCleaner(registry.clone());
                tasks.spawn(controller.name(), run::run(cleaner, registry, random));
            }
            Controller::CertificateSigning => {
                let Some(signing) = config.signing.clone() else { continue };
                let signer = certificates::CertificateSigner(registry.clone(), signing);
                tasks.spawn(controller.name(), run::run(signer, registry, random));
            }
            Controller::CertificateApproving => {
                let approver = certificates::CertificateApprover(registry.clone());
                tasks.spawn(controller.name(), run::run(approver, registry, random));
            }
            Controller::CertificateCleaner => {
                let cleaner = certificates::CertificateCleaner(registry.clone());
                tasks.spawn(controller.name(), run::run(cleaner, registry, random));
            }
        }
    }
}
