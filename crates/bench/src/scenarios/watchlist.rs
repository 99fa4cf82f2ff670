//! Informers that start all at once, and ask for the initial state as a watch: how fast it comes and what it
//! takes, beside LISTs of the same.
//!
//! In: a contender. Out: throughput, CPU and growth of each way, a sample a run. Never: an initial state
//! without its end.

use std::time::Instant;

use tokio::task::JoinSet;

use crate::Error;
use crate::client::Client;
use crate::contender::Contender;
use crate::initial::{Initial, initial};
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::sampler::Sampler;
use crate::scenarios::list::forms::ListRequest;
use crate::series::Phase;
use crate::server::Instance;

const RUNS: usize = 5;
/// Informers at once.
const INFORMERS: usize = 10;

/// How the state is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    List,
    WatchList,
    GzipList,
    GzipWatchList,
}

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{INFORMERS} clients ask for {} {} at once, by LIST and by watch with sendInitialEvents, JSON, plain and gzip, {:?}; MiB/s are of plain bytes; {} runs",
        lab.size,
        lab.objects.about(),
        lab.protocol,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    let (_dir, server) = load::start(lab, who).await?;
    load::create(lab, &server, Depth::Whole).await?;
    for _ in 0..lab.runs(RUNS) {
        for way in [Way::List, Way::WatchList, Way::GzipList, Way::GzipWatchList] {
            tokio::time::sleep(lab.settle * 2).await;
            add_way(&mut metrics, lab, &server, way).await?;
        }
    }
    server.stop().await?;
    Ok(metrics)
}

async fn add_way(metrics: &mut Measurements, lab: &Lab, server: &Instance, way: Way) -> Result<(), Error> {
    let sampler = Sampler::start(server)?;
    let before = server.cpus()?;
    let start = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..INFORMERS {
        running.spawn(ask(lab.clone(), server.target.clone(), way));
    }
    let mut all = Initial::default();
    while let Some(ended) = running.join_next().await {
        let own = ended.map_err(|e| Error::Connection(e.to_string()))??;
        all = Initial { wire: all.wire + own.wire, plain: all.plain + own.plain };
    }
    let (took, cpu) = (start.elapsed(), server.cpu_since(&before)?.iter().sum());
    let growth = sampler.finish()?.growth(Phase::Load).unwrap_or(0);
    let name = way.name();
    if way != Way::GzipList {
        add(metrics, &format!("{name}: throughput"), Unit::MiBPerSecond, mib(all.plain) / took.as_secs_f64());
    }
    add(metrics, &format!("{name}: time"), Unit::Milliseconds, ms(took));
    add(metrics, &format!("{name}: server CPU of each"), Unit::Milliseconds, ms(cpu) / INFORMERS as f64);
    add(metrics, &format!("{name}: growth"), Unit::MiB, mib(growth));
    add(metrics, &format!("{name}: sent to each"), Unit::MiB, mib(all.wire) / INFORMERS as f64);
    Ok(())
}

async fn ask(lab: Lab, target: crate::client::RestConfig, way: Way) -> Result<Initial, Error> {
    let form = match way {
        Way::List => ListRequest::plain(&lab, lab.protocol),
        Way::GzipList => ListRequest::gzip(&lab),
        Way::WatchList | Way::GzipWatchList => {
            return initial(&target, lab.protocol, lab.objects.path(), way == Way::GzipWatchList).await;
        }
    };
    let mut client = Client::connect(&target, lab.protocol).await?;
    let bytes = form.list(&mut client).await?;
    Ok(Initial { wire: bytes, plain: bytes })
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::List => "LIST",
            Way::WatchList => "watch list",
            Way::GzipList => "gzip LIST",
            Way::GzipWatchList => "gzip watch list",
        }
    }
}
