//! How long a test server takes to start: `cargo run --release -p forebay-testing --example start`.
//!
//! Out: the median and the ends of a hundred starts, one after the other, each measured to its client and to
//! its first answer; then the time for a hundred at once, and what the process holds with them.
#![allow(clippy::disallowed_methods, reason = "it measures the real clock")]

use std::fs;
use std::time::{Duration, Instant};

use forebay_testing::TestServer;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use tokio::task::JoinSet;

type Failed = Box<dyn std::error::Error + Send + Sync>;

const STARTS: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let first = start().await?;
    println!("first start of the process: {}, first answer after {}", ms(first.0), ms(first.1));
    let (mut started, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (to_client, to_answer, server) = start().await?;
        started.push(to_client);
        answered.push(to_answer);
        server.stop().await;
    }
    println!("{STARTS} starts, one after the other: {}", ends(started));
    println!("  to the first answer of each: {}", ends(answered));
    drop(first);

    let before = resident_mib();
    let since = Instant::now();
    let mut starting = JoinSet::new();
    for _ in 0..STARTS {
        starting.spawn(start());
    }
    let servers: Vec<_> = starting.join_all().await.into_iter().collect::<Result<_, _>>()?;
    println!("{} at once, each with an answer: {}", servers.len(), ms(since.elapsed()));
    if let (Some(before), Some(now)) = (before, resident_mib()) {
        println!("  resident with them: {now} MiB, {before} MiB before");
    }
    Ok(())
}

/// Starts a server and asks it once.
async fn start() -> Result<(Duration, Duration, TestServer), Failed> {
    let since = Instant::now();
    let server = TestServer::start().await?;
    let to_client = since.elapsed();
    let namespaces: Api<Namespace> = Api::all(server.client());
    namespaces.get("default").await?;
    Ok((to_client, since.elapsed(), server))
}

fn ends(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |place: usize| times.get(place).copied().map_or_else(String::new, ms);
    format!("median {}, from {} to {}", at(times.len() / 2), at(0), at(times.len().saturating_sub(1)))
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Where the system tells.
fn resident_mib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib >> 10)
}
