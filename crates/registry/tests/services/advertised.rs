//! Where the servers of a store say that they are: what is left of one that goes while it says so.

use std::sync::Arc;
use std::time::Duration;

use forebay_backend::{Backend, BoxFuture, Layer, Txn, TxnError, TxnResponse};
use forebay_embedded::Engine;
use forebay_registry::{Config, History, Registry, ServicesConfig};
use forebay_rt::{Clock, Random, Tasks};
use tokio::sync::watch;

use crate::world::{config, engine};

const LEASE: &str = "/registry/masterleases/192.0.2.1";

/// A store where a lease is put only once that is allowed.
struct Slow {
    engine: Arc<Engine>,
    is_allowed: watch::Sender<bool>,
    // Who has begun to put one.
    begun: watch::Sender<usize>,
}

impl Layer for Slow {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        Box::pin(async move {
            if txn.key.as_str() == LEASE {
                self.begun.send_modify(|begun| *begun += 1);
                let _ = self.is_allowed.subscribe().wait_for(|is| *is).await;
            }
            self.engine.commit(txn).await
        })
    }
}

#[tokio::test]
async fn a_server_that_goes_while_it_renews_its_lease_leaves_none() {
    let store = Arc::new(Slow {
        engine: engine(),
        is_allowed: watch::Sender::new(false),
        begun: watch::Sender::new(0),
    });
    let services = ServicesConfig {
        endpoint: Some(([192, 0, 2, 1].into(), 6443)),
        ..config("10.0.0.0/24", "30000-30099")
    };
    let history = History::Shared { check_every: Duration::from_secs(3_600) };
    let config = Config { services, history, ..Config::default() };
    let (tasks, (clock, _hand)) = (Tasks::new(), Clock::manual(1_700_000_000_000));
    let registry = Registry::new(config, store.clone(), clock, Random::seeded(7), tasks.clone());
    let start = async { registry.start().await.expect("starts") };
    let go = async {
        store.begun.subscribe().wait_for(|begun| *begun > 0).await.expect("it renews");
        let withdraw = registry.withdraw();
        // It has begun as well before the lease is put.
        let allow = async { store.is_allowed.send_replace(true) };
        tokio::join!(biased; withdraw, allow)
    };
    tokio::join!(start, go);
    assert!(store.engine.get(&LEASE.into()).await.expect("open").is_none(), "nobody is led here any more");
    assert!(tasks.stop(Duration::from_secs(5)).await, "every task ends");
}
