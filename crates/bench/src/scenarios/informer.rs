//! One informer on all objects, as a program of its own: what it takes until it has them, and at rest.
//!
//! In: a contender, and the clients of [`crate::mirrored`]. Out: time, CPU and memory of each client, a
//! sample a run; ours against what it is to reach. Never: a client that has fewer objects than there are.

use std::path::Path;
use std::time::Duration;

use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::mirrored::{self, Mirrored, OURS, kubeconfig};
use crate::report::{Measurements, Unit, add, aim, mib, ms};
use crate::stored::stored;
use crate::{Error, proc};

const RUNS: usize = 3;
/// In settle times, of 2 s by default: a minute of silence until it counts as at rest.
const QUIET: u32 = 30;
/// Beside its data, in MiB: what an informer may take.
const BASE_MIB: f64 = 12.0;
/// Of the JSON: what ours may take at rest beside that, and at most at any time.
const REST_MAX: f64 = 0.2;
const PEAK_MAX: f64 = 0.3;

/// CPU that ours may take, of kube-rs's: half of it where the server sends gzip in blocks that can be kept as
/// they come.
fn cpu_max(who: &Contender) -> f64 {
    match who {
        Contender::Forebay(_) => 0.5,
        Contender::Kubernetes(_) => 1.0,
    }
}

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "an informer on all {} {}, each client in a process of its own, one after the other: until it has them, its peak, and after {:?} of silence; {} runs",
        lab.size,
        lab.objects.about(),
        lab.settle * QUIET,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    let clients = mirrored::clients()?;
    let dir = lab.fresh_dir()?;
    let server = who.start(dir.path()).await?;
    load::namespaces(&server).await?;
    load::create(lab, &server, Depth::Whole).await?;
    let stored = stored(lab, &server.target).await?;
    add(&mut metrics, "JSON", Unit::MiB, mib(stored.bytes));
    let kubeconfig = kubeconfig(dir.path(), &server)?;
    for _ in 0..lab.runs(RUNS) {
        let (mut ours, mut rival): (Option<Cpu>, Option<Cpu>) = (None, None);
        for client in &clients {
            let cpu = one(&mut metrics, lab, client, &kubeconfig, mib(stored.bytes)).await?;
            match *client {
                OURS => ours = Some(cpu),
                // Whichever of its two ways takes less.
                it if it.starts_with("kube-rs") => rival = Some(rival.map_or(cpu, |rival| rival.least(cpu))),
                _ => {}
            }
        }
        if let (Some(ours), Some(rival)) = (ours, rival) {
            let name = |what: &str| format!("{OURS}: {what}, of kube-rs's");
            let most = cpu_max(who);
            let times = |own: Duration, other: Duration| own.as_secs_f64() / other.as_secs_f64();
            aim(&mut metrics, &name("CPU until synced"), Unit::Times, times(ours.synced, rival.synced), most);
            aim(
                &mut metrics,
                &name("CPU after a quiet minute"),
                Unit::Times,
                times(ours.quiet, rival.quiet),
                most,
            );
        }
    }
    server.stop().await?;
    Ok(metrics)
}

/// What a client took from its start.
#[derive(Clone, Copy)]
struct Cpu {
    synced: Duration,
    quiet: Duration,
}

impl Cpu {
    fn least(self, other: Cpu) -> Cpu {
        Cpu { synced: self.synced.min(other.synced), quiet: self.quiet.min(other.quiet) }
    }
}

async fn one(
    metrics: &mut Measurements,
    lab: &Lab,
    client: &str,
    kubeconfig: &Path,
    json: f64,
) -> Result<Cpu, Error> {
    let mirrored = Mirrored::start_with(client, kubeconfig, &[], lab.size)?;
    let synced = mirrored.cpu()?;
    let peak = mib(proc::resident_peak(mirrored.pid())?);
    let name = |what: &str| format!("{client}: {what}");
    add(metrics, &name("synced"), Unit::Milliseconds, ms(mirrored.took));
    add(metrics, &name("CPU until synced"), Unit::Milliseconds, ms(synced));
    add(metrics, &name("peak"), Unit::MiB, peak);
    tokio::time::sleep(lab.settle * QUIET).await;
    let (rest, quiet) = (mib(proc::resident(mirrored.pid())?), mirrored.cpu()?);
    add(metrics, &name("at rest"), Unit::MiB, rest);
    add(metrics, &name("CPU after a quiet minute"), Unit::Milliseconds, ms(quiet));
    let beside = format!("(at rest - {BASE_MIB} MiB) / JSON");
    match client {
        OURS => {
            aim(metrics, &name("peak / JSON"), Unit::Times, peak / json, PEAK_MAX);
            aim(metrics, &name(&beside), Unit::Times, (rest - BASE_MIB) / json, REST_MAX);
        }
        _ => {
            add(metrics, &name("peak / JSON"), Unit::Times, peak / json);
            add(metrics, &name(&beside), Unit::Times, (rest - BASE_MIB) / json);
        }
    }
    Ok(Cpu { synced, quiet })
}
