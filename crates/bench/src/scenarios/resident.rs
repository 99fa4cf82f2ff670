//! What the data takes in memory: once loaded, after a quiet minute, and a minute after a storm of LISTs.
//!
//! In: a contender. Out: memory beside the JSON it holds and the ratio that blocks of it compress at, a
//! sample a run. Never: a run that lost an object.

use std::time::Duration;

use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, mib};
use crate::scenarios::memory::{add_resident, resident};
use crate::scenarios::whole_lists::least_list;
use crate::server::Instance;
use crate::stored::stored;
use crate::{Error, lists};

const RUNS: usize = 5;
/// In settle times, of 2 s by default: 4 s until it counts as loaded, a minute until it counts as quiet.
pub(super) const LOADED: u32 = 2;
pub(super) const QUIET: u32 = 30;
/// What a server may take beside its data.
pub(super) const BASE_MIB: f64 = 35.0;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} {}, their status written too; VmRSS {:?} after the load, after {:?} more of silence, and {:?} after {} clients have LISTed them at once, {} times; {} runs",
        lab.size,
        lab.objects.about(),
        lab.settle * LOADED,
        lab.settle * QUIET,
        lab.settle * QUIET,
        lab.listers,
        lists::waves(lab),
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let dir = lab.fresh_dir()?;
        let server = who.start(dir.path()).await?;
        add_resident(&mut metrics, "resident, empty", &server)?;
        load::namespaces(&server).await?;
        let load = load::create(lab, &server, Depth::Whole).await?;
        let mut readings =
            vec![("loaded", rest(&mut metrics, &server, "resident loaded", lab.settle * LOADED).await?)];
        let quiet = rest(&mut metrics, &server, "resident after a quiet minute", lab.settle * QUIET).await?;
        readings.push(("quiet", quiet));
        lists::storm(lab, &server, least_list(lab, &load)).await?;
        let after =
            rest(&mut metrics, &server, "resident a minute after the storm", lab.settle * QUIET).await?;
        readings.push(("after the storm", after));

        let stored = stored(lab, &server.target).await?;
        add(&mut metrics, "JSON", Unit::MiB, mib(stored.bytes));
        add(&mut metrics, "an object", Unit::Bytes, stored.bytes as f64 / stored.objects as f64);
        add(&mut metrics, "block ratio", Unit::Factor, stored.block_ratio);
        for (when, resident) in readings {
            let share = (resident - BASE_MIB) / mib(stored.bytes);
            add(&mut metrics, &format!("(resident - {BASE_MIB} MiB) / JSON, {when}"), Unit::Times, share);
        }
        load::expect_all(lab, &server.target).await?;
        server.stop().await?;
    }
    Ok(metrics)
}

/// Lets the server be for a while; what is resident then.
pub(super) async fn rest(
    metrics: &mut Measurements,
    server: &Instance,
    name: &str,
    time: Duration,
) -> Result<f64, Error> {
    tokio::time::sleep(time).await;
    add_resident(metrics, name, server)?;
    resident(server).map(mib)
}
