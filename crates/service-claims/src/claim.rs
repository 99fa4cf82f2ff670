//! One claim: an address or a node port that one Service has, as a key in the store.
//!
//! In: an item and its Service. Out: the claim made where there was none, read, or given back. Never: decides
//! who is to have what; touches a claim that is not the Service's.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision, Status};
use forebay_backend::{Backend as _, Expect, Op, Txn, TxnResponse};
use forebay_catalog::errors;
use forebay_catalog::store::{Mode, Store};
use forebay_object::Object;
use forebay_strategy::services::{Allocation, Family, holdings};
use serde_json::{Value, json};

use crate::server::ServerClaims;

/// Who makes the IPAddresses of Services, in their label.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "ipallocator.k8s.io";
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";

/// Who makes what is claimed an address by: what the server writes into a new object is more than a claim.
pub trait MakesAddresses: Sync {
    /// An IPAddress as it is stored, with what the server writes into each new object.
    ///
    /// - `address`: its name, its labels and what it is for.
    ///
    /// # Errors
    /// 500.
    fn address(&self, address: Value) -> Result<Bytes, Status>;
}

/// The Service that has something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub namespace: String,
    pub name: String,
}

/// What the store says of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub revision: Revision,
    /// `None`: it is claimed for something that is no Service.
    pub owner: Option<Owner>,
    /// Whether it is one of ours to give back: anyone may make an IPAddress.
    pub managed: bool,
    /// `metadata.creationTimestamp`.
    pub created: String,
}

impl Owner {
    /// The Service `object`.
    pub fn of(object: &Object) -> Owner {
        Owner { namespace: object.namespace().to_string(), name: object.name().to_string() }
    }

    fn reference(&self) -> Value {
        json!({ "parentRef": { "resource": "services", "namespace": self.namespace, "name": self.name } })
    }
}

impl Claim {
    /// Reads a claim of either kind.
    pub fn read(item: Allocation, revision: Revision, value: &Value) -> Claim {
        let parent = &value["spec"]["parentRef"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_string();
        let service = text(&parent["group"]).is_empty() && parent["resource"] == "services";
        let metadata = &value["metadata"];
        Claim {
            revision,
            owner: service
                .then(|| Owner { namespace: text(&parent["namespace"]), name: text(&parent["name"]) }),
            managed: matches!(item, Allocation::Port(_)) || metadata["labels"][MANAGED_BY] == MANAGER,
            created: text(&metadata["creationTimestamp"]),
        }
    }
}

/// The name of an item's claim.
pub(crate) fn name_of(item: Allocation) -> String {
    match item {
        Allocation::Address(address) => address.to_string(),
        Allocation::Port(port) => port.to_string(),
    }
}

/// Where claims of items such as `item` are.
fn claims_of(server: &ServerClaims, item: Allocation) -> Result<&Arc<Store>, Status> {
    match item {
        Allocation::Address(_) => server.addresses(),
        Allocation::Port(_) => Ok(&server.ports),
    }
}

/// Claims `item` for `owner`: the revision of the claim, or `None` when it is claimed already.
pub(crate) async fn claim(
    server: &ServerClaims,
    item: Allocation,
    owner: &Owner,
    makes: &impl MakesAddresses,
) -> Result<Option<Revision>, Status> {
    let store = claims_of(server, item)?;
    let key = store.key("", &name_of(item));
    let value = match item {
        Allocation::Address(address) => makes.address(new_address(address, owner))?,
        Allocation::Port(port) => new_port(server, port, owner),
    };
    match store.create(key, value, None, Mode::Commit).await {
        Ok(object) => Ok(Some(object.revision())),
        Err(None) => Ok(None),
        Err(Some(status)) => Err(status),
    }
}

fn new_address(address: IpAddr, owner: &Owner) -> Value {
    let family = Family::of(address).name();
    json!({
        "kind": "IPAddress", "apiVersion": "networking.k8s.io/v1",
        "metadata": { "name": address.to_string(), "labels": { FAMILY: family, MANAGED_BY: MANAGER } },
        "spec": owner.reference(),
    })
}

/// As `docs/formats/node-ports.md` has it.
fn new_port(server: &ServerClaims, port: u16, owner: &Owner) -> Bytes {
    let now = forebay_reads::rfc3339(forebay_reads::timestamp(&server.clock));
    let claim = json!({
        "metadata": { "creationTimestamp": now, "name": port.to_string() },
        "spec": owner.reference(),
    });
    let members = forebay_catalog::compact(&claim);
    // The type comes first, as in every object of a kind that is built in.
    Bytes::from(format!("{{\"kind\":\"NodePort\",\"apiVersion\":\"v1\",{}", &members[1..]))
}

/// Gives `item` back if it is `owner`'s and was before `before`: what was claimed later is somebody else's.
pub(crate) async fn give_back(server: &ServerClaims, item: Allocation, owner: &Owner, before: Revision) {
    let given = async {
        let found = live_claim(server, item).await?;
        match found.filter(|claim| claim.owner.as_ref() == Some(owner) && claim.revision < before) {
            Some(claim) => drop_claim(server, item, claim.revision).await,
            None => Ok(false),
        }
    };
    if let Err(status) = given.await {
        // A claim too many is found by the next repair.
        tracing::warn!(item = name_of(item), why = status.message, "not given back yet");
    }
}

/// Removes the claim of `item` if it is still that of `revision`, and says whether it did.
pub(crate) async fn drop_claim(
    server: &ServerClaims,
    item: Allocation,
    revision: Revision,
) -> Result<bool, Status> {
    let store = claims_of(server, item)?;
    let key = store.key("", &name_of(item));
    let txn = Txn { key, expect: Expect::At(revision), op: Op::Delete };
    let outcome = store.backend.commit(txn).await.map_err(|error| errors::txn(&error))?;
    Ok(matches!(outcome, TxnResponse::Committed(_)))
}

/// The claim of `item` as the store has it now.
async fn live_claim(server: &ServerClaims, item: Allocation) -> Result<Option<Claim>, Status> {
    let store = claims_of(server, item)?;
    let found = store.live(&store.key("", &name_of(item))).await?;
    found.map(|found| read_claim(item, &found.object)).transpose()
}

/// What the Service `owner` has now; nothing when there is none.
pub(crate) async fn live_holdings(server: &ServerClaims, owner: &Owner) -> Result<Vec<Allocation>, Status> {
    let store = server.services()?;
    let Some(found) = store.live(&store.key(&owner.namespace, &owner.name)).await? else {
        return Ok(Vec::new());
    };
    holdings_of(&found.object)
}

/// What a stored Service has.
pub(crate) fn holdings_of(service: &Object) -> Result<Vec<Allocation>, Status> {
    let value = typed(service)?;
    Ok(value.as_object().map(holdings).unwrap_or_default())
}

/// The claim that `object` is.
pub(crate) fn read_claim(item: Allocation, object: &Object) -> Result<Claim, Status> {
    Ok(Claim::read(item, object.revision(), &typed(object)?))
}

/// The item that a claim named `name` is of.
pub(crate) fn item_of(name: &str, ports: bool) -> Option<Allocation> {
    if ports { name.parse().ok().map(Allocation::Port) } else { name.parse().ok().map(Allocation::Address) }
}

/// A stored object of a built-in kind as a tree.
///
/// # Errors
/// It cannot be read.
pub fn typed(object: &Object) -> Result<Value, Status> {
    let mut bytes = Vec::with_capacity(object.body_len() + 1);
    bytes.push(b'{');
    object.write_body(None, None, &mut bytes);
    serde_json::from_slice(&bytes).map_err(Status::internal)
}

/// Where a claim of `item` is in `store`.
pub(crate) fn key_in(store: &Store, item: Allocation) -> Key {
    store.key("", &name_of(item))
}
