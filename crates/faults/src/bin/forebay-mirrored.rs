//! One informer on all pods of a server, as a program of its own whose memory and time can be read from outside.
//!
//! In: the client's name and a directory with `ca.crt`, `client.crt` and `client.key`, or an admin kubeconfig. Out: a line once there is
//! a whole state, then nothing until its input ends. Never: asks anything else of the server.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Parser;
use forebay_informer::{Encoding, Factory, Options, Watched};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};

/// As a program that cares for its memory has it; the same for all of them.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
struct Args {
    /// forebay-informer, forebay-informer-protobuf, kube-rs or kube-rs-streaming
    client: String,
    #[arg(long)]
    kubeconfig: PathBuf,
}

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let args = Args::parse();
    let config = config(&args.kubeconfig).await?;
    match args.client.as_str() {
        "forebay-informer" => ours(config, Encoding::Json).await,
        "forebay-informer-protobuf" => ours(config, Encoding::Protobuf).await,
        "kube-rs" => kube_rs(config, watcher::Config::default()).await,
        "kube-rs-streaming" => kube_rs(config, watcher::Config::default().streaming_lists()).await,
        other => Err(format!("{other:?} is no client").into()),
    }
}

async fn config(path: &Path) -> Result<kube::Config, Failed> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

async fn ours(config: kube::Config, encoding: Encoding) -> Result<(), Failed> {
    let connected = forebay_connector::connect(config, forebay_connector::Options::default())?;
    let factory = Factory::new(connected, Options { encoding, ..Options::default() });
    let pods = factory.informer(&Watched::<Pod>::all())?;
    pods.synced().await?;
    println!("{}", pods.view()?.len());
    until_told().await?;
    Ok(())
}

async fn kube_rs(config: kube::Config, how: watcher::Config) -> Result<(), Failed> {
    let client = kube::Client::try_from(config)?;
    let (store, writer) = reflector::store::<Pod>();
    let events = reflector::reflector(writer, watcher(Api::all(client), how)).default_backoff();
    let running = tokio::spawn(events.for_each(|_| std::future::ready(())));
    store.wait_until_ready().await?;
    println!("{}", store.len());
    until_told().await?;
    running.abort();
    Ok(())
}

/// Waits until the input ends.
async fn until_told() -> Result<(), Failed> {
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}
