//! LISTs by many clients at once, some of them slow: what the server grows by while it has them all.
//!
//! In: a contender. Out: growth, and what the fast ones got, a sample a run. The slow ones read at their pace
//! all the time that the fast ones take and some seconds longer, and then hang up. Never: a slow reader that
//! its kernel reads ahead for.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Method, header};
use tokio::task::JoinSet;

use crate::Error;
use crate::client::{Client, RestConfig};
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::sampler::Sampler;
use crate::scenarios::whole_lists::{least_list, lists_at_once};
use crate::series::Phase;
use crate::server::Instance;

const RUNS: usize = 5;
/// All clients, and how many of them are slow.
const READERS: usize = 100;
const SLOW: usize = 20;
/// What a slow one reads in a second.
const SLOW_BYTES: usize = 16 << 10;
/// How long it is quiet before, and how long the slow ones go on alone, in settle times: 10 s of the default
/// 2 s.
const QUIET: u32 = 5;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{READERS} clients LIST {} {} at once, {SLOW} of them at {} KiB/s over HTTP/1.1, the others as fast as they can, {:?}; VmRSS every 100 ms until {:?} after the last of the fast; {} runs",
        lab.size,
        lab.objects.about(),
        SLOW_BYTES >> 10,
        lab.protocol,
        lab.settle * QUIET,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    let (_dir, server) = load::start(lab, who).await?;
    let load = load::create(lab, &server, Depth::Whole).await?;
    for _ in 0..lab.runs(RUNS) {
        tokio::time::sleep(lab.settle * QUIET).await;
        storm(&mut metrics, lab, &server, least_list(lab, &load)).await?;
    }
    load::expect_all(lab, &server.target).await?;
    server.stop().await?;
    Ok(metrics)
}

async fn storm(metrics: &mut Measurements, lab: &Lab, server: &Instance, least: usize) -> Result<(), Error> {
    let sampler = Sampler::start(server)?;
    let mut slow = JoinSet::new();
    for _ in 0..SLOW {
        slow.spawn(read_slowly(server.target.clone(), lab.objects.path()));
    }
    let storm = lists_at_once(lab, server, READERS - SLOW, least).await?;
    tokio::time::sleep(lab.settle * QUIET).await;
    let held = slow.len() - std::iter::from_fn(|| slow.try_join_next()).count();
    slow.abort_all();
    let series = sampler.finish()?;
    add(metrics, "growth", Unit::MiB, mib(series.growth(Phase::Load).unwrap_or(0)));
    add(
        metrics,
        "fast readers: throughput",
        Unit::MiBPerSecond,
        mib(storm.returned) / storm.took.as_secs_f64(),
    );
    add(metrics, "fast readers: latency max", Unit::Milliseconds, ms(storm.latency(1.0)));
    add(metrics, "fast readers: LISTs whole", Unit::Count, storm.whole() as f64);
    add(metrics, "fast readers: LISTs failed", Unit::Count, storm.failed() as f64);
    add(metrics, "slow readers: still reading", Unit::Count, held as f64);
    Ok(())
}

/// Reads a LIST at [`SLOW_BYTES`] a second.
async fn read_slowly(target: RestConfig, path: &'static str) -> Result<(), Error> {
    let mut client = Client::connect_narrow(&target, SLOW_BYTES).await?;
    let accept = [(header::ACCEPT, "application/json")];
    let response = client.start_with(Method::GET, path, &accept, Bytes::new()).await?;
    let mut body = response.into_body();
    let (start, mut bytes) = (Instant::now(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Error::Connection(e.to_string()))?;
        bytes += frame.data_ref().map_or(0, Bytes::len);
        let due = Duration::from_secs_f64(bytes as f64 / SLOW_BYTES as f64);
        tokio::time::sleep(due.saturating_sub(start.elapsed())).await;
    }
    // Small enough to have been read: it waits for the others as one that reads.
    std::future::pending().await
}
