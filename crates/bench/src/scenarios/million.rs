//! A million objects in one process: loaded, LISTed, watched, restarted.
//!
//! In: a contender. Out: what each step takes in time and memory, a sample a run. The rival is loaded with a
//! fiftieth, and what a million would take there is that ratio to the JSON, said so in the name of the
//! figure. Never: a run that lost an object.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::Error;
use crate::client::{Client, Protocol};
use crate::contender::Contender;
use crate::draw::Draw;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::sampler::Sampler;
use crate::scenarios::list::forms::ListRequest;
use crate::scenarios::list::writer::some_path;
use crate::scenarios::memory::{add_resident, resident};
use crate::scenarios::restart::list_one;
use crate::series::Phase;
use crate::server::Instance;
use crate::stored::{Stored, stored};
use crate::watchers::Watchers;

const RUNS: usize = 1;
/// The rival has one in so many.
const FIFTIETH: usize = 50;
/// In settle times, of 2 s by default: a minute.
const QUIET: u32 = 30;
/// An event that has not come by then is lost.
const WAIT: Duration = Duration::from_secs(30);
const EXTRAPOLATED: &str = "resident, quiet (theirs: of a fiftieth, times fifty)";

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} {} in one process: loaded, LISTed whole, watched, restarted; {:?} of silence before memory is read; kube-apiserver and etcd with a fiftieth of them; {} runs",
        lab.million,
        lab.objects.about(),
        lab.settle * QUIET,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        match who {
            Contender::Forebay(_) => {
                all(&mut metrics, &Lab { size: lab.million, ..lab.clone() }, who).await?
            }
            Contender::Kubernetes(_) => {
                let size = lab.million.div_ceil(FIFTIETH);
                part(&mut metrics, &Lab { size, ..lab.clone() }, who).await?;
            }
        }
    }
    Ok(metrics)
}

async fn part(metrics: &mut Measurements, lab: &Lab, who: &Contender) -> Result<(), Error> {
    let (_dir, server) = load::start(lab, who).await?;
    load::create(lab, &server, Depth::Whole).await?;
    tokio::time::sleep(lab.settle * QUIET).await;
    add(metrics, EXTRAPOLATED, Unit::MiB, mib(resident(&server)?) * FIFTIETH as f64);
    server.stop().await
}

async fn all(metrics: &mut Measurements, lab: &Lab, who: &Contender) -> Result<(), Error> {
    let (dir, mut server) = load::start(lab, who).await?;
    eprintln!("million: creating {}", lab.size);
    let load = load::create(lab, &server, Depth::Whole).await?;
    add(metrics, "loaded: objects", Unit::PerSecond, lab.size as f64 / load.took.as_secs_f64());
    add_resident(metrics, "resident, loaded", &server)?;
    add(metrics, "on disk", Unit::MiB, mib(dir.bytes()));
    quiet(metrics, lab, &server, EXTRAPOLATED).await?;
    eprintln!("million: listing");
    let held = stored(lab, &server.target).await?;
    add_stored(metrics, &held, mib(resident(&server)?));
    if held.objects != lab.size {
        return Err(Error::Answer {
            what: format!("{} were acknowledged", lab.size),
            answer: format!("{held:?}"),
        });
    }
    for form in [ListRequest::plain(lab, Protocol::Http2), ListRequest::gzip(lab)] {
        list(metrics, &server, &form).await?;
    }
    watch(metrics, lab, &server).await?;
    eprintln!("million: restarting");
    let asked = Instant::now();
    server.stop().await?;
    add(metrics, "SIGTERM to gone", Unit::Milliseconds, ms(asked.elapsed()));
    server = who.start(dir.path()).await?;
    add(metrics, "restarted: ready", Unit::Milliseconds, ms(server.ready));
    add(
        metrics,
        "restarted: first LIST",
        Unit::Milliseconds,
        ms(server.ready + list_one(lab, &server).await?),
    );
    quiet(metrics, lab, &server, "resident, restarted and quiet").await?;
    load::expect_all(lab, &server.target).await?;
    server.stop().await
}

async fn quiet(metrics: &mut Measurements, lab: &Lab, server: &Instance, name: &str) -> Result<(), Error> {
    tokio::time::sleep(lab.settle * QUIET).await;
    add_resident(metrics, name, server)
}

fn add_stored(metrics: &mut Measurements, held: &Stored, resident: f64) {
    add(metrics, "JSON", Unit::MiB, mib(held.bytes));
    add(metrics, "block ratio", Unit::Factor, held.block_ratio);
    add(metrics, "resident / JSON, after reading it in pages", Unit::Times, resident / mib(held.bytes));
}

async fn list(metrics: &mut Measurements, server: &Instance, form: &ListRequest) -> Result<(), Error> {
    let mut client = form.connect(&server.target).await?;
    let sampler = Sampler::start(server)?;
    let before = server.cpus()?;
    let start = Instant::now();
    let bytes = form.list(&mut client).await?;
    let (took, cpu) = (start.elapsed(), server.cpu_since(&before)?.iter().sum());
    let growth = sampler.finish()?.growth(Phase::Load).unwrap_or(0);
    let name = &form.name;
    add(metrics, &format!("{name}: time"), Unit::Milliseconds, ms(took));
    add(metrics, &format!("{name}: server CPU"), Unit::Milliseconds, ms(cpu));
    add(metrics, &format!("{name}: growth"), Unit::MiB, mib(growth));
    add(metrics, &format!("{name}: body"), Unit::MiB, mib(bytes));
    Ok(())
}

/// An update, and when a watcher of all objects has it.
async fn watch(metrics: &mut Measurements, lab: &Lab, server: &Instance) -> Result<(), Error> {
    let mut client = Client::connect(&server.target, Protocol::Http1).await?;
    let mut draw = Draw::of("watched", 0);
    let mut touch = async |number: usize| {
        let path = some_path(lab.objects, lab.size, &mut draw);
        let body =
            format!(r#"{{"metadata":{{"annotations":{{"touched.example.com/by":"watch-{number}"}}}}}}"#);
        client.patch(&path, Bytes::from(body)).await?.expect("update", &[200])
    };
    let touched = touch(0).await?;
    let object: serde_json::Value = serde_json::from_slice(&touched.body)
        .map_err(|e| Error::Answer { what: "update".into(), answer: e.to_string() })?;
    let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let path = format!("{}?watch=1&resourceVersion={revision}", lab.objects.path());
    let mut watchers = Watchers::open(&server.target, Protocol::Http1, 1, |_| path.clone()).await?;
    let sent = Instant::now();
    touch(1).await?;
    let delays = watchers.events(1, sent, WAIT).await?;
    add(metrics, "watched: an update's delay", Unit::Milliseconds, ms(delays[0]));
    Ok(())
}
