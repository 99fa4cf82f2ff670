//! What Services are given, cluster IPs and node ports, so that no two ever have the same; and the `kubernetes` Service.
//!
//! In: writes of Services, through the small hook in the verbs. Out: Services with what they take filled in.
//!
//! The truth about an address or a port is its *claim*: one key in the store, created only where none is, that names its
//! Service. Of an address it is the IPAddress object of that name, of a node port a key that no resource has
//! (`docs/formats/node-ports.md`). Whoever creates the claim has the item, whichever server that is. Claims are made
//! before the Service is stored, and given back after it has let go, so a crash between, or a write that the store does not
//! answer, leaves at worst a claim too many, which `repair` gives back. What is cached of claims only says where to look
//! for a free one.
//!
//! State: the claims that writes of this server are in the middle of, behind one short lock; whether claims have been
//! repaired since the start. Never: judges a Service, which `strategy` does.
//!
//! ADR-0016. Source: kubernetes v1.36.3 `registry/core/service/storage`, `ipallocator`, `portallocator`.

mod advertised;
mod claim;
mod claims;
mod kubernetes;
mod range;
mod repair;
mod unreadable;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_apimachinery::{Reason, Revision, Status};
use forebay_backend::Backend;
use forebay_object::{Form, Layout, Object, Scope};
use forebay_rt::{Clock, Tasks};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};

use crate::catalog::{Opener, Served, Shape};
use crate::errors;
use crate::registry::{Config, Registry};
use crate::request::Target;
use crate::store::{Current, Decision, Done, Mode, ROUNDS_MAX, Store};
use forebay_strategy::services::Item;

pub(crate) use claims::Claims;
pub use range::{AddressRange, PortRange};

/// What Services are given, and where this server is to be found.
#[derive(Clone, Debug)]
pub struct ServicesConfig {
    /// `--service-cluster-ip-range`: one range, or one of each family; the first family is the default.
    pub cluster_ip_ranges: Vec<AddressRange>,
    /// `--service-node-port-range`.
    pub node_ports: PortRange,
    /// Where the `kubernetes` Service leads to; without it there is none.
    pub endpoint: Option<(IpAddr, u16)>,
    /// How old a claim must be that no Service has before it is given back. Zero where no other server writes to the
    /// store; else longer than a write takes, because another server may be between claim and Service.
    pub leak_grace: Duration,
}

impl Default for ServicesConfig {
    fn default() -> ServicesConfig {
        let range = AddressRange::new(IpAddr::from([10, 0, 0, 0]), 24);
        ServicesConfig {
            cluster_ip_ranges: range.into_iter().collect(),
            node_ports: PortRange::DEFAULT,
            endpoint: None,
            leak_grace: Duration::ZERO,
        }
    }
}

/// What the registry keeps for Services.
pub(crate) struct Services {
    /// Claims of node ports.
    pub(crate) ports: Arc<Store>,
    // item -> writes of this server that are between claiming it and their end
    in_flight: Mutex<BTreeMap<Item, usize>>,
    // Whether claims have been repaired since the start. Until then nothing is claimed: a Service from before claims may
    // have what looks free.
    repaired: watch::Sender<bool>,
    // Something of the `kubernetes` Service is gone.
    look: Notify,
    // This server ends: nobody is led here any more.
    withdrawn: AtomicBool,
    // Whose turn it is to write where servers are: who says that this one goes comes after who says that it is there.
    turn: Semaphore,
    // The ports of its endpoints are this server's; from then on another one's are left alone.
    ports_settled: AtomicBool,
    // The same of the port of the Service itself.
    target_settled: AtomicBool,
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

    fn in_flight(&self) -> MutexGuard<'_, BTreeMap<Item, usize>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// The turn to say that this server is there; none once it goes.
    pub(crate) async fn turn_to_stay(&self) -> Option<SemaphorePermit<'_>> {
        let turn = self.turn.acquire().await.ok()?;
        (!self.is_withdrawn()).then_some(turn)
    }

    fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    fn begin(&self, item: Item) {
        *self.in_flight().entry(item).or_default() += 1;
    }

    fn end(&self, item: Item) {
        let mut in_flight = self.in_flight();
        if let Some(count) = in_flight.get_mut(&item) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&item);
            }
        }
    }

    fn is_in_flight(&self, item: Item) -> bool {
        self.in_flight().contains_key(&item)
    }
}

/// Whether objects of `served` take things that only one may have. A write of one is carried to its end even if nobody
/// waits for it any more: half done, it would look like a leak to `repair` while it can still commit.
pub(crate) fn take_part(served: &Served) -> bool {
    served.is("", "services")
}

/// Whether the store did not say what became of a write that failed so.
pub(crate) fn is_unanswered(failure: &Status) -> bool {
    failure.reason == Reason::Timeout
}

impl Registry {
    /// What a write of `target` takes.
    pub(crate) fn claims(&self, target: &Target, mode: Mode) -> Claims {
        if take_part(&target.served) && target.subresource.is_none() {
            Claims::open(self, target, mode)
        } else {
            Claims::none()
        }
    }

    /// [`Store::guarded_update`], where what the object takes is claimed before it commits, and given back after.
    pub(crate) async fn guarded_update<T>(
        &self,
        target: &Target,
        store: &Store,
        mode: Mode,
        mut judge: impl FnMut(Option<&Current>, &mut Claims) -> Result<Decision<T>, Status>,
    ) -> Result<Done<T>, Status> {
        let key = store.key(target.namespace(), target.name());
        let mut claims = self.claims(target, mode);
        for _ in 0..ROUNDS_MAX {
            let done = store.guarded_update(&key, mode, |current| judge(current, &mut claims)).await;
            if matches!(done, Ok(Done::Kept { .. })) && claims.pending() {
                match claims.take().await {
                    Ok(()) => continue,
                    Err(refused) => {
                        claims.settle(&target.served, None).await;
                        return Err(refused);
                    }
                }
            }
            if done.as_ref().is_err_and(is_unanswered) {
                claims.leave();
                return done;
            }
            let stored = match &done {
                Ok(Done::Put { object, .. }) => Some(&**object),
                _ => None,
            };
            claims.settle(&target.served, stored).await;
            return done;
        }
        claims.settle(&target.served, None).await;
        Err(errors::too_contended())
    }

    /// Runs `work` to its end, also when the caller stops waiting.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        let (tell, told) = tokio::sync::oneshot::channel();
        self.tasks.spawn_graceful("write of a service", async move {
            // Whoever asked may be gone.
            let _gone = tell.send(work.await);
        });
        told.await.unwrap_or_else(|_ended| Err(errors::shutting_down()))
    }

    /// What follows the delete of `object` at `revision`, for Services and for what belongs to them.
    pub(crate) async fn after_claims(&self, served: &Served, object: &Object, revision: Revision) {
        match (served.group(), served.resource()) {
            ("", "services") => self.after_service(object, revision).await,
            ("networking.k8s.io", "ipaddresses") => self.after_address(object).await,
            _ => {}
        }
        if kubernetes::is_ours(served, object) {
            self.services.look.notify_one();
        }
    }

    /// Claims an address again whose claim was deleted by hand, if its Service has it still.
    async fn after_address(&self, object: &Object) {
        let Some(item) = claim::item_of(object.name(), false) else { return };
        let claimed = async {
            match claim::read_claim(item, object)?.owner {
                Some(owner) => self.claim_missing(item, &owner).await,
                None => Ok(false),
            }
        };
        if let Err(status) = claimed.await {
            tracing::warn!(item = object.name(), why = status.message, "not claimed again yet");
        }
    }

    /// Gives back what a Service had that was deleted at `revision`, and deletes the Endpoints of its name.
    async fn after_service(&self, object: &Object, revision: Revision) {
        let owner = claim::Owner::of(object);
        let holdings = match self.holdings_of(object) {
            Ok(holdings) => holdings,
            Err(status) => return tracing::warn!(why = status.message, "a deleted Service cannot be read"),
        };
        for item in holdings {
            self.give_back(item, &owner, revision).await;
        }
        self.delete_endpoints(&owner).await;
    }
}
