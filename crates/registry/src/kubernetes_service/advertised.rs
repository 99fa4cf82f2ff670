//! Where the servers of a store are to be found: each keeps a lease with its own address, and the union of
//! them is where the `kubernetes` Service leads to. So servers on one store, real ones among them, do not
//! overwrite each other's endpoints, and one that is gone is left out when its lease ends.
//!
//! In: this server's address. Out: everybody's. A lease is the key `masterleases/<address>` with an Endpoints
//! object, which is put again every few seconds for a little longer than that. Where nobody else can be on
//! the store there is no lease.
//! Source: kubernetes v1.36.3 `controlplane/reconcilers`.

use std::net::IpAddr;
use std::sync::Arc;

use forebay_apimachinery::{Key, Status};
use forebay_backend::{Expect, Op, Range, Txn, TxnResponse, Versioned};
use forebay_catalog::errors;
use forebay_catalog::limits::ROUNDS_MAX;
use serde_json::{Value, json};

use crate::context::Context;
use crate::identity::lease;
use crate::kubernetes_service as kubernetes;
use crate::limits::{ADVERTISED_LEASE, ADVERTISED_SERVERS_MAX};
use crate::neighbours;

/// The addresses of all servers that are there, this one's included; it says so with this call.
pub(super) async fn advertise(context: &Arc<Context>, own: IpAddr) -> Result<Vec<String>, Status> {
    if context.is_alone() {
        return Ok(vec![own.to_string()]);
    }
    renew_lease(context, own).await?;
    let mut all = advertised(context).await?;
    // Read after the lease was put: it is among them unless that took very long.
    if all.is_empty() {
        all.push(own.to_string());
    }
    Ok(all)
}

/// Leads nobody here any more, before this server ends. Others go on to be led to.
pub(crate) async fn withdraw(context: &Arc<Context>) {
    let Some((own, _)) = context.config.services.endpoint else { return };
    if context.is_alone() {
        return;
    }
    if let Err(status) = end_lease(context, own).await {
        tracing::warn!(why = status.message, "this server is still led to, for as long as its lease lasts");
    }
}

async fn end_lease(context: &Arc<Context>, own: IpAddr) -> Result<(), Status> {
    context.kubernetes.withdraw();
    // Whoever is about to renew it does so first; nobody does after that.
    let _turn = context.kubernetes.turn.acquire().await;
    remove_lease(context, own).await?;
    neighbours::end(context).await?;
    lease::end(context).await?;
    let rest = advertised(context).await?;
    // The last one leaves everything as it is: whoever comes next writes it anew.
    if rest.is_empty() { Ok(()) } else { kubernetes::settle_advertised(context, &rest).await }
}

async fn remove_lease(context: &Arc<Context>, own: IpAddr) -> Result<(), Status> {
    let key = lease_key(context, own);
    for _ in 0..ROUNDS_MAX {
        let Some(found) = lease(context, &key).await? else { return Ok(()) };
        let txn = Txn { key: key.clone(), expect: Expect::At(found.revision), op: Op::Delete };
        match context.backend.commit(txn).await.map_err(|error| errors::txn(&error))? {
            TxnResponse::Committed(_) => return Ok(()),
            TxnResponse::Conflict(_) => {}
        }
    }
    Err(somebody_else_keeps(own))
}

async fn renew_lease(context: &Arc<Context>, own: IpAddr) -> Result<(), Status> {
    let key = lease_key(context, own);
    for _ in 0..ROUNDS_MAX {
        let found = lease(context, &key).await?;
        // Each time something else, or it would not be put.
        let generation = found.as_ref().map_or(0, |found| generation(&found.value)) + 1;
        let value = json!({
            "metadata": { "generation": generation }, "subsets": [{ "addresses": [{ "ip": own.to_string() }] }],
        });
        // Values begin with their type.
        let value = format!(r#"{{"kind":"Endpoints","apiVersion":"v1",{}"#, &value.to_string()[1..]);
        let expect = found.map_or(Expect::Absent, |found| Expect::At(found.revision));
        let op = Op::Put { value: value.into(), ttl: Some(ADVERTISED_LEASE) };
        match context.backend.commit(Txn { key: key.clone(), expect, op }).await {
            Ok(TxnResponse::Committed(_)) => return Ok(()),
            Ok(TxnResponse::Conflict(_)) => {}
            Err(error) => return Err(errors::txn(&error)),
        }
    }
    Err(somebody_else_keeps(own))
}

async fn lease(context: &Arc<Context>, key: &Key) -> Result<Option<Versioned>, Status> {
    context.backend.get(key).await.map_err(|error| errors::read(&error))
}

/// The addresses that leases hold, in order.
async fn advertised(context: &Arc<Context>) -> Result<Vec<String>, Status> {
    let mut rest =
        Range { prefix: leases(context), start_after: None, limit: ADVERTISED_SERVERS_MAX, at: None };
    let mut all: Vec<String> = Vec::new();
    // A page may be far shorter than its limit. Who is left out of the list is led to by nobody.
    loop {
        let page = context.backend.range(rest.clone()).await.map_err(|error| errors::read(&error))?;
        all.extend(page.items.iter().filter_map(|(_, found)| address(&found.value)));
        rest.limit = rest.limit.saturating_sub(page.items.len());
        if !page.more || page.items.is_empty() || rest.limit == 0 {
            break;
        }
        rest.pass(&page);
    }
    all.sort();
    all.dedup();
    Ok(all)
}

fn leases(context: &Arc<Context>) -> Key {
    Key::from(format!("{}/masterleases/", context.config.storage_prefix))
}

fn lease_key(context: &Arc<Context>, own: IpAddr) -> Key {
    Key::from(format!("{}{own}", leases(context)))
}

fn somebody_else_keeps(own: IpAddr) -> Status {
    Status::internal(format!("somebody else keeps the lease of {own}"))
}

fn generation(lease: &[u8]) -> i64 {
    let value: Value = serde_json::from_slice(lease).unwrap_or_default();
    value["metadata"]["generation"].as_i64().unwrap_or(0)
}

fn address(lease: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(lease).ok()?;
    let address = value["subsets"][0]["addresses"][0]["ip"].as_str()?;
    address.parse::<IpAddr>().ok().map(|address| address.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_backend::{Backend, BoxFuture, Layer, RangePage, ReadError};
    use forebay_embedded::{Engine, Options};
    use forebay_rt::{Clock, Random, Tasks};
    use forebay_watchcache::History;

    use std::time::Duration;

    use super::*;
    use crate::Registry;
    use crate::config::Config;

    /// A store whose pages are of one key, as etcd's are behind one with large values.
    struct OneByOne(Arc<Engine>);

    impl Layer for OneByOne {
        fn below(&self) -> Arc<dyn Backend> {
            self.0.clone()
        }

        fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
            self.0.range(Range { limit: 1, ..range })
        }
    }

    #[tokio::test]
    async fn all_servers_are_led_to_however_short_the_pages_of_the_store_are() {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let store = Arc::new(OneByOne(Engine::open_in_memory(options).expect("opens")));
        let history = History::Shared { check_every: Duration::from_secs(3_600) };
        let (config, tasks) = (Config { history, ..Config::default() }, Tasks::new());
        let registry = Registry::new(config, store, clock, Random::seeded(7), tasks.clone());
        let servers = [1, 2, 3].map(|number: u8| IpAddr::from([192, 0, 2, number]));
        for own in servers {
            renew_lease(&registry.0, own).await.expect("renewed");
        }
        let all = advertise(&registry.0, servers[0]).await.expect("read");
        assert_eq!(all, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
        assert!(tasks.stop(Duration::from_secs(60)).await, "every task ends");
    }
}
