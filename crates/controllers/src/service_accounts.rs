//! Sees to it that each namespace has the ServiceAccount `default`.
//!
//! In: namespaces, and the accounts of that name. Out: creates. Keeps nothing.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/serviceaccount`.

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::selector::FieldSelector;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use serde_json::json;

use crate::acting::ActingRegistry;
use crate::objects::{built_in, collection, create, find, named};
use crate::queue::{Queue, Verdict};
use crate::run::Named;

const NAME: &str = "default";

/// The controller.
pub struct ServiceAccountsController {
    registry: ActingRegistry,
}

impl ServiceAccountsController {
    pub fn new(registry: ActingRegistry) -> ServiceAccountsController {
        ServiceAccountsController { registry }
    }
}

impl Named for ServiceAccountsController {
    const NAME: &'static str = crate::Controller::ServiceAccount.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        in_each_namespace(&self.registry, "serviceaccounts", NAME)
    }

    fn observe(&self, source: usize, notice: &Notice, _now: Instant, queue: &mut Queue<String>) {
        match (source, notice) {
            (0, Notice::Put(namespace)) => queue.add(namespace.name().to_string()),
            (1, Notice::Deleted(account)) => queue.add(account.namespace().to_string()),
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.registry.clone();
        async move {
            match sync(&registry, &name).await {
                Ok(()) => Verdict::Done,
                Err(status) if is_about_the_namespace(&status) => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

async fn sync(registry: &ActingRegistry, namespace: &str) -> Result<(), Status> {
    let accounts = built_in(registry, "", "v1", "serviceaccounts")?;
    if find(registry, &named(&accounts, namespace, NAME)).await?.is_some() {
        return Ok(());
    }
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": NAME } });
    create(registry, &collection(&accounts, Some(namespace)), account).await
}

/// Informers on the namespaces, and on the objects called `name` of a resource of them.
pub fn in_each_namespace(
    registry: &ActingRegistry,
    resource: &str,
    name: &str,
) -> Result<Vec<Informer>, Status> {
    let namespaces = built_in(registry, "", "v1", "namespaces")?;
    let objects = built_in(registry, "", "v1", resource)?;
    let field_selector =
        FieldSelector::parse(&format!("metadata.name={name}")).map_err(Status::bad_request)?;
    let options = ListOptions { field_selector, ..ListOptions::default() };
    Ok(vec![
        registry.informer(&collection(&namespaces, None), &ListOptions::default())?,
        registry.informer(&collection(&objects, None), &options)?,
    ])
}

/// Whether a create was refused because its namespace is gone or going: there is nothing left to do.
pub fn is_about_the_namespace(status: &Status) -> bool {
    use forebay_apimachinery::{CauseReason, Reason};
    let terminating = |cause: &forebay_apimachinery::Cause| cause.reason == CauseReason::NamespaceTerminating;
    status.reason == Reason::NotFound || status.causes.iter().any(terminating)
}
