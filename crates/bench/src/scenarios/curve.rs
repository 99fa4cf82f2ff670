//! What a LIST and an update cost as objects and watchers grow: curves, not points.
//!
//! In: a contender. Out: for each number of objects time, CPU and memory of LISTs, for each number of
//! watchers what an update to all costs, a sample a run. Never: a rival left out without a word: it is not
//! run beyond [`Lab::rival_max`] objects.

use hyper::header;

use crate::Error;
use crate::client::Protocol;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::sampler::Sampler;
use crate::scenarios::fanout::{Pod, add_fanout};
use crate::scenarios::list::forms::ListRequest;
use crate::scenarios::list::listed;
use crate::scenarios::memory::add_resident;
use crate::scenarios::whole_lists::{least_list, lists_at_once};
use crate::series::Phase;

const RUNS: usize = 5;
/// LISTs at once that memory is read over.
const AT_ONCE: usize = 10;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "one client LISTs {:?} {} over HTTP/2, then {AT_ONCE} at once over which memory is read; an update of a pod of 8 KB to {:?} watchers, each with a connection of its own; kube-apiserver up to {} objects, as it takes 9 times the JSON; {} runs",
        lab.sizes,
        lab.objects.about(),
        lab.crowds,
        lab.rival_max,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    let most = if matches!(who, Contender::Forebay(_)) { usize::MAX } else { lab.rival_max };
    for _ in 0..lab.runs(RUNS) {
        for size in lab.sizes.iter().copied().filter(|size| *size <= most) {
            eprintln!("curve: {}: {size} objects", who.name());
            objects(&mut metrics, &Lab { size, ..lab.clone() }, who).await?;
        }
        for watchers in lab.crowds.iter().copied() {
            eprintln!("curve: {}: {watchers} watchers", who.name());
            crowd(&mut metrics, &Lab { watchers, ..lab.clone() }, who).await?;
        }
    }
    Ok(metrics)
}

async fn objects(metrics: &mut Measurements, lab: &Lab, who: &Contender) -> Result<(), Error> {
    let (_dir, server) = load::start(lab, who).await?;
    let load = load::create(lab, &server, Depth::Whole).await?;
    tokio::time::sleep(lab.settle * 5).await;
    let at = objects_name(lab.size);
    add_resident(metrics, &format!("resident{at}"), &server)?;
    let least = least_list(lab, &load);
    let plain = ListRequest::plain(lab, Protocol::Http2);
    let gzip = ListRequest {
        headers: [plain.headers.clone(), vec![(header::ACCEPT_ENCODING, "gzip")]].concat(),
        ..plain.clone()
    };
    for (name, form, least) in [("LIST", plain, least as u64), ("gzip LIST", gzip, 1)] {
        let took = listed(lab, &server, &form, least).await?;
        add(metrics, &format!("{name}: server CPU{at}"), Unit::Milliseconds, ms(took.cpu));
        add(metrics, &format!("{name}: time{at}"), Unit::Milliseconds, ms(took.time));
    }
    let sampler = Sampler::start(&server)?;
    lists_at_once(lab, &server, AT_ONCE, least).await?;
    let growth = sampler.finish()?.growth(Phase::Load).unwrap_or(0);
    add(metrics, &format!("growth, {AT_ONCE} LISTs at once{at}"), Unit::MiB, mib(growth));
    server.stop().await
}

async fn crowd(metrics: &mut Measurements, lab: &Lab, who: &Contender) -> Result<(), Error> {
    let (_dir, server) = load::start(lab, who).await?;
    let mut pod = Pod::create(&server).await?;
    add_fanout(metrics, lab, &server, &mut pod, &watchers_name(lab.watchers), Protocol::Http1).await?;
    server.stop().await
}

/// How a figure's name ends that is of so many objects.
pub fn objects_name(size: usize) -> String {
    format!(", {size} objects")
}

/// Likewise, of so many watchers.
pub fn watchers_name(watchers: usize) -> String {
    format!("{watchers} watchers")
}
