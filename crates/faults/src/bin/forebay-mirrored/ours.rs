//! Ours: `forebay-informer` over connections of `forebay-connector`, as its documentation has it.
//!
//! In: a configuration. Out: what `main.rs` says; it knows all orders. Never: an option that is not its
//! default, but where the state is kept, in what encoding objects are asked for, and above how much they are
//! in a file.

use std::sync::Arc;
use std::time::Duration;

use forebay_connector::Connected;
use forebay_informer::{AtLimit, Encoding, Factory, Handling, Informer, Notice, Options, Watched};
use forebay_rt::Clock;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Value, json};

use crate::expiry::Expiry;
use crate::{Args, Failed, Told, costs, next_order, selector, told};

/// How long saving a state may take at the end.
const STOP_MAX: Duration = Duration::from_secs(120);
/// Between two looks at whether something has come.
const LOOK: Duration = Duration::from_millis(10);
/// Handlers are told within that what a list has brought.
const AFTER_A_LIST: Duration = Duration::from_secs(2);

pub async fn run(config: kube::Config, args: &Args, encoding: Encoding) -> Result<(), Failed> {
    let Connected { client, pool } =
        forebay_connector::connect(config, forebay_connector::PoolOptions::default())?;
    let expiry = Expiry::default();
    let client = if args.may_expire { expiry.before(client) } else { client };
    let spill = || AtLimit::Spill { dir: std::env::temp_dir(), max_bytes: u64::MAX };
    let max_bytes = args.max_bytes.map(|held| (held, spill()));
    let options = Options { state_dir: args.state.clone(), encoding, max_bytes, ..Options::default() };
    let factory = Factory::new(Connected { client, pool }, options);
    let Some(count) = args.informers else {
        let mirrored = Mirrored::begin(&factory, args, expiry).await?;
        mirrored.obey().await?;
        // What is to be saved is that of informers that are held.
        factory.stop(STOP_MAX).await;
        return Ok(());
    };
    many(&factory, count).await
}

async fn many(factory: &Factory, count: usize) -> Result<(), Failed> {
    let one = |number| factory.informer(&Watched::<ConfigMap>::all().labels(&selector(number)));
    let all: Vec<Informer<ConfigMap>> = (0..count).map(one).collect::<Result<_, _>>()?;
    for informer in &all {
        informer.synced().await?;
    }
    println!("{}", all.len());
    while next_order().await?.is_some() {
        println!("{}", Value::Null);
    }
    Ok(())
}

/// The pods.
struct Mirrored {
    pods: Informer<Pod>,
    told: Vec<Arc<Told>>,
    _handlings: Vec<Handling>,
    expiry: Expiry,
}

impl Mirrored {
    async fn begin(factory: &Factory, args: &Args, expiry: Expiry) -> Result<Mirrored, Failed> {
        let pods = factory.informer(&Watched::<Pod>::all())?;
        let told: Vec<Arc<Told>> = (0..args.handlers).map(|_| Arc::default()).collect();
        let handlings = told.iter().map(|told| handler(&pods, told.clone())).collect();
        pods.synced().await?;
        println!("{}", pods.view()?.len());
        Ok(Mirrored { pods, told, _handlings: handlings, expiry })
    }

    async fn obey(&self) -> Result<(), Failed> {
        while let Some(order) = next_order().await? {
            let answer = match order.as_str() {
                "told" => told(&self.told),
                "asked" => json!({"lists": self.lists()}),
                "costs" => {
                    let pods = self.pods.clone();
                    tokio::task::spawn_blocking(move || costs::of(&pods)).await??
                }
                "expire" => self.expire().await,
                other => return Err(format!("{other:?} is no order").into()),
            };
            println!("{answer}");
        }
        Ok(())
    }

    /// Requests for a whole state.
    fn lists(&self) -> u64 {
        self.pods.stats().iter().map(|(_, stats)| stats.pages_asked + stats.watch_lists_asked).sum()
    }

    fn states_after_expiry(&self) -> u64 {
        self.pods.stats().iter().filter_map(|(_, stats)| stats.states.get("expired")).sum()
    }

    /// Has the history gone, and waits until a whole state was had again and told.
    async fn expire(&self) -> Value {
        let (states, lists) = (self.states_after_expiry(), self.lists());
        self.expiry.expire();
        let clock = Clock::system();
        while self.states_after_expiry() == states {
            clock.sleep(LOOK).await;
        }
        clock.sleep(AFTER_A_LIST).await;
        let mut answer = told(&self.told);
        answer["lists"] = (self.lists() - lists).into();
        answer
    }
}

fn handler(pods: &Informer<Pod>, told: Arc<Told>) -> Handling {
    pods.handle("counts", move |notice| {
        match &notice {
            Notice::Added(pod) | Notice::Updated { new: pod, .. } | Notice::Deleted(pod) => {
                told.take(pod.revision().get());
            }
            Notice::Synced
            | Notice::Relisted { .. }
            | Notice::LetGo { .. }
            | Notice::Resync(_)
            | Notice::Ended => {}
        }
        std::future::ready(())
    })
}
