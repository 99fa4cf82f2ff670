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
use std::time::Duration;

use forebay_apimachinery::Status;
use forebay_catalog::store::Store;
use forebay_strategy::services::Allocation;
use forebay_watchcache::Snapshot;

use crate::cidrs::ready_ranges;
use crate::claim::{
    Claim, MakesAddresses, Owner, claim, drop_claim, holdings_of, item_of, live_holdings, name_of, read_claim,
};
use crate::limits::REPAIR_BATCH;
use crate::server::ServerClaims;
use crate::unreadable;

/// What a repair found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Claims that no Service had, given back.
    pub leaked: usize,
    /// Claims that a Service had not, made.
    pub missing: usize,
    /// Items that several Services have.
    pub doubled: usize,
}

/// Repairs claims once, and from then on lets them be made.
///
/// # Errors
/// When the store cannot be read or written; the next time may do.
pub async fn repair(server: &ServerClaims, makes: &impl MakesAddresses) -> Result<Repaired, Status> {
    let mut repaired = Repaired::default();
    let cidrs = server.cidrs()?;
    unreadable::tell_all(&*cidrs.fresh(&server.clock).await?, cidrs);
    // In this order: a Service that is seen had its claim before.
    let store = server.services()?;
    let services = store.fresh(&server.clock).await?;
    let mut owners = owners(&services, store, &mut repaired).await;
    for (store, are_ports) in [(server.addresses()?, false), (&server.ports, true)] {
        let claims = store.fresh(&server.clock).await?;
        unreadable::tell_all(&claims, store);
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
                && is_leaked(server, item, &claim).await?
                && drop_claim(server, item, claim.revision).await?
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
        repaired.missing += usize::from(claim_missing(server, item, &owner, makes).await?);
    }
    server.repaired();
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
        let Ok(items) = holdings_of(service) else {
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
async fn is_leaked(server: &ServerClaims, item: Allocation, claim: &Claim) -> Result<bool, Status> {
    if server.is_in_flight(item) || !is_past_grace(server, claim) {
        return Ok(false);
    }
    match &claim.owner {
        Some(owner) => has_not(server, owner, item).await,
        // Made for a Service, and changed since.
        None => Ok(true),
    }
}

/// Whether the Service `owner` has not got `item`, or is gone. One that cannot be read may have it.
async fn has_not(server: &ServerClaims, owner: &Owner, item: Allocation) -> Result<bool, Status> {
    let failure = match live_holdings(server, owner).await {
        // Once: for a holding.
        Ok(holdings) => return Ok(!holdings.contains(&item)),
        Err(failure) => failure,
    };
    let store = server.services()?;
    match unreadable::is_in(store, &store.key(&owner.namespace, &owner.name)).await? {
        true => Ok(false),
        false => Err(failure),
    }
}

fn is_past_grace(server: &ServerClaims, claim: &Claim) -> bool {
    let grace = server.given_out.leak_grace;
    let created = claim.created.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
    let age = created.map_or(i64::MAX, |created| (server.clock.unix_ms() as i64).saturating_sub(created));
    grace == Duration::ZERO || u128::try_from(age).is_ok_and(|age| age >= grace.as_millis())
}

/// Claims what a Service has without a claim, if it still has.
pub(crate) async fn claim_missing(
    server: &ServerClaims,
    item: Allocation,
    owner: &Owner,
    makes: &impl MakesAddresses,
) -> Result<bool, Status> {
    if !is_in_range(server, item).await? || !live_holdings(server, owner).await?.contains(&item) {
        return Ok(false);
    }
    let Some(revision) = claim(server, item, owner, makes).await? else { return Ok(false) };
    // Whoever took it from the Service meanwhile has not found this claim, and will not look again.
    if !live_holdings(server, owner).await?.contains(&item) {
        drop_claim(server, item, revision).await?;
        return Ok(false);
    }
    tracing::info!(item = name_of(item), ?owner, "it was not claimed: claimed");
    Ok(true)
}

/// What is out of range is never given to anyone.
async fn is_in_range(server: &ServerClaims, item: Allocation) -> Result<bool, Status> {
    match item {
        Allocation::Port(port) => Ok(server.given_out.node_ports.contains(i64::from(port))),
        Allocation::Address(address) => {
            let store = server.cidrs()?;
            let cidrs = store.fresh(&server.clock).await?;
            let is_in = ready_ranges(&cidrs, store).iter().any(|range| range.contains(address));
            // A range that cannot be read may have it.
            Ok(is_in || !unreadable::is_none(&cidrs, store))
        }
    }
}
