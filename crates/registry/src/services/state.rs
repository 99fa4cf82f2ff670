//! What the registry keeps for Services: the claims that writes of this server are in the middle of, behind
//! one short lock, and how far the server has come with what is called `kubernetes`.
//!
//! In: who begins and ends. Out: what is under way. Never: the truth about a claim, which is the store's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_catalog::store::Store;
use forebay_catalog::{Opener, Shape};
use forebay_object::Form;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};

use forebay_strategy::services::Allocation;

/// What the registry keeps for Services.
pub(crate) struct Services {
    /// Claims of node ports.
    pub(crate) ports: Arc<Store>,
    // item -> writes of this server that are between claiming it and their end
    pub(crate) in_flight: Mutex<BTreeMap<Allocation, usize>>,
    // Whether claims have been repaired since the start. Until then nothing is claimed: a Service from before
    // claims may have what looks free.
    pub(crate) repaired: watch::Sender<bool>,
    // Something of the `kubernetes` Service is gone.
    pub(crate) look: Notify,
    // This server ends: nobody is led here any more.
    pub(crate) withdrawn: AtomicBool,
    // Whose turn it is to write where servers are: who says that this one goes comes after who says that it
    // is there.
    pub(crate) turn: Semaphore,
    // The ports of its endpoints are this server's; from then on another one's are left alone.
    pub(crate) ports_settled: AtomicBool,
    // The same of the port of the Service itself.
    pub(crate) target_settled: AtomicBool,
}

impl Services {
    pub(crate) fn new(opener: &Opener) -> Services {
        let ports = opener.open(Shape {
            group: "",
            plural: "servicenodeports",
            path: "ranges/servicenodeports",
            namespaced: false,
            form: Form::Typed,
            fields: &[],
            indexed: Vec::new(),
        });
        Services {
            ports: Arc::new(ports),
            in_flight: Mutex::default(),
            repaired: watch::Sender::new(false),
            look: Notify::new(),
            withdrawn: AtomicBool::new(false),
            turn: Semaphore::new(1),
            ports_settled: AtomicBool::new(false),
            target_settled: AtomicBool::new(false),
        }
    }

    pub(crate) fn in_flight(&self) -> MutexGuard<'_, BTreeMap<Allocation, usize>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// The turn to say that this server is there; none once it goes.
    pub(crate) async fn turn_to_stay(&self) -> Option<SemaphorePermit<'_>> {
        let turn = self.turn.acquire().await.ok()?;
        (!self.is_withdrawn()).then_some(turn)
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
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
}
