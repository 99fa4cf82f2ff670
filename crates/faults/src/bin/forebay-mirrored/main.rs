//! Informers of a server, as a program of its own whose memory, time and connections can be read from
//! outside.
//!
//! In: the client's name, an administrator's kubeconfig, then orders on standard input, a line each. Out: a
//! line with the number of objects once there is a whole state, then a line of JSON for each order, until the
//! input ends. The program in `go/mirrored` does the same with client-go. Never: asks anything of the server
//! that the informers do not ask.

mod costs;
mod expiry;
mod kube_rs;
mod ours;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use forebay_informer::Encoding;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// As a program that cares for its memory has it; the same for all of them.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
struct Args {
    /// forebay-informer, the same with -json or -protobuf behind it, kube-rs or kube-rs-streaming
    client: String,
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Handlers that are told what happens to the pods; each counts.
    #[arg(long, default_value_t = 0)]
    handlers: usize,
    /// Instead of the pods: so many informers of ConfigMaps, each with a selector of its own. Their number is
    /// told.
    #[arg(long)]
    informers: Option<usize>,
    /// What is held above so many bytes is in a file, in the directory for temporary ones. Ours only.
    #[arg(long)]
    max_bytes: Option<usize>,
    /// Where the state is kept for the next start. Ours only.
    #[arg(long)]
    state: Option<PathBuf>,
    /// Understands `expire`: every stream ends, and the watch that follows is refused with 410. Ours only.
    #[arg(long)]
    may_expire: bool,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let args = Args::parse();
    let config = config(&args.kubeconfig).await?;
    match args.client.as_str() {
        "forebay-informer" => ours::run(config, &args, Encoding::default()).await,
        "forebay-informer-json" => ours::run(config, &args, Encoding::Json).await,
        "forebay-informer-protobuf" => ours::run(config, &args, Encoding::Protobuf).await,
        "kube-rs" => kube_rs::run(config, &args, kube::runtime::watcher::Config::default()).await,
        "kube-rs-streaming" => {
            let how = kube::runtime::watcher::Config::default().streaming_lists();
            kube_rs::run(config, &args, how).await
        }
        other => Err(format!("{other:?} is no client").into()),
    }
}

async fn config(path: &Path) -> Result<kube::Config, Failed> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

/// The selector of one of many informers: none has what another has.
fn selector(number: usize) -> String {
    format!("forebay-mirrored={number}")
}

/// What one handler was told.
#[derive(Debug, Default)]
struct Told {
    notices: AtomicU64,
    revision: AtomicU64,
}

impl Told {
    fn take(&self, revision: u64) {
        self.revision.fetch_max(revision, Ordering::Relaxed);
        self.notices.fetch_add(1, Ordering::Relaxed);
    }
}

/// Of all handlers: the newest revision that each of them was told of, and how often they were told anything.
fn told(handlers: &[Arc<Told>]) -> Value {
    let revisions = handlers.iter().map(|told| told.revision.load(Ordering::Relaxed));
    let notices: u64 = handlers.iter().map(|told| told.notices.load(Ordering::Relaxed)).sum();
    json!({"revision": revisions.min(), "notices": notices})
}

/// The next order, until there are no more. Not cancel-safe: a line that was begun is read.
async fn next_order() -> Result<Option<String>, Failed> {
    Ok(tokio::task::spawn_blocking(|| std::io::stdin().lines().next().transpose()).await??)
}
