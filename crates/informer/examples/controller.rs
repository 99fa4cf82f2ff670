//! A controller by `kube::runtime` on an informer: it copies `data.mode` of each ConfigMap to an annotation.
//!
//! `cargo run -p forebay-informer --example controller -- NAMESPACE COUNT`. In: a kubeconfig. Out: a line for
//! each that it has changed, until there were COUNT. Never: two copies of the objects.

use std::sync::Arc;
use std::time::Duration;

use forebay_informer::{Factory, Informer, Options, OwnWrites, Watched};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use tokio::sync::mpsc;

struct Context {
    maps: Informer<ConfigMap>,
    writes: OwnWrites<ConfigMap>,
    done: mpsc::Sender<String>,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Error(Failed);

async fn reconcile(
    object: Arc<PartialObjectMeta<ConfigMap>>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    let done = copy(&object, &context).await.map_err(Error)?;
    if done {
        // Whoever listens has seen enough once it is closed.
        let _closed = context.done.try_send(object.name_any());
    }
    Ok(Action::await_change())
}

async fn copy(object: &PartialObjectMeta<ConfigMap>, context: &Context) -> Result<bool, Failed> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    // With all that this program wrote of it.
    let Some(map) = context.maps.read_object(&namespace, &name).await? else { return Ok(false) };
    let Some(mode) = map.field("data.mode")?.map(|mode| mode.to_string()) else { return Ok(false) };
    if map.metadata()?.annotations.get("mode") == Some(&mode) {
        return Ok(false);
    }
    let patch = Patch::Merge(serde_json::json!({"metadata": {"annotations": {"mode": mode}}}));
    context.writes.patch(&name, &PatchParams::default(), &patch).await?;
    Ok(true)
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let namespace = args.next().unwrap_or_else(|| "default".into());
    let count: usize = args.next().map_or(Ok(1), |count| count.parse())?;
    let config = kube::Config::infer().await?;
    let connected = forebay_connector::connect(config, forebay_connector::PoolOptions::default())?;
    let api = Api::<ConfigMap>::namespaced(connected.client.clone(), &namespace);
    let factory = Factory::new(connected, Options::default());
    let maps = factory.informer(&Watched::<ConfigMap>::all().namespace(&namespace))?;
    let (done, mut changed) = mpsc::channel(16);
    let context = Arc::new(Context { writes: maps.writes_of(api), maps: maps.clone(), done });
    let again = |_: Arc<_>, _: &Error, _: Arc<Context>| Action::requeue(Duration::from_secs(1));
    let controller = maps.controller().run(reconcile, again, context);
    let running = tokio::spawn(controller.for_each(|_| std::future::ready(())));
    for _ in 0..count {
        println!("{}", changed.recv().await.ok_or("the controller ended")?);
    }
    running.abort();
    Ok(())
}
