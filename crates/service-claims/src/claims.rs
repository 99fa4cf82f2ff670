//! What one write takes: planned from what looks free, claimed before the object is stored, and given back if
//! it is not.
//!
//! In: a proposed object, the one before it. Out: the proposed object filled in; claims in the store. Owner
//! of the state: the write. Never: validates; writes the object.
//!
//! A write goes round: plan, validate, [`WriteClaims::take`], and again if something went to somebody else in
//! between (registry's `write/rounds.rs`). What it holds it plans with first, so no round undoes another.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use forebay_apimachinery::{Reason, Revision, Status};
use forebay_catalog::store::{Mode, Store};
use forebay_catalog::{Served, Target, errors};
use forebay_object::Object;
use forebay_strategy::services::{
    Allocation, AllocationError, Family, Pools, Unavailable, allocate_changed, allocate_new, holdings,
};
use forebay_watchcache::Snapshot;
use serde_json::Value;

use crate::cidrs::ready_ranges;
use crate::claim::{MakesAddresses, Owner, claim, drop_claim, give_back, key_in, name_of};
use crate::range::AddressRange;
use crate::server::ServerClaims;

/// Whether objects of `served` take things that only one may have. A write of one is carried to its end even
/// if nobody waits for it any more: half done, it would look like a leak to `repair` while it can still
/// commit.
pub fn take_part(served: &Served) -> bool {
    served.is("", "services")
}

/// Whether the store did not say what became of a write that failed so.
pub fn is_unanswered(failure: &Status) -> bool {
    failure.reason == Reason::Timeout
}

/// What a write takes. Nothing, for most kinds.
///
/// It must be settled: what is claimed and not settled waits for the next start.
pub struct WriteClaims(Option<Box<Open>>);

struct Open {
    server: Arc<ServerClaims>,
    mode: Mode,
    owner: Owner,
    families: Vec<Family>,
    seen: Option<Seen>,
    // Taken in the last plan.
    planned: BTreeSet<Allocation>,
    // item -> revision of our claim
    held: BTreeMap<Allocation, Revision>,
    // What turned out to be somebody else's.
    lost: BTreeSet<Allocation>,
    // What the object that was planned on has.
    before: Vec<Allocation>,
    // A plan could not be made before one looks.
    must_look: bool,
}

/// What looks taken, and the ranges, when the write began.
struct Seen {
    addresses: Taken,
    ports: Taken,
    // Of both families, those that addresses may be taken from.
    ranges: Vec<AddressRange>,
}

struct Taken {
    store: Arc<Store>,
    snapshot: Arc<Snapshot>,
}

impl WriteClaims {
    /// Those of a write that takes nothing.
    pub fn none() -> WriteClaims {
        WriteClaims(None)
    }

    /// What a write of `target` takes.
    pub fn of_write(server: &Arc<ServerClaims>, target: &Target, mode: Mode) -> WriteClaims {
        if !take_part(&target.served) || target.subresource.is_some() {
            return WriteClaims::none();
        }
        let ranges = &server.given_out.cluster_ip_ranges;
        let owner = Owner { namespace: target.namespace().to_string(), name: target.name().to_string() };
        WriteClaims(Some(Box::new(Open {
            server: server.clone(),
            mode,
            owner,
            families: ranges.iter().map(|range| Family::of(range.network())).collect(),
            seen: None,
            planned: BTreeSet::new(),
            held: BTreeMap::new(),
            lost: BTreeSet::new(),
            before: Vec::new(),
            must_look: false,
        })))
    }

    /// Whether the object takes nothing.
    pub fn are_none(&self) -> bool {
        self.0.is_none()
    }

    /// Fills in what a new object takes, which has its name.
    ///
    /// # Errors
    /// What it cannot have, and why nobody can look at what is free.
    pub async fn plan_new(&mut self, proposed: &mut Value) -> Result<(), Status> {
        let Some(open) = &mut self.0 else { return Ok(()) };
        open.owner.name = proposed["metadata"]["name"].as_str().unwrap_or_default().to_string();
        if open.seen.is_none() {
            open.look().await?;
        }
        open.plan(proposed, None)
    }

    /// Fills in what a changed object takes; false when one must [`take`](WriteClaims::take) a look first. It
    /// is not to be stored while anything is [`pending`](WriteClaims::pending).
    ///
    /// # Errors
    /// What it cannot have.
    pub fn plan_update(&mut self, proposed: &mut Value, old: &Value) -> Result<bool, Status> {
        let Some(open) = &mut self.0 else { return Ok(true) };
        open.plan(proposed, Some(old))?;
        Ok(!open.must_look)
    }

    /// Whether something is still to be taken.
    pub fn pending(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.pending())
    }

    /// Whether a plan could not be made before one looks.
    pub fn must_look(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.must_look)
    }

    /// Looks at what is free, or claims what is planned. What is not to be had is known to the next plan, and
    /// still [`pending`](WriteClaims::pending).
    ///
    /// # Errors
    /// The store's failures.
    pub async fn take(&mut self, makes: &impl MakesAddresses) -> Result<(), Status> {
        match &mut self.0 {
            Some(open) => open.take(makes).await,
            None => Ok(()),
        }
    }

    /// Ends the write: gives back what the stored object has not, or all of it when none was stored.
    pub async fn settle(self, served: &Served, stored: Option<&Object>) {
        if let Some(open) = self.0 {
            open.settle(served, stored).await;
        }
    }

    /// Ends a write of which nobody knows whether it was made, or will be: what it claimed is left to
    /// `repair`.
    pub fn leave(self) {
        if let Some(open) = self.0 {
            open.leave();
        }
    }
}

impl Open {
    fn pending(&self) -> bool {
        // Once: for the whole plan.
        let missing = || self.planned.iter().any(|item| !self.held.contains_key(item));
        self.must_look || self.mode == Mode::Commit && missing()
    }

    fn plan(&mut self, proposed: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        self.planned.clear();
        self.must_look = false;
        let Some(members) = proposed.as_object_mut() else { return Ok(()) };
        let planned = match old.and_then(Value::as_object) {
            Some(old) => {
                self.before = holdings(old);
                allocate_changed(members, old, self)
            }
            None => allocate_new(members, self),
        };
        let name = &self.owner.name;
        match planned {
            Ok(()) => Ok(()),
            Err(AllocationError::Unseen) => {
                self.must_look = true;
                Ok(())
            }
            Err(AllocationError::Invalid(causes)) => Err(Status::invalid("", "Service", name, causes)),
            Err(AllocationError::Internal(why)) => Err(Status::internal(why)),
            Err(AllocationError::Unknown(why)) => Err(Status::new(Reason::Unknown, why)),
        }
    }

    /// Looks at what is taken now, once claims have been repaired.
    async fn look(&mut self) -> Result<(), Status> {
        let server = &self.server;
        let deadline = server.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
        let mut repaired = server.hear_of_repair();
        tokio::select! {
            biased;
            _ = repaired.wait_for(|repaired| *repaired) => {}
            () = server.clock.sleep_until(deadline) => return Err(not_repaired()),
        }
        let taken = async |store: Arc<Store>| {
            let snapshot = store.cacher.fresh(deadline).await.map_err(|error| errors::cache(&error))?;
            Ok::<Taken, Status>(Taken { store, snapshot })
        };
        let cidrs = taken(server.cidrs()?.clone()).await?;
        self.seen = Some(Seen {
            addresses: taken(server.addresses()?.clone()).await?,
            ports: taken(server.ports.clone()).await?,
            ranges: ready_ranges(&cidrs.snapshot, &cidrs.store),
        });
        Ok(())
    }

    async fn take(&mut self, makes: &impl MakesAddresses) -> Result<(), Status> {
        if self.must_look {
            self.must_look = false;
            return self.look().await;
        }
        let missing: Vec<Allocation> =
            self.planned.iter().filter(|item| !self.held.contains_key(item)).copied().collect();
        for item in missing {
            self.server.begin(item);
            match claim(&self.server, item, &self.owner, makes).await {
                Ok(Some(revision)) => drop(self.held.insert(item, revision)),
                Ok(None) => {
                    self.server.end(item);
                    self.lost.insert(item);
                    return Ok(());
                }
                Err(status) => {
                    self.server.end(item);
                    return Err(status);
                }
            }
        }
        Ok(())
    }

    async fn settle(self, served: &Served, stored: Option<&Object>) {
        let Open { server, mode, owner, held, before, .. } = self;
        if mode == Mode::DryRun {
            return;
        }
        let kept: BTreeSet<Allocation> = match stored.map(|object| served.to_value(object)) {
            Some(Ok(Value::Object(members))) => holdings(&members).into_iter().collect(),
            // What the store refused to read is left to repair.
            Some(_) => held.keys().chain(&before).copied().collect(),
            None => before.iter().copied().collect(),
        };
        for (item, revision) in &held {
            if !kept.contains(item)
                && let Err(status) = drop_claim(&server, *item, *revision).await
            {
                tracing::warn!(item = name_of(*item), why = status.message, "not given back yet");
            }
            server.end(*item);
        }
        let revision = stored.map(Object::revision);
        for item in before.into_iter().filter(|item| !kept.contains(item)) {
            if let Some(revision) = revision {
                give_back(&server, item, &owner, revision).await;
            }
        }
    }

    fn leave(self) {
        let Open { server, owner, held, .. } = self;
        for item in held.into_keys() {
            tracing::info!(item = name_of(item), ?owner, "left to the next repair");
            server.end(item);
        }
    }

    /// Whether `item` may be planned: what this write holds already may.
    fn is_free(&self, seen: &Seen, item: Allocation) -> bool {
        // Few: sets, which look up.
        if self.planned.contains(&item) || self.lost.contains(&item) {
            return false;
        }
        let pool = match item {
            Allocation::Address(_) => &seen.addresses,
            Allocation::Port(_) => &seen.ports,
        };
        self.held.contains_key(&item) || pool.snapshot.get(&key_in(&pool.store, item)).is_none()
    }

    fn any_address(&self, seen: &Seen, family: Family) -> Option<Allocation> {
        let own = self.held.keys().copied();
        let mut own =
            own.filter(|item| matches!(item, Allocation::Address(address) if Family::of(*address) == family));
        let random = &self.server.random;
        let ranges = seen.ranges.iter().filter(|range| Family::of(range.network()) == family);
        own.find(|item| self.is_free(seen, *item)).or_else(|| {
            let mut all = ranges.flat_map(|range| range.candidates(random)).map(Allocation::Address);
            all.find(|item| self.is_free(seen, *item))
        })
    }

    fn any_port(&self, seen: &Seen) -> Option<Allocation> {
        let mut own = self.held.keys().copied().filter(|item| matches!(item, Allocation::Port(_)));
        own.find(|item| self.is_free(seen, *item)).or_else(|| {
            let range = self.server.given_out.node_ports;
            range.candidates(&self.server.random).map(Allocation::Port).find(|item| self.is_free(seen, *item))
        })
    }

    /// What upstream shows of an address in a dry run, which looks at the range only.
    fn dry_address(
        &self,
        seen: &Seen,
        wanted: Option<IpAddr>,
        family: Family,
    ) -> Result<IpAddr, Unavailable> {
        // Few: the ranges of the cluster, which are not the caller's.
        let range = seen.ranges.iter().find(|range| Family::of(range.network()) == family);
        let range = range.ok_or(Unavailable::Full)?;
        match wanted {
            None => Ok(range.network()),
            Some(wanted) if range.contains(wanted) => Ok(wanted),
            Some(wanted) => Err(Unavailable::Because(format!(
                "the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {range}"
            ))),
        }
    }

    /// What upstream shows of a port in a dry run: the range is not looked at.
    fn dry_port(&mut self, seen: &Seen, wanted: Option<i64>) -> Result<i64, Unavailable> {
        // Ports stand behind addresses, in order.
        let highest = match self.planned.last() {
            Some(Allocation::Port(port)) => i64::from(*port),
            Some(Allocation::Address(_)) | None => 32_768,
        };
        let port = wanted.unwrap_or(highest + 1);
        if let Ok(number) = u16::try_from(port) {
            if wanted.is_some() && !self.is_free(seen, Allocation::Port(number)) {
                return Err(allocated("port"));
            }
            self.planned.insert(Allocation::Port(number));
        }
        Ok(port)
    }

    fn address_from(
        &mut self,
        seen: &Seen,
        wanted: Option<IpAddr>,
        family: Family,
    ) -> Result<IpAddr, Unavailable> {
        if self.mode == Mode::DryRun {
            return self.dry_address(seen, wanted, family);
        }
        let item = match wanted {
            None => self.any_address(seen, family).ok_or(Unavailable::Full)?,
            // Few: the ranges of the cluster, which are not the caller's.
            Some(wanted) if !seen.ranges.iter().any(|range| range.contains(wanted)) => {
                let why = "the provided network does not match the current range";
                return Err(Unavailable::Because(why.into()));
            }
            Some(wanted) if self.is_free(seen, Allocation::Address(wanted)) => Allocation::Address(wanted),
            Some(_) => return Err(allocated("IP")),
        };
        self.planned.insert(item);
        match item {
            Allocation::Address(address) => Ok(address),
            Allocation::Port(_) => Err(Unavailable::Full),
        }
    }

    fn port_from(&mut self, seen: &Seen, wanted: Option<i64>) -> Result<i64, Unavailable> {
        if self.mode == Mode::DryRun {
            return self.dry_port(seen, wanted);
        }
        let range = self.server.given_out.node_ports;
        let item = match wanted {
            None => self.any_port(seen).ok_or(Unavailable::Full)?,
            Some(wanted) => match u16::try_from(wanted) {
                Ok(port) if range.contains(wanted) => Allocation::Port(port),
                _ => {
                    return Err(Unavailable::Because(format!(
                        "provided port is not in the valid range. The range of valid ports is {range}"
                    )));
                }
            },
        };
        if wanted.is_some() && !self.is_free(seen, item) {
            return Err(allocated("port"));
        }
        self.planned.insert(item);
        match item {
            Allocation::Port(port) => Ok(i64::from(port)),
            Allocation::Address(_) => Err(Unavailable::Full),
        }
    }
}

impl Pools for Open {
    fn families(&self) -> &[Family] {
        &self.families
    }

    fn address(&mut self, wanted: Option<IpAddr>, family: Family) -> Result<IpAddr, Unavailable> {
        let seen = self.seen.take().ok_or(Unavailable::Unseen)?;
        let address = self.address_from(&seen, wanted, family);
        self.seen = Some(seen);
        address
    }

    fn port(&mut self, wanted: Option<i64>) -> Result<i64, Unavailable> {
        let seen = self.seen.take().ok_or(Unavailable::Unseen)?;
        let port = self.port_from(&seen, wanted);
        self.seen = Some(seen);
        port
    }
}

fn allocated(what: &str) -> Unavailable {
    Unavailable::Because(format!("provided {what} is already allocated"))
}

fn not_repaired() -> Status {
    let message = "the allocations of services are being repaired, please try again later";
    Status::new(Reason::TooManyRequests, message).retry_after(1)
}
