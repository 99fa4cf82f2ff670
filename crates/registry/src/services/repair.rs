//! Claims and Services brought together again: after a crash, after an older version, after somebody's hand.
//!
//! In: the Services and the claims as they are now. Out: claims that no Service has are given back; Services
//! without a claim get theirs; two Services with one item are told of, and so is what cannot be read, whose
//! claims stay. Never: changes a Service.
//!
//! It runs beside writes. What it saw is old by the time it acts, so it looks again before it does: a claim
//! goes only at the revision that was seen, only when no write of this server is in the middle of it, and
//! only when its Service, read after that, does not have it.
//!
//! Source: kubernetes v1.36.3 `registry/core/service/ipallocator/controller/repairip.go`, `portallocator/controller`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::Status;
use forebay_catalog::store::Store;
use forebay_watchcache::Snapshot;

use super::cidrs::ready_ranges;
use super::claim::{Claim, Owner, item_of, name_of, read_claim};
use super::unreadable;
use crate::context::Context;
use crate::limits::REPAIR_BATCH;
use crate::services::claim;
use forebay_strategy::services::Allocation;

/// What a repair found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repaired {
    /// Claims that no Service had, given back.
    pub(crate) leaked: usize,
    /// Claims that a Service had not, made.
    pub(crate) missing: usize,
    /// Items that several Services have.
    pub(crate) doubled: usize,
}

/// Repairs claims once, and from then on lets them be made.
///
/// # Errors
/// When the store cannot be read or written; the next time may do.
pub(crate) async fn repair_services(context: &Arc<Context>) -> Result<Repaired, Status> {
    let mut repaired = Repaired::default();
    let cidrs = context.built_in("networking.k8s.io", "v1", "servicecidrs")?;
    unreadable::tell_all(&*context.fresh(&cidrs).await?, &cidrs);
    // In this order: a Service that is seen had its claim before.
    let store = context.built_in("", "v1", "services")?;
    let services = context.fresh(&store).await?;
    let addresses = context.built_in("networking.k8s.io", "v1", "ipaddresses")?;
    let ports = context.services.ports.clone();
    let mut owners = owners(&services, &store, &mut repaired).await;
    for (store, are_ports) in [(addresses, false), (ports, true)] {
        let claims = context.fresh(&store).await?;
        unreadable::tell_all(&claims, &store);
        for object in claims.range(&store.reach(None, None), None) {
            let Some(item) = item_of(object.name(), are_ports) else { continue };
            let Ok(claim) = read_claim(item, object) else {
                unreadable::tell(object.key());
                continue;
            };
            let owner = owners.remove(&item);
            if owner.is_some() && owner == claim.owner {
                continue;
            }
            let ours = claim.managed || owner.is_some();
            if ours
                && is_leaked(context, item, &claim).await?
                && claim::drop_claim(context, item, claim.revision).await?
            {
                tracing::info!(item = name_of(item), "no Service has it: given back");
                repaired.leaked += 1;
                if let Some(owner) = owner {
                    owners.insert(item, owner);
                }
            }
        }
    }
    for (item, owner) in owners {
        repaired.missing += usize::from(claim_missing(context, item, &owner).await?);
    }
    context.services.repaired.send_replace(true);
    Ok(repaired)
}

/// Which Service has what, of those that can be read; the others are named.
async fn owners(services: &Snapshot, store: &Store, repaired: &mut Repaired) -> BTreeMap<Allocation, Owner> {
    unreadable::tell_all(services, store);
    let mut owners: BTreeMap<Allocation, Owner> = BTreeMap::new();
    for (count, service) in services.range(&store.reach(None, None), None).enumerate() {
        if count % REPAIR_BATCH == REPAIR_BATCH - 1 {
            tokio::task::yield_now().await;
        }
        let owner = Owner::of(service);
        let Ok(items) = claim::holdings_of(service) else {
            unreadable::tell(service.key());
            continue;
        };
        for item in items {
            if let Some(first) = owners.get(&item) {
                repaired.doubled += 1;
                tracing::warn!(item = name_of(item), ?first, second = ?owner, "two Services have it; recreate one");
                continue;
            }
            owners.insert(item, owner.clone());
        }
    }
    owners
}

/// Whether nobody has what is claimed, nor is about to.
async fn is_leaked(context: &Arc<Context>, item: Allocation, claim: &Claim) -> Result<bool, Status> {
    if context.services.is_in_flight(item) || !is_past_grace(context, claim) {
        return Ok(false);
    }
    match &claim.owner {
        Some(owner) => has_not(context, owner, item).await,
        // Made for a Service, and changed since.
        None => Ok(true),
    }
}

/// Whether the Service `owner` has not got `item`, or is gone. One that cannot be read may have it.
async fn has_not(context: &Arc<Context>, owner: &Owner, item: Allocation) -> Result<bool, Status> {
    let failure = match claim::live_holdings(context, owner).await {
        // Once: for a holding.
        Ok(holdings) => return Ok(!holdings.contains(&item)),
        Err(failure) => failure,
    };
    let store = context.built_in("", "v1", "services")?;
    match unreadable::is_in(&store, &store.key(&owner.namespace, &owner.name)).await? {
        true => Ok(false),
        false => Err(failure),
    }
}

fn is_past_grace(context: &Arc<Context>, claim: &Claim) -> bool {
    let grace = context.config.services.leak_grace;
    let created = claim.created.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
    let age = created.map_or(i64::MAX, |created| (context.clock.unix_ms() as i64).saturating_sub(created));
    grace == Duration::ZERO || u128::try_from(age).is_ok_and(|age| age >= grace.as_millis())
}

/// Claims what a Service has without a claim, if it still has.
pub(crate) async fn claim_missing(
    context: &Arc<Context>,
    item: Allocation,
    owner: &Owner,
) -> Result<bool, Status> {
    if !is_in_range(context, item).await? || !claim::live_holdings(context, owner).await?.contains(&item) {
        return Ok(false);
    }
    let Some(revision) = claim::claim(context, item, owner).await? else { return Ok(false) };
    // Whoever took it from the Service meanwhile has not found this claim, and will not look again.
    if !claim::live_holdings(context, owner).await?.contains(&item) {
        claim::drop_claim(context, item, revision).await?;
        return Ok(false);
    }
    tracing::info!(item = name_of(item), ?owner, "it was not claimed: claimed");
    Ok(true)
}

/// What is out of range is never given to anyone.
async fn is_in_range(context: &Arc<Context>, item: Allocation) -> Result<bool, Status> {
    match item {
        Allocation::Port(port) => Ok(context.config.services.node_ports.contains(i64::from(port))),
        Allocation::Address(address) => {
            let store = context.built_in("networking.k8s.io", "v1", "servicecidrs")?;
            let cidrs = context.fresh(&store).await?;
            let is_in = ready_ranges(&cidrs, &store).iter().any(|range| range.contains(address));
            // A range that cannot be read may have it.
            Ok(is_in || !unreadable::is_none(&cidrs, &store))
        }
    }
}
