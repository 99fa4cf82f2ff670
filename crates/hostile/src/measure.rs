//! One row on one server, and a contest of all rows: servers are started as rows need them.
//!
//! In: a contender and rows. Out: a [`Measure`] each. Never: a row left out because one before it killed the
//! server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::beside::{self, Beside, RowNeighbours};
use super::bystander::{Bystander, BystanderStats, Pace};
use super::growth::{self, Growth};
use super::request::Request;
use super::stage::{self, WATCHED};
use super::{Act, Dose, MemoryLimit, Row, Said, Stage, Tally, Who, issuer, judgement};
use forebay_contenders::Error;
use forebay_contenders::contender::Contender;
use forebay_contenders::lab::{FreshDir, Lab};
use forebay_contenders::server::Instance;
use forebay_hook::Hook;

/// How long a row may take, and how long its server may work on what was left behind.
const ROW_MAX: Duration = Duration::from_secs(60);
const QUIET_MAX: Duration = Duration::from_secs(30);
/// A server whose processes take less than this in [`LOOK`] is quiet.
const LOOK: Duration = Duration::from_millis(200);
const QUIET_CPU: Duration = Duration::from_millis(60);
/// A server that is ready so soon is started for each row. One that is not is kept until it has grown by so
/// much.
const START_SOON: Duration = Duration::from_secs(2);
const SPENT_BYTES: u64 = 128 << 20;
/// Longest wait for the answer that shows that a server is still there.
const ALIVE_MAX: Duration = Duration::from_secs(15);

/// What a row did to a server.
#[derive(Debug)]
pub struct Measure {
    pub name: &'static str,
    pub from: &'static str,
    pub dose: Dose,
    /// The same process is there, and lets an administrator in who was not there before.
    pub survived: bool,
    pub tally: Tally,
    pub resident_before: u64,
    pub growth: u64,
    pub cpu: Duration,
    pub took: Duration,
    pub seen: BystanderStats,
    /// What of it is against the law.
    pub broken: Vec<String>,
}

/// A contender that rows are tried on.
#[derive(Debug)]
pub struct Contest<'a> {
    lab: &'a Lab,
    who: &'a Contender,
    dose: Dose,
    running: Option<Running>,
    /// CPU that server and bystander take by themselves, in cores.
    idle: Option<f64>,
}

#[derive(Debug)]
struct Running {
    server: Instance,
    memory: MemoryLimit,
    beside: Beside,
    resident_at_first: u64,
    neighbours: Arc<RowNeighbours>,
    _dir: FreshDir,
    _provider: Hook,
}

impl<'a> Contest<'a> {
    pub fn new(lab: &'a Lab, who: &'a Contender) -> Contest<'a> {
        let dose = if lab.size <= 10 { Dose::Ten } else { Dose::Full };
        Contest { lab, who, dose, running: None, idle: None }
    }

    /// Tries `row`: at full size on a server of its own, unless starting one takes long; then on one that is
    /// nearly as it was.
    pub async fn run(&mut self, row: &Row) -> Result<Measure, Error> {
        let server = self.server(row).await?;
        let idle = self.idle(&server).await?;
        let (server, mut measure) = measure(row, server, self.dose, self.pace(), idle).await?;
        measure.broken.extend(judgement::broken(row, &measure));
        self.running = (measure.survived && !self.is_spent(&server)?).then_some(server);
        Ok(measure)
    }

    /// Whether the next row is better measured on a new server.
    fn is_spent(&self, running: &Running) -> Result<bool, Error> {
        let server = &running.server;
        let grown = growth::resident(server)?.saturating_sub(running.resident_at_first);
        Ok(self.dose == Dose::Full && (server.ready < START_SOON || grown > SPENT_BYTES))
    }

    async fn server(&mut self, row: &Row) -> Result<Running, Error> {
        let is_as_wanted = |running: &Running| running.memory == row.memory && running.beside == row.beside;
        if let Some(running) = self.running.take().filter(is_as_wanted) {
            return Ok(running);
        }
        let dir = self.lab.fresh_dir()?;
        let tokens = dir.path().join("tokens.csv");
        stage::write_tokens(&tokens)?;
        let (provider, issuers) = (issuer::start().await, dir.path().join("issuers.yaml"));
        issuer::write_configuration(&provider, &issuers)?;
        let (beside_flags, neighbours) = row.beside.start(dir.path()).await?;
        let mut flags = vec![
            "--enable-bootstrap-token-auth".to_owned(),
            format!("--token-auth-file={}", tokens.display()),
            format!("--authentication-config={}", issuers.display()),
        ];
        if matches!(self.who, Contender::Forebay(_)) {
            flags.push(row.memory.flag().to_owned());
        }
        if !row.beside.authorizes() {
            flags.push("--authorization-mode=RBAC".to_owned());
        }
        flags.extend(beside_flags);
        let who = self.who.with_flags(flags);
        let mut server = who.start(dir.path()).await?;
        stage::furnish(&server.target).await?;
        if row.beside.turn(&neighbours, &server.target).await? {
            server = who.ready_at(beside::READY).restart(dir.path(), server).await?;
        }
        let resident_at_first = growth::resident(&server)?;
        let (memory, beside, neighbours) = (row.memory, row.beside, Arc::new(neighbours));
        Ok(Running { server, memory, beside, resident_at_first, neighbours, _dir: dir, _provider: provider })
    }

    /// What a second without a row costs; looked at once.
    async fn idle(&mut self, running: &Running) -> Result<f64, Error> {
        if self.dose == Dose::Ten {
            return Ok(0.0);
        }
        if let Some(idle) = self.idle {
            return Ok(idle);
        }
        // What a server still does once it is ready is no measure of its rest.
        quiet(&running.server).await;
        let bystander = Bystander::start(&running.server.target, self.pace())?;
        let (growth, start) = (Growth::start(&running.server)?, Instant::now());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let idle = growth.finish()?.cpu.as_secs_f64() / start.elapsed().as_secs_f64();
        bystander.finish()?;
        self.idle = Some(idle);
        Ok(idle)
    }

    fn pace(&self) -> Pace {
        let (reads, writes) = match self.dose {
            Dose::Full => (5, 25),
            Dose::Ten => (20, 50),
        };
        Pace { reads: Duration::from_millis(reads), writes: Duration::from_millis(writes) }
    }
}

async fn measure(
    row: &Row,
    mut running: Running,
    dose: Dose,
    pace: Pace,
    idle: f64,
) -> Result<(Running, Measure), Error> {
    let server = &mut running.server;
    let stage = Stage::new(&server.target, row, dose, running.neighbours.clone());
    let size = match dose {
        Dose::Full => row.size.full,
        Dose::Ten => row.size.ten,
    };
    // A server that refuses what a row needs has not stood it, and the rows behind it are tried all the same.
    let unprepared = match row.prepare {
        Some(prepare) => prepare(stage.clone(), size).await.err(),
        None => None,
    };
    let request = match row.act {
        Act::Request(request) => Some(Arc::new(request(size))),
        Act::Scene(_) => None,
    };
    let bystander = Bystander::start(&server.target, pace)?;
    let growth = Growth::start(server)?;
    let start = Instant::now();
    let act = async {
        if unprepared.is_some() {
            return Ok(Tally::default());
        }
        match (row.act, request) {
            (Act::Scene(scene), _) => scene(stage.clone(), size).await,
            (Act::Request(_), Some(request)) => stage.ask(&request).await.map(Tally::from),
            (Act::Request(_), None) => Ok(Tally::default()),
        }
    };
    let tally = match timeout(ROW_MAX, act).await {
        Ok(Ok(tally)) => tally,
        // A server that refuses a connection, or ends a handshake, has said so.
        Ok(Err(why)) => Tally::of(Said::Closed, &why.to_string()),
        Err(_) => Tally::of(Said::Open, "nothing more within the row's time"),
    };
    let took = start.elapsed();
    let seen = bystander.finish()?;
    if dose == Dose::Full {
        quiet(server).await;
    }
    let whole = start.elapsed();
    let grown = growth.finish()?;
    let survived = is_there(server, &stage).await;
    let measure = Measure {
        name: row.name,
        from: row.from,
        dose,
        survived,
        tally,
        resident_before: grown.before,
        growth: grown.bytes(),
        cpu: grown.cpu.saturating_sub(whole.mul_f64(idle)),
        took,
        seen,
        broken: unprepared.map(|why| format!("not prepared: {why}")).into_iter().collect(),
    };
    Ok((running, measure))
}

/// Waits until the server is done with what it was left with, as long as that is worth waiting for.
async fn quiet(server: &Instance) {
    let start = Instant::now();
    while start.elapsed() < QUIET_MAX {
        let Ok(before) = server.cpus() else { return };
        tokio::time::sleep(LOOK).await;
        let Ok(since) = server.cpu_since(&before) else { return };
        if since.iter().sum::<Duration>() < QUIET_CPU {
            return;
        }
    }
}

/// Whether all processes are those that were started, and an administrator who comes now is let in.
async fn is_there(server: &mut Instance, stage: &Stage) -> bool {
    let start = Instant::now();
    while server.is_alive() {
        let stage = stage.of(Who::Admin);
        let request = Request::get(WATCHED);
        let asked = timeout(ALIVE_MAX, stage.ask(&request)).await;
        if asked.is_ok_and(|heard| heard.is_ok_and(|heard| heard.said == Said::Status(200))) {
            return true;
        }
        if start.elapsed() > ALIVE_MAX {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}
