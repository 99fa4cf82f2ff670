//! One user asks for more than anybody, beside a controller and a cluster's nodes; and everybody asks for
//! more than the server can give.
//!
//! In: a contender on etcd, with flow control and without. Out: what the others' requests take before and
//! meanwhile, what the greedy one is given, growth, and how much is done of 1, 2 and 3 times what can be
//! done; a sample a run; who died, after how long and of what. Never: a refusal that is tried again in
//! secret: what is not done in time is not done; a run that ends because a server died.

use std::path::Path;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::contender::Contender;
use crate::controller::{Controller, RATE};
use crate::fleet::Fleet;
use crate::greed::Greed;
use crate::heartbeats::Heartbeats;
use crate::lab::Lab;
use crate::load::{self, Depth, percentile};
use crate::objects::Objects;
use crate::offer::{IN_TIME, Offer};
use crate::report::{Measurements, Unit, add, aim, mib, ms};
use crate::scenarios::outcome::Results;
use crate::server::Instance;
use crate::{Error, users};

const RUNS: usize = 3;
/// Both ways of each server.
const WAYS: [(&str, &[&str]); 2] = [("with", &[]), ("without", &["--enable-priority-and-fairness=false"])];
/// Times the best rate.
const OVERLOADS: [u32; 3] = [1, 2, 3];
/// How long the greedy user takes to be there, at most.
const GREED_MAX: Duration = Duration::from_secs(90);
/// How long one that died takes to serve again, at most.
const AGAIN_MAX: Duration = Duration::from_secs(180);
/// How long the end of a process may be in coming to be known, once its connections are gone.
const KNOWN_MAX: Duration = Duration::from_secs(2);
/// Between two looks at the server.
const LOOK: Duration = Duration::from_millis(50);
/// Of the best goodput so much is to be kept.
const KEPT: f64 = 0.85;

pub(super) fn about(lab: &Lab) -> String {
    let o = &lab.overload;
    format!(
        "one server on etcd, held to {} MiB, with flow control and with --enable-priority-and-fairness=false; {} pods of about 8 KB, {} Secrets of 1 MB; {} nodes renew a Lease every 10 s, a controller asks {RATE} times a second. Then {} users LIST a namespace's pods as a Table at 1, 2 and 3 times the best rate, answers within {IN_TIME:?} count; at last one user LISTs all pods with 16 clients, {} readers ask for all Secrets and read nothing, {} watches; {:?} each; {} runs",
        o.cage >> 20,
        o.pods,
        o.list_mb,
        o.nodes,
        users::APPS,
        o.standing,
        o.watches,
        lab.overload.span,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Results, Error> {
    let mut results = Results::default();
    for _ in 0..lab.runs(RUNS) {
        for (way, flags) in WAYS {
            eprintln!("{way} flow control");
            let who = who.with_flags(flags.iter().map(|flag| (*flag).to_owned()).collect());
            let dir = lab.fresh_dir()?;
            one(&mut results, lab, &who, way, dir.path()).await?;
        }
    }
    Ok(results)
}

/// That a server dies is a figure of it, and what cannot be measured for that is left out.
async fn one(results: &mut Results, lab: &Lab, who: &Contender, way: &str, dir: &Path) -> Result<(), Error> {
    let mut fleet = Fleet::start(lab, who, dir, 1).await?;
    let ended = measure(&mut results.metrics, lab, &mut fleet, way).await;
    if let Err(why) = ended {
        let seen = Instant::now();
        while fleet.deaths() == 0 && seen.elapsed() < KNOWN_MAX {
            pass(&mut fleet, LOOK).await?;
        }
        if fleet.deaths() == 0 {
            return Err(why);
        }
        let why = why.to_string();
        let why = why.lines().next().unwrap_or_default();
        results.mishaps.push(format!("{way} flow control: the rest was not measured: {why}"));
    }
    add(&mut results.metrics, &format!("{way}: deaths"), Unit::Count, fleet.deaths() as f64);
    results.mishaps.extend(fleet.died().map(|death| format!("{way} flow control: {death}")));
    Ok(())
}

async fn measure(metrics: &mut Measurements, lab: &Lab, fleet: &mut Fleet, way: &str) -> Result<(), Error> {
    let first = fleet.first();
    beside(fleet, fill(lab, first)).await??;
    let target = fleet.direct()?;
    let heartbeats = Heartbeats::start(&target, lab.overload.nodes)?;
    let controller = Controller::start(&target)?;
    // The Leases are there before anything is measured.
    pass(fleet, lab.overload.span).await?;

    fleet.begin_peaks();
    let begin = Instant::now();
    pass(fleet, lab.overload.span).await?;
    add_others(metrics, &format!("{way}, alone"), (&heartbeats, &controller), begin);

    eprintln!("overload");
    serves(fleet).await?;
    let mut offer = Offer::open(&target).await?;
    let best = beside(fleet, offer.best(lab.overload.span)).await?;
    add(metrics, &format!("{way}, goodput: the best"), Unit::PerSecond, best);
    for times in OVERLOADS {
        let begin = Instant::now();
        let goodput = beside(fleet, offer.at(best * f64::from(times), lab.overload.span)).await?;
        let name = format!("{way}, goodput at {times} times");
        add(metrics, &name, Unit::PerSecond, goodput);
        // Nothing done is infinitely little of it, which a report cannot show.
        aim(metrics, &format!("{name}: best to it"), Unit::Times, best / goodput.max(0.01), 1.0 / KEPT);
        add_others(metrics, &name, (&heartbeats, &controller), begin);
    }

    drop(offer);
    eprintln!("greed");
    serves(fleet).await?;
    fleet.begin_peaks();
    let deaths = fleet.deaths();
    let greed = Greed::start(&target, &lab.overload)?;
    let came = Instant::now();
    while !greed.is_there() && came.elapsed() < GREED_MAX {
        pass(fleet, LOOK).await?;
    }
    let begin = Instant::now();
    pass(fleet, lab.overload.span).await?;
    let name = format!("{way}, beside the greedy");
    add_others(metrics, &name, (&heartbeats, &controller), begin);
    let grown = fleet.memory().iter().map(|place| place.peak.saturating_sub(place.at_begin)).sum();
    add(metrics, &format!("{name}: growth"), Unit::MiB, mib(grown));
    add(metrics, &format!("{name}: deaths"), Unit::Count, (fleet.deaths() - deaths) as f64);
    let gains = [
        ("lists", &greed.gains.lists),
        ("lists refused", &greed.gains.refused),
        ("lists failed", &greed.gains.failed),
        ("watches", &greed.gains.watches),
        ("lists that stand still", &greed.gains.standing),
    ];
    for (what, gained) in gains {
        add(
            metrics,
            &format!("{way}, the greedy: {what}"),
            Unit::Count,
            gained.load(Ordering::Relaxed) as f64,
        );
    }
    let most = fleet.memory().iter().map(|place| place.most).sum();
    add(metrics, &format!("{way}: peak memory"), Unit::MiB, mib(most));
    Ok(())
}

/// The pods, and what those ask for that stand still.
async fn fill(lab: &Lab, first: Instance) -> Result<(), Error> {
    load::namespaces(&first).await?;
    for (objects, size) in [(Objects::Pods, lab.overload.pods), (Objects::Secrets1M, lab.overload.list_mb)] {
        load::create(&Lab { objects, size, ..lab.clone() }, &first, Depth::Whole).await?;
    }
    Ok(())
}

/// Does `work` with an eye on the server.
async fn beside<T>(fleet: &mut Fleet, work: impl Future<Output = T>) -> Result<T, Error> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => {
                fleet.tend()?;
                return Ok(done);
            }
            () = tokio::time::sleep(LOOK) => fleet.tend()?,
        }
    }
}

/// Waits until the server serves, which may have died.
async fn serves(fleet: &mut Fleet) -> Result<(), Error> {
    let since = Instant::now();
    while !fleet.is_whole() {
        if since.elapsed() > AGAIN_MAX {
            let answer = format!("not ready again within {AGAIN_MAX:?}");
            return Err(Error::Answer { what: "the server".into(), answer });
        }
        pass(fleet, LOOK).await?;
    }
    Ok(())
}

/// Lets time pass, with an eye on the server.
async fn pass(fleet: &mut Fleet, time: Duration) -> Result<(), Error> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        tokio::time::sleep(LOOK.min(time)).await;
        fleet.tend()?;
    }
    Ok(())
}

fn add_others(
    metrics: &mut Measurements,
    name: &str,
    (heartbeats, controller): (&Heartbeats, &Controller),
    begin: Instant,
) {
    let end = Instant::now();
    let beats = heartbeats.span(begin, end);
    let latencies = controller.span(begin, end);
    aim(metrics, &format!("{name}: heartbeats p99"), Unit::Milliseconds, ms(beats.latency(0.99)), 100.0);
    add(metrics, &format!("{name}: heartbeats missed"), Unit::Count, beats.missed as f64);
    add(metrics, &format!("{name}: controller p99"), Unit::Milliseconds, ms(percentile(&latencies, 0.99)));
}
