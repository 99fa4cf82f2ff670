//! One client that LISTs again and again: what each form of a LIST costs the server, beside a file server
//! that sends as much.
//!
//! In: a contender. Out: server CPU and time a LIST, and throughput, of each form, a sample a run.
//! Never: a LIST that was refused or cut counted; two forms at once.

pub(super) mod forms;
pub(super) mod writer;

use std::time::{Duration, Instant};

use hyper::header;

use crate::Error;
use crate::client::Protocol;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::scenarios::whole_lists::least_list;
use crate::server::Instance;
use crate::static_server::BODY;
use forms::{ListRequest, forms};
use writer::Writer;

const RUNS: usize = 5;
/// LISTs of a form in a run, at least; more until there are [`LISTS_MAX`] or half a settle time has passed.
const LISTS_MIN: usize = 3;
const LISTS_MAX: usize = 100;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "one client LISTs {} {}, each form at least {LISTS_MIN} times in a run; beside a static Go HTTPS server that sends one byte slice of the same size with the same cipher; {} runs",
        lab.size,
        lab.objects.about(),
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    let (dir, server) = load::start(lab, who).await?;
    let load = load::create(lab, &server, Depth::Whole).await?;
    // What is at rest is measured: a server may still be busy with what came in.
    tokio::time::sleep(lab.settle * 10).await;
    let least = least_list(lab, &load) as u64;
    let body = listed(lab, &server, &ListRequest::plain(lab, Protocol::Http2), least).await?.bytes;
    let file_server = match &lab.static_server {
        Some(program) => Some(program.start(dir.path(), body).await?),
        None => None,
    };
    for _ in 0..lab.runs(RUNS) {
        for protocol in [Protocol::Http2, Protocol::Http1] {
            beside(lab, &mut metrics, &server, file_server.as_ref(), protocol, least).await?;
        }
        for form in forms(lab) {
            let took = listed(lab, &server, &form, 1).await?;
            took.add_to(&mut metrics, &form.name);
        }
        written(lab, &mut metrics, &server).await?;
    }
    load::expect_all(lab, &server.target).await?;
    if let Some(file_server) = file_server {
        file_server.stop().await?;
    }
    server.stop().await?;
    Ok(metrics)
}

/// The identity LIST, then the slice of the file server.
async fn beside(
    lab: &Lab,
    metrics: &mut Measurements,
    server: &Instance,
    file_server: Option<&Instance>,
    protocol: Protocol,
    least: u64,
) -> Result<(), Error> {
    let form = ListRequest::plain(lab, protocol);
    let ours = listed(lab, server, &form, least).await?;
    ours.add_to(metrics, &form.name);
    add(metrics, &format!("{}: throughput", form.name), Unit::MiBPerSecond, ours.rate());
    let Some(file_server) = file_server else { return Ok(()) };
    let slice =
        ListRequest { name: format!("static Go server, {protocol:?}"), path: BODY.into(), ..form.clone() };
    let theirs = listed(lab, file_server, &slice, least).await?;
    theirs.add_to(metrics, &slice.name);
    add(metrics, &format!("{}: throughput", slice.name), Unit::MiBPerSecond, theirs.rate());
    let cpu = ours.cpu.as_secs_f64() / theirs.cpu.as_secs_f64().max(1e-3);
    add(metrics, &format!("{}: CPU, of the static server's", form.name), Unit::Times, cpu);
    add(
        metrics,
        &format!("{}: throughput, of the static server's", form.name),
        Unit::Factor,
        ours.rate() / theirs.rate(),
    );
    Ok(())
}

/// The gzip LIST while others write; what the writes cost by themselves is taken off.
async fn written(lab: &Lab, metrics: &mut Measurements, server: &Instance) -> Result<(), Error> {
    let form = ListRequest::gzip(lab);
    let writer = Writer::start(lab, &server.target, writer::RATE).await?;
    let before = server.cpus()?;
    let start = Instant::now();
    tokio::time::sleep(lab.settle).await;
    let idle: Duration = server.cpu_since(&before)?.iter().sum();
    let rate = idle.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-3);
    let mut took = listed(lab, server, &form, 1).await?;
    writer.stop().await?;
    took.cpu = Duration::from_secs_f64((took.cpu.as_secs_f64() - rate * took.time.as_secs_f64()).max(0.0));
    took.add_to(metrics, &format!("{}, {} updates a second", form.name, writer::RATE));
    Ok(())
}

/// What one LIST took, of several in a row.
#[derive(Debug)]
pub(super) struct Took {
    pub bytes: u64,
    pub time: Duration,
    pub cpu: Duration,
}

impl Took {
    pub(super) fn add_to(&self, metrics: &mut Measurements, name: &str) {
        add(metrics, &format!("{name}: server CPU"), Unit::Milliseconds, ms(self.cpu));
        add(metrics, &format!("{name}: time"), Unit::Milliseconds, ms(self.time));
        add(metrics, &format!("{name}: body"), Unit::MiB, mib(self.bytes));
    }

    /// MiB a second.
    fn rate(&self) -> f64 {
        mib(self.bytes) / self.time.as_secs_f64()
    }
}

/// LISTs in `form`, often enough for a figure; each has `least` bytes or more.
pub(super) async fn listed(
    lab: &Lab,
    server: &Instance,
    form: &ListRequest,
    least: u64,
) -> Result<Took, Error> {
    let mut client = form.connect(&server.target).await?;
    let before = server.cpus()?;
    let (start, mut lists, mut bytes) = (Instant::now(), 0, 0);
    while lists < LISTS_MIN || (lists < LISTS_MAX && start.elapsed() < lab.settle / 2) {
        let body = form.list(&mut client).await?;
        if body < least {
            return Err(Error::Answer {
                what: form.name.clone(),
                answer: format!("{body} bytes, where there are at least {least}"),
            });
        }
        (lists, bytes) = (lists + 1, bytes + body);
    }
    let (time, count) = (start.elapsed(), lists as u32);
    let cpu: Duration = server.cpu_since(&before)?.iter().sum();
    Ok(Took { bytes: bytes / lists as u64, time: time / count, cpu: cpu / count })
}

/// Headers of a LIST in JSON.
const JSON: [(header::HeaderName, &str); 1] = [(header::ACCEPT, "application/json")];
