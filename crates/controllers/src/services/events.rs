//! What owners of services are told: events of endpointslice-controller.
//!
//! In: a service, a sentence. Out: an Event. Its name is made of what it says: of servers that share a store
//! one tells it, and as long as that is kept it is not told again. Never: an error of who tells; that is for
//! the log.
//!
//! Source: client-go v0.36.3 `tools/record`.

use std::hash::{DefaultHasher, Hash, Hasher};

use forebay_apimachinery::Reason;
use serde_json::json;

use super::view::Service;
use crate::acting::ActingRegistry;
use crate::objects::{built_in, collection, create};

const COMPONENT: &str = "endpoint-slice-controller";

/// What is told.
pub struct ServiceEvent {
    kind: &'static str,
    reason: &'static str,
    pub message: String,
}

impl ServiceEvent {
    pub fn normal(reason: &'static str, message: String) -> ServiceEvent {
        ServiceEvent { kind: "Normal", reason, message }
    }

    pub fn warning(reason: &'static str, message: String) -> ServiceEvent {
        ServiceEvent { kind: "Warning", reason, message }
    }
}

/// Tells it, unless it is told already.
pub async fn say(
    registry: &ActingRegistry,
    service: &Service,
    ServiceEvent { kind, reason, message }: ServiceEvent,
) {
    let meta = &service.metadata;
    let mut hasher = DefaultHasher::new();
    (&meta.uid, reason, &message).hash(&mut hasher);
    let now = registry.now_rfc3339();
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{}.{:016x}", meta.name, hasher.finish()), "namespace": meta.namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Service", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid,
        },
        "type": kind, "reason": reason, "message": message, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": COMPONENT}, "reportingComponent": COMPONENT,
    });
    let told = match built_in(registry, "", "v1", "events") {
        Ok(events) => create(registry, &collection(&events, Some(&meta.namespace)), event).await,
        Err(status) => Err(status),
    };
    match told {
        Err(status) if status.reason != Reason::AlreadyExists => {
            tracing::debug!(service = meta.name, reason, why = status.message, "an event is not told");
        }
        _ => {}
    }
}
