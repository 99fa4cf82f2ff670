//! What an informer does once it has its state, path by path: tells handlers, looks up, decodes, lists again,
//! starts again, shares connections.
//!
//! In: a contender, and the clients of [`crate::mirrored`]. Out: CPU, memory, lists and connections, a sample
//! a run; ours against what it is to reach, and its rivals where they do the same. Never: a wait for
//! something that may not come without a limit.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::mirrored::{self, Mirrored, OURS, kubeconfig};
use crate::report::{Measurements, Unit, add, aim, mib, ms};
use crate::server::Instance;
use crate::updates::{self, Updated};
use crate::{Error, proc};

const RUNS: usize = 3;
/// In settle times, of 2 s by default: 20 s of silence until most objects are at rest.
const QUIET: u32 = 10;
/// Handlers of one informer.
const HANDLERS: usize = 10;
/// Updates that they are told of in each of the two ways, where there are so many objects or more.
const UPDATES: usize = 10_000;
/// Clients that write at once in the second.
const WRITERS: usize = 16;
/// Objects that were changed a moment before, and so are in plain form.
const HOT: usize = 1_000;
/// An event that was not told so long after the last write is lost.
const WAIT: Duration = Duration::from_secs(60);

/// What ours is to reach, of the issue that asked for it: CPU of an event, and of a look.
const EVENT_MAX_US: f64 = 20.0;
const GET_MAX_US: f64 = 2.0;
/// To what serde takes for the same bytes.
const TYPED_MAX: f64 = 1.5;
/// To what is resident before.
const RELIST_PEAK_MAX: f64 = 1.1;
const START_MAX_MS: f64 = 1_000.0;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "informers on {} pods, each client in a process of its own: {} updates told to {HANDLERS} handlers, looks at objects, a list after 410, a start from disk; then {} informers of ConfigMaps, each with a selector of its own; {} runs",
        lab.size,
        UPDATES.min(lab.size),
        lab.watchers,
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
    let kubeconfig = kubeconfig(dir.path(), &server)?;
    let stage = Stage { lab, server: &server, kubeconfig: &kubeconfig, pods: Updated::of(lab) };
    for _ in 0..lab.runs(RUNS) {
        for client in &clients {
            stage.events(&mut metrics, client).await?;
        }
        stage.looks(&mut metrics).await?;
        stage.list_again(&mut metrics).await?;
        stage.start_again(&mut metrics).await?;
        for client in &clients {
            stage.connections(&mut metrics, client, who)?;
        }
    }
    server.stop().await?;
    Ok(metrics)
}

struct Stage<'a> {
    lab: &'a Lab,
    server: &'a Instance,
    kubeconfig: &'a Path,
    pods: Arc<Updated>,
}

impl Stage<'_> {
    fn start(&self, client: &str, flags: &[&str]) -> Result<Mirrored, Error> {
        Mirrored::start_with(client, self.kubeconfig, flags, self.lab.size)
    }

    async fn settle(&self) {
        tokio::time::sleep(self.lab.settle * QUIET).await;
    }

    /// An event told to all handlers: one written after the other, then by many at once.
    async fn events(&self, metrics: &mut Measurements, client: &str) -> Result<(), Error> {
        let mut mirrored = self.start(client, &["--handlers", &HANDLERS.to_string()])?;
        self.settle().await;
        let count = UPDATES.min(self.lab.size);
        for (way, writers) in [("one by one", 1), ("many at once", WRITERS)] {
            let (before, told) = (mirrored.cpu()?, notices(&mirrored.ask("told")?));
            let last = updates::write(&self.pods, self.server, count, writers).await?;
            let answer = until_told(&mut mirrored, last).await?;
            let cpu = mirrored.cpu()?.saturating_sub(before);
            let each = cpu.as_secs_f64() * 1e6 / count as f64;
            let name = format!("{client}: an event to {HANDLERS} handlers, {way}");
            match client {
                OURS => aim(metrics, &name, Unit::Microseconds, each, EVENT_MAX_US),
                _ => add(metrics, &name, Unit::Microseconds, each),
            }
            // Fewer than there were updates: some were told as the sum of several.
            let each = (notices(&answer) - told) / (HANDLERS * count) as f64;
            add(metrics, &format!("{name}: told of each"), Unit::Factor, each);
        }
        Ok(())
    }

    /// Looks at objects of ours, some of which were changed a moment before.
    async fn looks(&self, metrics: &mut Measurements) -> Result<(), Error> {
        let mut mirrored = self.start(OURS, &["--handlers", "1"])?;
        self.settle().await;
        let last = updates::write(&self.pods, self.server, HOT.min(self.lab.size), WRITERS).await?;
        until_told(&mut mirrored, last).await?;
        let costs = mirrored.ask("costs")?;
        let inflated = costs["at rest"]["bytes"].as_f64().unwrap_or(0.0);
        for kind in ["hot", "at rest"] {
            let costs = &costs[kind];
            // A small lab has none at rest.
            let (Some(get), Some(typed), Some(serde)) =
                (costs["get"].as_f64(), costs["typed"].as_f64(), costs["serde"].as_f64())
            else {
                continue;
            };
            let name = |what: &str| format!("{kind}: {what}");
            add(metrics, &name("objects"), Unit::Count, costs["objects"].as_f64().unwrap_or(0.0));
            aim(metrics, &name("get by key"), Unit::Microseconds, get, GET_MAX_US);
            for what in ["get and field", "typed", "serde"] {
                add(metrics, &name(what), Unit::Microseconds, costs[what].as_f64().unwrap_or(0.0));
            }
            let beside = if kind == "hot" { 0.0 } else { inflated };
            if kind != "hot" {
                add(metrics, &name("a block inflated"), Unit::Microseconds, inflated);
            }
            let times = (typed - beside) / serde;
            aim(metrics, &name("typed, beside the block, of serde's"), Unit::Times, times, TYPED_MAX);
        }
        Ok(())
    }

    /// The history is gone, and nothing has changed.
    async fn list_again(&self, metrics: &mut Measurements) -> Result<(), Error> {
        let mut mirrored = self.start(OURS, &["--handlers", "1", "--may-expire"])?;
        self.settle().await;
        let told = notices(&mirrored.ask("told")?);
        let (pid, before) = (mirrored.pid(), mib(proc::resident(mirrored.pid())?));
        if !proc::forget_peak(pid) {
            return Err(Error::Proc(format!("the peak of {pid} cannot be begun anew")));
        }
        let cpu = mirrored.cpu()?;
        let answer = mirrored.ask("expire")?;
        let peak = mib(proc::resident_peak(pid)?);
        let cpu = mirrored.cpu()?.saturating_sub(cpu);
        let name = |what: &str| format!("a list of what is unchanged: {what}");
        add(metrics, &name("lists"), Unit::Count, answer["lists"].as_f64().unwrap_or(f64::NAN));
        aim(metrics, &name("notices"), Unit::Count, notices(&answer) - told, 0.0);
        add(metrics, &name("resident before"), Unit::MiB, before);
        aim(metrics, &name("peak, of that"), Unit::Times, peak / before, RELIST_PEAK_MAX);
        add(metrics, &name("CPU"), Unit::Milliseconds, ms(cpu));
        Ok(())
    }

    /// A program that ended begins again with its state.
    async fn start_again(&self, metrics: &mut Measurements) -> Result<(), Error> {
        let dir = self.lab.fresh_dir()?;
        let state = dir.path().to_string_lossy().into_owned();
        let flags = ["--state", state.as_str()];
        self.start(OURS, &flags)?.end()?;
        let name = |what: &str| format!("a start with state on disk: {what}");
        add(metrics, &name("on disk"), Unit::MiB, mib(dir.bytes()));
        let mut mirrored = self.start(OURS, &flags)?;
        aim(metrics, &name("synced"), Unit::Milliseconds, ms(mirrored.took), START_MAX_MS);
        add(metrics, &name("CPU"), Unit::Milliseconds, ms(mirrored.cpu()?));
        tokio::time::sleep(self.lab.settle).await;
        let lists = mirrored.ask("asked")?["lists"].as_f64().unwrap_or(f64::NAN);
        aim(metrics, &name("lists"), Unit::Count, lists, 0.0);
        Ok(())
    }

    /// Many informers of one factory.
    fn connections(&self, metrics: &mut Measurements, client: &str, who: &Contender) -> Result<(), Error> {
        let count = self.lab.watchers;
        let mirrored =
            Mirrored::start_with(client, self.kubeconfig, &["--informers", &count.to_string()], count)?;
        let open = proc::connections(mirrored.pid(), self.server.target.address.port()) as f64;
        let name = format!("{client}: connections of {count} informers");
        // A stream each: kube-apiserver allows 100 on a connection, forebay 250, and some are kept for other
        // requests.
        let most = match who {
            Contender::Forebay(_) => 5.0,
            Contender::Kubernetes(_) => 11.0,
        };
        match client {
            OURS => aim(metrics, &name, Unit::Count, open, most),
            _ => add(metrics, &name, Unit::Count, open),
        }
        Ok(())
    }
}

fn notices(answer: &Value) -> f64 {
    answer["notices"].as_f64().unwrap_or(f64::NAN)
}

/// Waits until every handler was told of `revision`; what they were told by then.
async fn until_told(mirrored: &mut Mirrored, revision: u64) -> Result<Value, Error> {
    let since = Instant::now();
    loop {
        let answer = mirrored.ask("told")?;
        if answer["revision"].as_u64() >= Some(revision) {
            return Ok(answer);
        }
        if since.elapsed() > WAIT {
            return Err(Error::Answer {
                what: format!("revision {revision} told"),
                answer: answer.to_string(),
            });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
