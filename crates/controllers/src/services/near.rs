//! Services that leave it to the server which zone each endpoint is for: what of nodes that goes by, and what
//! their owners are told.
//!
//! In: services that ask for it, nodes that change, what was planned. Out: the shares of zones; services to
//! be looked at again; events. Kept of a service is whether it has hints, and what was last said of it. While
//! no service asks, nothing of a node is looked at. Never: the same said twice in a row.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::Status;
use forebay_object::Object;
use forebay_registry::Notice;

use super::events::{ServiceEvent, say};
use super::topology::{NodeShare, ZoneShares};
use super::view::{AddressFamily, Service};
use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection};
use crate::queue::Queue;

const ENABLED: &str = "TopologyAwareHintsEnabled";
const DISABLED: &str = "TopologyAwareHintsDisabled";

/// See the module's doc.
#[derive(Default)]
pub struct NearServices(Mutex<State>);

#[derive(Default)]
struct State {
    // namespace/name -> what is known of it; only who asks
    services: BTreeMap<String, Near>,
    // As nodes are now; none where it is to be worked out.
    shares: Option<Arc<ZoneShares>>,
    // Nodes that count for something else than before.
    changes: u64,
}

#[derive(Default)]
struct Near {
    has_hints: bool,
    // By family.
    said: BTreeMap<&'static str, String>,
}

impl NearServices {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node is told of: services are looked at again if it counts for something else.
    pub fn observe_node(&self, notice: &Notice, previous: Option<&Object>, queue: &mut Queue<String>) {
        let mut state = self.state();
        if state.services.is_empty() {
            return;
        }
        let now = match notice {
            Notice::Put(node) => NodeShare::of(node),
            Notice::Deleted(_) => NodeShare::Nothing,
            _ => return,
        };
        if previous.map_or(NodeShare::Nothing, NodeShare::of) != now {
            state.shares = None;
            state.changes += 1;
            state.services.keys().for_each(|name| queue.add(name.clone()));
        }
    }

    /// The shares of zones, for a service that asks.
    ///
    /// # Errors
    /// The read failed.
    pub async fn shares(&self, registry: &ActingRegistry, name: &str) -> Result<Arc<ZoneShares>, Status> {
        let changes = {
            let mut state = self.state();
            state.services.entry(name.to_owned()).or_default();
            if let Some(known) = &state.shares {
                return Ok(known.clone());
            }
            state.changes
        };
        let nodes = registry.objects(&collection(&built_in(registry, "", "v1", "nodes")?, None)).await?;
        let mut all = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            if at % limits::NODES_READ_MAX == limits::NODES_READ_MAX - 1 {
                tokio::task::yield_now().await;
            }
            all.push(NodeShare::of(node));
        }
        let shares = Arc::new(ZoneShares::of(all));
        let mut state = self.state();
        if state.changes == changes {
            state.shares = Some(shares.clone());
        }
        Ok(shares)
    }

    /// A service does not ask, or is not there. Whether it had hints.
    pub fn forget(&self, name: &str) -> bool {
        let mut state = self.state();
        let had = state.services.remove(name).is_some_and(|near| near.has_hints);
        if state.services.is_empty() {
            // Nodes are not looked at any more.
            state.shares = None;
        }
        had
    }

    /// Tells what has become of the hints of a service, where that is news.
    pub async fn tell(
        &self,
        registry: &ActingRegistry,
        (name, service): (&str, &Service),
        told: Vec<(AddressFamily, Result<(), String>)>,
    ) {
        for (family, hinted) in told {
            let said = self.news(name, family, &hinted);
            if let Some(said) = said {
                say(registry, service, said).await;
            }
        }
    }

    fn news(&self, name: &str, family: AddressFamily, hinted: &Result<(), String>) -> Option<ServiceEvent> {
        let mut state = self.state();
        let near = state.services.entry(name.to_owned()).or_default();
        let family = family.name();
        let had_hints = std::mem::replace(&mut near.has_hints, hinted.is_ok());
        let said = match hinted {
            Ok(()) if had_hints => return None,
            Ok(()) => ServiceEvent::normal(
                ENABLED,
                format!("Topology Aware Hints has been enabled, addressType: {family}"),
            ),
            Err(why) => ServiceEvent::warning(DISABLED, format!("{why}, addressType: {family}")),
        };
        let before = near.said.insert(family, said.message.clone());
        (before.as_ref() != Some(&said.message)).then_some(said)
    }

    /// Tells that a service does not ask any more, if it had hints.
    pub async fn tell_end(
        &self,
        registry: &ActingRegistry,
        (name, service): (&str, &Service),
        family: Option<AddressFamily>,
    ) {
        if self.forget(name)
            && let Some(family) = family
        {
            let family = family.name();
            let message = format!("Topology Aware Hints has been disabled, addressType: {family}");
            say(registry, service, ServiceEvent::warning(DISABLED, message)).await;
        }
    }
}
