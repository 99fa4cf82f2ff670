//! kube-rs: `watcher` with its default backoff into a `reflector` store, and its own way to tell several
//! handlers.
//!
//! In: a configuration, how it lists. Out: what `main.rs` says. Never: a brake, or an option that is not its
//! default.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{Args, Failed, Told, next_order, selector, told};

/// Events that wait for the slowest handler: as kube-rs's examples have it.
const BUFFER: usize = 256;

pub async fn run(config: kube::Config, args: &Args, how: watcher::Config) -> Result<(), Failed> {
    let client = Client::try_from(config)?;
    let mut running = JoinSet::new();
    let handlers = match args.informers {
        Some(count) => many(&client, count, &how, &mut running).await?,
        None => pods(&client, args.handlers, how, &mut running).await?,
    };
    while let Some(order) = next_order().await? {
        match order.as_str() {
            "told" => println!("{}", told(&handlers)),
            _ => println!("{}", Value::Null),
        }
    }
    running.abort_all();
    Ok(())
}

async fn pods(
    client: &Client,
    handlers: usize,
    how: watcher::Config,
    running: &mut JoinSet<()>,
) -> Result<Vec<Arc<Told>>, Failed> {
    let events = watcher(Api::<Pod>::all(client.clone()), how);
    if handlers == 0 {
        let (store, writer) = reflector::store::<Pod>();
        running.spawn(reflector::reflector(writer, events).default_backoff().for_each(|_| ready()));
        store.wait_until_ready().await?;
        println!("{}", store.len());
        return Ok(Vec::new());
    }
    let (store, writer) = reflector::store_shared::<Pod>(BUFFER);
    let mut all = Vec::new();
    for _ in 0..handlers {
        let (counts, subscriber) = (Arc::<Told>::default(), writer.subscribe().ok_or("it is shared")?);
        all.push(counts.clone());
        running.spawn(subscriber.for_each(move |pod| {
            let revision = pod.resource_version().and_then(|revision| revision.parse().ok());
            counts.take(revision.unwrap_or(0));
            ready()
        }));
    }
    running.spawn(events.default_backoff().reflect_shared(writer).for_each(|_| ready()));
    store.wait_until_ready().await?;
    println!("{}", store.len());
    Ok(all)
}

async fn many(
    client: &Client,
    count: usize,
    how: &watcher::Config,
    running: &mut JoinSet<()>,
) -> Result<Vec<Arc<Told>>, Failed> {
    let mut stores = Vec::new();
    for number in 0..count {
        let (store, writer) = reflector::store::<ConfigMap>();
        let events = watcher(Api::all(client.clone()), how.clone().labels(&selector(number)));
        running.spawn(reflector::reflector(writer, events).default_backoff().for_each(|_| ready()));
        stores.push(store);
    }
    for store in &stores {
        store.wait_until_ready().await?;
    }
    println!("{}", stores.len());
    // They live for as long as their tasks do.
    running.spawn(std::future::pending::<()>().map(move |()| drop(stores)));
    Ok(Vec::new())
}

fn ready() -> std::future::Ready<()> {
    std::future::ready(())
}
