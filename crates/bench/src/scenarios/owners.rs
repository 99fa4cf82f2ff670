//! Objects that three managers wrote, with their managedFields: what these take at rest, and what they cost
//! whoever LISTs, with them and without.
//!
//! In: a contender. Out: memory beside the JSON, loaded and quiet, the same without managedFields beside it,
//! and server CPU of the forms of a LIST, a sample a run. Never: a LIST that lost an object.

use hyper::header;

use super::list::forms::ListRequest;
use super::list::listed;
use super::resident::{BASE_MIB, LOADED, QUIET, rest};
use crate::Error;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib};
use crate::server::Instance;
use crate::stored::stored;

const RUNS: usize = 5;
/// KEP-5958.
const DROPPING: &str = "application/json;drop=metadata.managedFields";

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} {}, written by three managers each, whose managedFields stay, and the same without; VmRSS {:?} after the load and after {:?} more of silence; then one client LISTs; {} runs",
        lab.size,
        lab.objects.about(),
        lab.settle * LOADED,
        lab.settle * QUIET,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let (_dir, server) = load::start(lab, who).await?;
        load::create(lab, &server, Depth::Whole).await?;
        let quiet = rest(&mut metrics, &server, "without: resident quiet", lab.settle * QUIET).await?;
        let without = of_stored(lab, &mut metrics, &server, "without", &[("quiet", quiet)]).await?;
        server.stop().await?;

        let (_dir, server) = load::start(lab, who).await?;
        load::create(lab, &server, Depth::Owned).await?;
        let loaded = rest(&mut metrics, &server, "owned: resident loaded", lab.settle * LOADED).await?;
        let quiet = rest(&mut metrics, &server, "owned: resident quiet", lab.settle * QUIET).await?;
        let readings = [("loaded", loaded), ("quiet", quiet)];
        of_stored(lab, &mut metrics, &server, "owned", &readings).await?;
        listed_by(lab, &mut metrics, (who, &server), without).await?;
        load::expect_all(lab, &server.target).await?;
        server.stop().await?;
    }
    Ok(metrics)
}

/// What there is of JSON, and what is resident beside it; bytes of all objects.
async fn of_stored(
    lab: &Lab,
    metrics: &mut Measurements,
    server: &Instance,
    what: &str,
    readings: &[(&str, f64)],
) -> Result<u64, Error> {
    let stored = stored(lab, &server.target).await?;
    add(metrics, &format!("{what}: JSON"), Unit::MiB, mib(stored.bytes));
    add(metrics, &format!("{what}: block ratio"), Unit::Factor, stored.block_ratio);
    for (when, resident) in readings {
        let share = (resident - BASE_MIB) / mib(stored.bytes);
        add(metrics, &format!("{what}: (resident - {BASE_MIB} MiB) / JSON, {when}"), Unit::Times, share);
    }
    Ok(stored.bytes)
}

/// The forms of a LIST that managedFields matter to.
///
/// - `least`: bytes that one without them has at least.
async fn listed_by(
    lab: &Lab,
    metrics: &mut Measurements,
    (who, server): (&Contender, &Instance),
    least: u64,
) -> Result<(), Error> {
    let plain = ListRequest::plain(lab, lab.protocol);
    let dropping = ListRequest {
        name: "LIST that drops managedFields".into(),
        headers: vec![(header::ACCEPT, DROPPING)],
        ..plain.clone()
    };
    let whole = listed(lab, server, &plain, least).await?;
    whole.add_to(metrics, &plain.name);
    let gzip = ListRequest::gzip(lab);
    listed(lab, server, &gzip, 1).await?.add_to(metrics, &gzip.name);
    // kube-apiserver does not know it yet.
    if matches!(who, Contender::Kubernetes(_)) {
        return Ok(());
    }
    let dropped = listed(lab, server, &dropping, 1).await?;
    dropped.add_to(metrics, &dropping.name);
    let cpu = dropped.cpu.as_secs_f64() / whole.cpu.as_secs_f64().max(1e-3);
    add(metrics, &format!("{}: CPU, of the whole LIST's", dropping.name), Unit::Times, cpu);
    Ok(())
}
