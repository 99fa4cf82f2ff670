//! SIGTERM, then start again on a directory with pods: all of it, and then the API server alone, its etcd
//! left running.
//!
//! In: a contender. Out: times to end and to be ready, memory with the pods loaded, a sample a run.
//! Never: a restart that lost a pod.

use std::time::{Duration, Instant};

use crate::Error;
use crate::client::{Client, Protocol};
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, ms};
use crate::scenarios::memory::add_resident;
use crate::server::Instance;

const RUNS: usize = 5;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "SIGTERM and start again with {} {}, settled after {:?}, {} runs",
        lab.size,
        lab.objects.about(),
        lab.settle,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    let (dir, mut server) = load::start(lab, who).await?;
    load::create(lab, &server, Depth::Whole).await?;
    for _ in 0..lab.runs(RUNS) {
        let asked = Instant::now();
        server.stop().await?;
        add(&mut metrics, "SIGTERM to gone", Unit::Milliseconds, ms(asked.elapsed()));
        server = who.start(dir.path()).await?;
        add(&mut metrics, "ready", Unit::Milliseconds, ms(server.ready));
        add(&mut metrics, "first LIST", Unit::Milliseconds, ms(server.ready + list_one(lab, &server).await?));
        tokio::time::sleep(lab.settle).await;
        add_resident(&mut metrics, "resident once settled", &server)?;
        server = who.restart(dir.path(), server).await?;
        add(&mut metrics, "ready, API server alone", Unit::Milliseconds, ms(server.ready));
    }
    load::expect_all(lab, &server.target).await?;
    server.stop().await?;
    Ok(metrics)
}

/// Lists one object from the cache: a server that is ready but has not loaded its objects shows here.
pub(super) async fn list_one(lab: &Lab, server: &Instance) -> Result<Duration, Error> {
    let asked = Instant::now();
    let mut client = Client::connect(&server.target, Protocol::Http1).await?;
    let path = format!(
        "{}?limit=1&resourceVersion=0&fieldSelector=metadata.name%3Dnone",
        lab.objects.path_in("bench-00")
    );
    client.get(&path).await?.expect("list", &[200])?;
    Ok(asked.elapsed())
}
