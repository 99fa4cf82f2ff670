//! Many clients LIST all pods at once: what that costs in memory, and what they get.
//!
//! In: a contender. Out: memory before, in and after the storm, rate, CPU and failures, a sample a run; and
//! the series. Never: a run that lost a pod; a failed list left out of the figures.

use std::time::Duration;

use crate::Error;
use crate::client::Client;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::lists::{self, Storm};
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::sampler::Sampler;
use crate::scenarios::list::writer::Writer;
use crate::scenarios::outcome::Results;
use crate::scenarios::whole_lists::least_list;
use crate::series::{MemorySeries, Phase};
use crate::server::Instance;

const RUNS: usize = 5;
/// How long it is quiet before and after the storm, in settle times: 10 s of the default 2 s.
const QUIET: u32 = 5;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} clients with an {:?} connection each LIST all of {} {} at once (JSON, no limit), {} times: by turns at resourceVersion=0 and consistent; VmRSS every 100 ms; quiet for {:?} before and after; {} runs",
        lab.listers,
        lab.protocol,
        lab.size,
        lab.objects.about(),
        lists::waves(lab),
        quiet(lab),
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Results, Error> {
    let mut outcome = Results::default();
    for _ in 0..lab.runs(RUNS) {
        let (_dir, server) = load::start(lab, who).await?;
        let (storm, series) = weather(lab, &server).await?;
        add_memory(&mut outcome.metrics, &series, quiet(lab))?;
        add_storm(&mut outcome.metrics, "", &server, &storm);
        written(lab, &mut outcome.metrics, &server).await?;
        outcome.series.push(series);
        load::expect_all(lab, &server.target).await?;
        server.stop().await?;
    }
    Ok(outcome)
}

/// All phases of one run.
async fn weather(lab: &Lab, server: &Instance) -> Result<(Storm, MemorySeries), Error> {
    let sampler = Sampler::start(server)?;
    let load = load::create(lab, server, Depth::Whole).await?;
    sampler.enter(Phase::Quiet);
    tokio::time::sleep(quiet(lab)).await;
    sampler.enter(Phase::Storm);
    let storm = lists::storm(lab, server, least_list(lab, &load)).await?;
    sampler.enter(Phase::After);
    tokio::time::sleep(quiet(lab)).await;
    let series = sampler.finish()?;
    if let Some(why) = &storm.first_failure {
        eprintln!("{} of {} lists failed, the first: {why}", storm.failed(), storm.failed() + storm.whole());
    }
    Ok((storm, series))
}

/// The storm once more, while somebody writes.
async fn written(lab: &Lab, metrics: &mut Measurements, server: &Instance) -> Result<(), Error> {
    if lab.storm_writes == 0 {
        return Ok(());
    }
    let beside = format!(", {} updates a second", lab.storm_writes);
    let before = pieces(lab, server).await?;
    let writer = Writer::start(lab, &server.target, lab.storm_writes).await?;
    let storm = lists::storm(lab, server, 1).await?;
    writer.stop().await?;
    let after = pieces(lab, server).await?;
    add_storm(metrics, &beside, server, &storm);
    if let Some((before, after)) = before.zip(after) {
        let [made, shared] = [0, 1].map(|at| after[at] - before[at]);
        add(metrics, &format!("pieces made{beside}"), Unit::Count, made);
        add(metrics, &format!("pieces shared{beside}"), Unit::Count, shared);
    }
    Ok(())
}

/// Pieces of lists that were made, and that were shared, so far; of who counts them.
async fn pieces(lab: &Lab, server: &Instance) -> Result<Option<[f64; 2]>, Error> {
    let text = Client::connect(&server.target, lab.protocol).await?.get("/metrics").await?;
    let text = String::from_utf8_lossy(&text.expect("metrics", &[200])?.body).into_owned();
    let count = |how: &str| {
        let name = format!("forebay_shared_list_pieces_total{{how=\"{how}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(name.as_str())?.parse::<f64>().ok())
    };
    Ok(count("made").zip(count("shared")).map(|(made, shared)| [made, shared]))
}

fn quiet(lab: &Lab) -> Duration {
    lab.settle * QUIET
}

fn add_memory(metrics: &mut Measurements, series: &MemorySeries, quiet: Duration) -> Result<(), Error> {
    let missing = || Error::Proc("a phase has no reading".into());
    let loaded = series.last(Phase::Quiet).ok_or_else(missing)?;
    let peak = series.peak(Phase::Storm).ok_or_else(missing)?;
    let growth = series.growth(Phase::Storm).ok_or_else(missing)?;
    let after = series.last(Phase::After).ok_or_else(missing)?;
    let own_growth = series.own_peaks(Phase::Storm).into_iter().zip(&loaded.resident);
    let own_growth: Vec<u64> = own_growth.map(|(peak, loaded)| peak.saturating_sub(*loaded)).collect();

    let mut add_all = |name: &str, total: u64, own: &[u64]| {
        add(metrics, name, Unit::MiB, mib(total));
        if own.len() > 1 {
            for (process, bytes) in series.processes.iter().zip(own) {
                add(metrics, &format!("{name}: {process}"), Unit::MiB, mib(*bytes));
            }
        }
    };
    add_all("resident loaded", loaded.total(), &loaded.resident);
    add_all("resident peak in the storm", peak.total(), &series.own_peaks(Phase::Storm));
    add_all("growth in the storm", growth, &own_growth);
    add_all(&format!("resident {} s after", quiet.as_secs()), after.total(), &after.resident);
    Ok(())
}

/// - `beside`: ends each name.
fn add_storm(metrics: &mut Measurements, beside: &str, server: &Instance, storm: &Storm) {
    let mut add = |name: &str, unit, sample| add(metrics, &format!("{name}{beside}"), unit, sample);
    let whole = storm.whole() as f64;
    let each = |time: Duration| ms(time) / whole;
    add("LISTs", Unit::PerSecond, whole / storm.took.as_secs_f64());
    add("LIST throughput", Unit::MiBPerSecond, mib(storm.returned) / storm.took.as_secs_f64());
    add("LIST body", Unit::MiB, mib(storm.returned) / whole);
    add("LIST latency p50", Unit::Milliseconds, ms(storm.latency(0.5)));
    add("LIST latency max", Unit::Milliseconds, ms(storm.latency(1.0)));
    add("server CPU per LIST", Unit::Milliseconds, each(storm.server_cpu.iter().sum()));
    if storm.server_cpu.len() > 1 {
        for (process, cpu) in server.processes.iter().zip(&storm.server_cpu) {
            add(&format!("server CPU per LIST: {}", process.name), Unit::Milliseconds, each(*cpu));
        }
    }
    add("client CPU per LIST", Unit::Milliseconds, each(storm.client_cpu));
    add("LISTs whole", Unit::Count, whole);
    add("LISTs failed", Unit::Count, storm.failed() as f64);
    add("LISTs failed: 429", Unit::Count, storm.refused as f64);
    add("LISTs failed: other status", Unit::Count, storm.other_status as f64);
    add("LISTs failed: reset or late", Unit::Count, storm.reset as f64);
}
