//! The FlowSchemas and PriorityLevelConfigurations of the store decide, as they are now: told to whoever goes
//! by them.
//!
//! In: both collections, as informers of this server tell of them. Out: what is configured; the condition
//! `Dangling` in the status of schemas, where it is not what it should be. Never: reads an object, judges
//! one; `flow` does.

use std::sync::Arc;

use forebay_apimachinery::options::{ListOptions, PatchOptions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::{Served, Target};
use forebay_flow::{Collections, Condition, Configuration, ObjectSet};
use forebay_object::Object;
use forebay_registry::{Informer, Notice, Registry};
use forebay_rt::Tasks;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::limits::FLOW_STATUS_RETRY;
use crate::objects::{collection, named};

const DANGLING: &str = "Dangling";
/// As kube-apiserver has it.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Where a collection is told of.
struct Source {
    served: Arc<Served>,
    informer: Informer,
}

/// What is configured, from now on and for as long as somebody listens.
pub fn follow_flow_control(registry: &Registry, tasks: &Tasks) -> watch::Receiver<Configuration> {
    let (told, configuration) = watch::channel(Configuration::built_in());
    tasks.spawn("flow control's objects", follow(registry.clone(), told));
    configuration
}

async fn follow(registry: Registry, told: watch::Sender<Configuration>) {
    let (mut schemas, mut levels) =
        match (Source::of(&registry, "flowschemas"), Source::of(&registry, "prioritylevelconfigurations")) {
            (Ok(schemas), Ok(levels)) => (schemas, levels),
            (Err(status), _) | (_, Err(status)) => {
                return tracing::error!(
                    why = status.message,
                    "flow control goes by the built-in objects alone"
                );
            }
        };
    let mut collections = Collections::default();
    loop {
        schemas.tell(&mut collections.schemas);
        levels.tell(&mut collections.levels);
        let mut all_written = true;
        if let Some(configuration) = collections.configuration() {
            let conditions: Vec<Condition> = configuration.conditions().collect();
            told.send_replace(configuration);
            for condition in conditions {
                all_written &= schemas.write(&registry, &collections, &condition).await;
            }
        }
        let retry = async {
            match all_written {
                true => std::future::pending().await,
                false => registry.clock().sleep(FLOW_STATUS_RETRY).await,
            }
        };
        tokio::select! {
            () = schemas.informer.ready() => {}
            () = levels.informer.ready() => {}
            () = retry => {}
            () = told.closed() => return,
        }
    }
}

impl Source {
    fn of(registry: &Registry, resource: &str) -> Result<Source, Status> {
        let served = registry.catalog().resource(GROUP, "v1", resource).cloned();
        let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
        let informer = registry.informer(&collection(&served, None), &ListOptions::default())?;
        Ok(Source { served, informer })
    }

    /// Tells of what there is to tell.
    fn tell<T: Clone>(&mut self, collection: &mut ObjectSet<T>) {
        while let Some(notice) = self.informer.try_next() {
            match notice {
                Notice::Put(object) => self.put(&object, collection),
                Notice::Deleted(object) => collection.remove(object.name()),
                Notice::Synced => collection.synced(),
                Notice::Ended => {}
            }
        }
    }

    /// One that cannot be used counts as one that is not there.
    fn put<T: Clone>(&self, object: &Object, collection: &mut ObjectSet<T>) {
        let name = object.name();
        let put = match self.served.to_value(object) {
            Ok(value) => collection.put(name, value).map_err(|error| error.to_string()),
            Err(status) => {
                collection.remove(name);
                Err(status.message)
            }
        };
        if let Err(why) = put {
            tracing::warn!(name, why, "an object of flow control is not used");
        }
    }

    /// Writes a condition to its schema unless it is there. Whether it is, or somebody else is at it, whose
    /// write will be told of.
    async fn write(&self, registry: &Registry, collections: &Collections, condition: &Condition) -> bool {
        let now = registry.now_rfc3339();
        let Some(object) = collections.with_condition(condition, &now) else { return true };
        let subresource = Some("status".to_string());
        let target = Target { subresource, ..named(&self.served, "", &condition.schema) };
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let own: Vec<&Value> = conditions.filter(|condition| condition["type"] == DANGLING).collect();
        let config = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "metadata": { "name": object["metadata"]["name"] }, "status": { "conditions": own },
        });
        let options = PatchOptions { field_manager: MANAGER.to_owned(), force: true, ..Default::default() };
        match registry.apply(&target, &config, &options).await {
            Ok(_) => true,
            Err(status) if matches!(status.reason, Reason::Conflict | Reason::NotFound) => true,
            Err(status) => {
                tracing::warn!(schema = &*condition.schema, why = status.message, "a status is not written");
                false
            }
        }
    }
}
