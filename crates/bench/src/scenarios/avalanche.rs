//! A server dies under full load, and its clients come to its neighbours.
//!
//! In: a contender, three times on one etcd. Out: what was asked for, how long it took until everybody had
//! everything again, what that cost in memory, and what heartbeats took meanwhile; a sample a run. Never: a
//! server that is helped: who runs out of memory has died, and is started again as one that was killed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::JoinSet;

use super::outcome::Results;
use crate::arrivals::{Arrivals, SentRequest, Span, WINDOW};
use crate::caller::Caller;
use crate::client::{Protocol, RestConfig};
use crate::contender::Contender;
use crate::draw::Draw;
use crate::fleet::Fleet;
use crate::heartbeats::Heartbeats;
use crate::informers::{self, Asking, Informers};
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::objects::Objects;
use crate::reader::{self, Source, Standing};
use crate::report::{Measurements, Unit, add, aim, mib, ms};
use crate::updates::Updated;
use crate::{Error, users};

const RUNS: usize = 3;
const SERVERS: usize = 3;
/// Readers that are without their objects at a time while they are rolled out.
const ROLLOUT: usize = 16;
/// Between two looks at who is synced.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait until all are synced; beyond it, those that are not are counted.
const SYNC_MAX: Duration = Duration::from_secs(300);
/// Longest wait for one write that tells who is synced.
const MARK_MAX: Duration = Duration::from_secs(60);

/// What is drawn: what was asked for in each window of a phase.
#[derive(Clone, Debug)]
pub struct Wave {
    pub phase: &'static str,
    /// Requests a second, in each [`WINDOW`] since the server was killed.
    pub rates: Vec<f64>,
}

/// What happens, in this order.
const BLOWS: [(&str, Blow); 4] = [
    ("killed", Blow::KillFirst),
    ("killed again", Blow::KillFirst),
    ("fullest killed", Blow::KillFullest),
    ("all begin anew", Blow::Anew),
];

#[derive(Clone, Copy)]
enum Blow {
    KillFirst,
    /// The one with the most connections.
    KillFullest,
    /// All readers forget what they know, as a DaemonSet's do that is rolled out without restraint.
    Anew,
}

struct Scene {
    fleet: Fleet,
    standings: Vec<Arc<Standing>>,
    informers: Option<Informers>,
    arrivals: Arc<Arrivals>,
    heartbeats: Heartbeats,
    marker: Caller,
    marked: Arc<Updated>,
    /// The same instant on both clocks: client-go tells of the other.
    begun: (Instant, SystemTime),
    source: Source,
    // Both end with the scene.
    readers: JoinSet<()>,
    _writer: JoinSet<()>,
}

pub(super) fn about(lab: &Lab) -> String {
    let o = &lab.overload;
    format!(
        "three servers on one etcd behind a TCP balancer that knows who is ready, each held to {} MiB; {} pods of about 8 KB, {} writes of them a second; {} readers with client-go's rules and {} informers of client-go, a connection each, all of all pods; {} nodes renew a Lease every 10 s. One server is killed (-9), comes back after {:?}, is killed again, then the one with the most connections, and at last all readers begin anew at once; {} runs",
        o.cage >> 20,
        o.pods,
        o.writes,
        o.readers,
        o.informers,
        o.readers,
        o.span,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Results, Error> {
    let mut outcome = Results::default();
    for _ in 0..lab.runs(RUNS) {
        let dir = lab.fresh_dir()?;
        let fleet = Fleet::start(lab, who, dir.path(), SERVERS).await?;
        eprintln!("each server is held to its bound by {}", fleet.bound());
        let mut scene = Scene::set(lab, fleet).await?;
        let mut waves = Vec::new();
        let metrics = &mut outcome.metrics;
        let start = Instant::now();
        let synced = scene.roll_out(lab).await?;
        add(metrics, "rolled out", Unit::Milliseconds, ms(synced.duration_since(start)));
        eprintln!("rolled out after {:?}", synced.duration_since(start));
        for (name, blow) in BLOWS {
            scene.calm(lab.overload.span).await?;
            waves.push(scene.blow(metrics, name, blow).await?);
        }
        let most = scene.fleet.memory().iter().map(|place| place.most).max().unwrap_or(0);
        add(metrics, "peak memory of a server", Unit::MiB, mib(most));
        add(metrics, "servers that died by themselves", Unit::Count, scene.fleet.deaths() as f64);
        outcome.waves.push(waves);
    }
    Ok(outcome)
}

impl Scene {
    /// Loads the pods and starts whoever writes.
    async fn set(lab: &Lab, fleet: Fleet) -> Result<Scene, Error> {
        let first = fleet.first();
        load::namespaces(&first).await?;
        let lab = &Lab { size: lab.overload.pods, objects: Objects::Pods, ..lab.clone() };
        load::create(lab, &first, Depth::Whole).await?;
        let quiet = fleet.target(&fleet.quiet)?;
        let source = Source {
            target: fleet.target(&fleet.crowd)?,
            protocol: Protocol::Http2,
            path: Objects::Pods.path().into(),
            authorization: Some(format!("Bearer {}", users::AGENT).into()),
        };
        let mut writer = JoinSet::new();
        let marked = Updated::of(lab);
        if lab.overload.writes > 0 {
            writer.spawn(write(quiet.clone(), marked.clone(), lab.overload.writes));
        }
        let marker = Caller::new(quiet.clone(), Protocol::Http1, users::CONTROLLER);
        let heartbeats = Heartbeats::start(&quiet, lab.overload.readers)?;
        Ok(Scene {
            fleet,
            standings: Vec::new(),
            informers: None,
            arrivals: Arc::default(),
            heartbeats,
            marker,
            marked,
            begun: (Instant::now(), SystemTime::now()),
            source,
            readers: JoinSet::new(),
            _writer: writer,
        })
    }

    /// Starts the readers, few at a time, and the informers; when all had all.
    async fn roll_out(&mut self, lab: &Lab) -> Result<Instant, Error> {
        let mut coming: VecDeque<Arc<Standing>> = VecDeque::new();
        for _ in 0..lab.overload.readers {
            while coming.len() >= ROLLOUT {
                self.pause().await?;
                coming.retain(|standing| !standing.is_open.load(Ordering::Relaxed));
            }
            let standing = Arc::new(Standing::default());
            self.read(standing.clone());
            coming.push_back(standing);
        }
        self.informers = self.client_go(lab)?;
        let mark = self.mark().await?;
        self.synced(mark).await?;
        Ok(Instant::now())
    }

    fn read(&mut self, standing: Arc<Standing>) {
        let draw = Draw::of("reader", self.standings.len() as u64);
        self.readers.spawn(reader::run(self.source.clone(), draw, standing.clone(), self.arrivals.clone()));
        self.standings.push(standing);
    }

    fn client_go(&self, lab: &Lab) -> Result<Option<Informers>, Error> {
        if lab.overload.informers == 0 {
            return Ok(None);
        }
        let Some(program) = informers::program() else {
            eprintln!(
                "!!! client-go is LEFT OUT: forebay-crowd-client-go is not beside this program; `cargo xtask bench` builds it, with Go"
            );
            return Ok(None);
        };
        let authority = self.fleet.shared.join("ca.crt");
        let port = self.fleet.crowd.port;
        let asking = Asking { port, authority: &authority, token: users::APP, resource: "pods" };
        Informers::start(&program, lab.overload.informers.min(users::APPS), &asking).map(Some)
    }

    /// Deals a blow; what came of it until all were synced and all servers there.
    async fn blow(
        &mut self,
        metrics: &mut Measurements,
        name: &'static str,
        blow: Blow,
    ) -> Result<Wave, Error> {
        self.fleet.begin_peaks();
        let deaths = self.fleet.deaths();
        let begin = Instant::now();
        let victim = match blow {
            Blow::KillFirst => Some(0),
            Blow::KillFullest => Some(self.fleet.fullest()),
            Blow::Anew => None,
        };
        match victim {
            Some(victim) => self.fleet.kill(victim),
            None => {
                self.readers = JoinSet::new();
                for _ in 0..std::mem::take(&mut self.standings).len() {
                    self.read(Arc::default());
                }
            }
        }
        let mark = self.mark().await?;
        let behind = self.synced(mark).await?;
        let synced = Instant::now();
        while !self.fleet.is_whole() && begin.elapsed() < SYNC_MAX {
            self.pause().await?;
        }
        let end = Instant::now();
        self.take_informers()?;
        let (storm, all) = (self.arrivals.span(begin, synced), self.arrivals.span(begin, end));
        let grown = self.fleet.memory().into_iter().enumerate().filter(|(number, _)| Some(*number) != victim);
        let grown = grown.map(|(_, place)| place.peak.saturating_sub(place.at_begin)).max().unwrap_or(0);
        let beats = self.heartbeats.span(begin, end);

        let mut count =
            |what: &str, count: usize| add(metrics, &format!("{name}: {what}"), Unit::Count, count as f64);
        count("requests", all.requests);
        count("lists and watch-lists", all.whole);
        count("429", all.too_many);
        count("requests lost or refused", all.lost);
        count("not synced in time", behind);
        count("servers that died besides", self.fleet.deaths() - deaths);
        count("heartbeats missed", beats.missed);
        let mut time =
            |what: &str, time| add(metrics, &format!("{name}: {what}"), Unit::Milliseconds, ms(time));
        time("until all are synced", synced - begin);
        time("heartbeats p50", beats.latency(0.5));
        aim(metrics, &format!("{name}: heartbeats p99"), Unit::Milliseconds, ms(beats.latency(0.99)), 100.0);
        aim(metrics, &format!("{name}: arrivals in 2 s, peak to mean"), Unit::Times, storm.peak(), 1.3);
        aim(metrics, &format!("{name}: a neighbour's growth"), Unit::MiB, mib(grown), 64.0);
        eprintln!(
            "{name}: {} requests, {} of them for all; {behind} not synced after {:?}; {} deaths",
            all.requests,
            all.whole,
            synced - begin,
            self.fleet.deaths() - deaths
        );
        Ok(Wave { phase: name, rates: rates(&all) })
    }

    /// Lets time pass, with an eye on the servers.
    async fn calm(&mut self, time: Duration) -> Result<(), Error> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.pause().await?;
        }
        Ok(())
    }

    async fn pause(&mut self) -> Result<(), Error> {
        tokio::time::sleep(LOOK).await;
        self.fleet.tend()
    }

    /// Writes something, and the revision that it has: who has that has all that was before.
    async fn mark(&mut self) -> Result<u64, Error> {
        let begun = Instant::now();
        loop {
            match self.marked.by(&mut self.marker).await {
                Ok(revision) => return Ok(revision),
                Err(why) if begun.elapsed() > MARK_MAX => return Err(why),
                Err(_) => self.pause().await?,
            }
        }
    }

    /// Waits until everybody is at `mark`; how many were not within [`SYNC_MAX`].
    async fn synced(&mut self, mark: u64) -> Result<usize, Error> {
        let begun = Instant::now();
        loop {
            let is_behind = |standing: &&Arc<Standing>| {
                !standing.is_open.load(Ordering::Relaxed) || standing.revision.load(Ordering::Relaxed) < mark
            };
            let mut behind = self.standings.iter().filter(is_behind).count();
            // The others are asked over a pipe: last.
            if behind == 0
                && let Some(informers) = &mut self.informers
            {
                let progress = informers.look()?;
                let is_behind = progress.synced < informers.count || progress.revision < mark;
                behind = usize::from(is_behind);
            }
            if behind == 0 || begun.elapsed() > SYNC_MAX {
                return Ok(behind);
            }
            self.pause().await?;
        }
    }

    /// Notes what client-go has asked for.
    fn take_informers(&mut self) -> Result<(), Error> {
        let Some(informers) = &mut self.informers else { return Ok(()) };
        let (instant, time) = self.begun;
        let begun = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for asked in informers.asked()? {
            let since = Duration::from_millis(asked.at_unix_ms).saturating_sub(begun);
            self.arrivals.note(SentRequest { at: instant + since, kind: asked.kind(), code: asked.code });
        }
        Ok(())
    }
}

fn rates(span: &Span) -> Vec<f64> {
    span.windows.iter().map(|count| *count as f64 / WINDOW.as_secs_f64()).collect()
}

/// Writes pods, one after the other at a rate, whoever serves; what fails is left to the next.
async fn write(target: RestConfig, objects: Arc<Updated>, rate: usize) {
    let mut caller = Caller::new(target, Protocol::Http1, users::CONTROLLER);
    let mut due = tokio::time::interval(Duration::from_secs(1) / rate as u32);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        due.tick().await;
        let _ = objects.by(&mut caller).await;
    }
}
