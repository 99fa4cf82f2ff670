//! What one server claims by: the stores, what is given out, the claims that its writes are in the middle of.
//!
//! In: who begins and ends. Out: what is under way. Never: the truth about a claim, which is the store's.
//!
//! Owner: a lock for a few lines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::Status;
use forebay_catalog::store::Store;
use forebay_catalog::{Catalog, Opener, Shape};
use forebay_object::Form;
use forebay_rt::{Clock, Random};
use forebay_strategy::services::Allocation;
use tokio::sync::watch;

use crate::config::GivenOut;

/// See the module's doc.
pub struct ServerClaims {
    /// Claims of node ports.
    pub(crate) ports: Arc<Store>,
    addresses: Option<Arc<Store>>,
    cidrs: Option<Arc<Store>>,
    services: Option<Arc<Store>>,
    pub(crate) given_out: GivenOut,
    pub(crate) clock: Clock,
    pub(crate) random: Arc<Random>,
    // item -> writes of this server that are between claiming it and their end
    in_flight: Mutex<BTreeMap<Allocation, usize>>,
    // Whether claims have been repaired since the start. Until then nothing is claimed: a Service from before
    // claims may have what looks free.
    repaired: watch::Sender<bool>,
}

impl ServerClaims {
    /// - `catalog`: what is built in; its stores stay.
    pub fn new(
        opener: &Opener,
        catalog: &Catalog,
        given_out: GivenOut,
        clock: Clock,
        random: Arc<Random>,
    ) -> ServerClaims {
        let ports = opener.open(Shape {
            group: "",
            plural: "servicenodeports",
            path: "ranges/servicenodeports",
            namespaced: false,
            form: Form::Typed,
            fields: &[],
            indexed: Vec::new(),
        });
        let built_in = |group, resource| {
            let served = catalog.resource(group, "v1", resource)?;
            served.store.clone()
        };
        ServerClaims {
            ports: Arc::new(ports),
            addresses: built_in("networking.k8s.io", "ipaddresses"),
            cidrs: built_in("networking.k8s.io", "servicecidrs"),
            services: built_in("", "services"),
            given_out,
            clock,
            random,
            in_flight: Mutex::default(),
            repaired: watch::Sender::new(false),
        }
    }

    /// The claims of node ports, which no resource has.
    pub fn ports(&self) -> &Arc<Store> {
        &self.ports
    }

    /// Whether claims have been repaired since the start.
    pub fn is_repaired(&self) -> bool {
        *self.repaired.borrow()
    }

    pub(crate) fn repaired(&self) {
        self.repaired.send_replace(true);
    }

    pub(crate) fn hear_of_repair(&self) -> watch::Receiver<bool> {
        self.repaired.subscribe()
    }

    pub(crate) fn addresses(&self) -> Result<&Arc<Store>, Status> {
        stored(&self.addresses, "ipaddresses")
    }

    pub(crate) fn cidrs(&self) -> Result<&Arc<Store>, Status> {
        stored(&self.cidrs, "servicecidrs")
    }

    pub(crate) fn services(&self) -> Result<&Arc<Store>, Status> {
        stored(&self.services, "services")
    }

    pub(crate) fn begin(&self, item: Allocation) {
        *self.in_flight().entry(item).or_default() += 1;
    }

    pub(crate) fn end(&self, item: Allocation) {
        let mut in_flight = self.in_flight();
        if let Some(count) = in_flight.get_mut(&item) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&item);
            }
        }
    }

    pub(crate) fn is_in_flight(&self, item: Allocation) -> bool {
        self.in_flight().contains_key(&item)
    }

    fn in_flight(&self) -> MutexGuard<'_, BTreeMap<Allocation, usize>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stored<'s>(store: &'s Option<Arc<Store>>, resource: &str) -> Result<&'s Arc<Store>, Status> {
    store.as_ref().ok_or_else(|| Status::internal(format!("{resource} has no storage")))
}
