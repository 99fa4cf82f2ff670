//! Many clients create objects; every create is durable before it is acknowledged.
//!
//! In: a contender. Out: rate, latency, CPU of server and client, memory and disk, a sample a run.
//! Never: a run with a failed create or with another number of objects than acknowledged.

use std::time::Duration;

use crate::Error;
use crate::contender::Contender;
use crate::lab::{FreshDir, Lab};
use crate::load::{self, Depth, Load};
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::scenarios::memory::{add_peak, add_resident};
use crate::server::Instance;

const RUNS: usize = 5;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} {}, as creates take them without status, {} clients with an {:?} connection each, durable, no failures, {} runs",
        lab.size,
        lab.objects.about(),
        lab.clients,
        lab.protocol,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let (dir, server) = load::start(lab, who).await?;
        let load = load::create(lab, &server, Depth::Created).await?;
        add_load(&mut metrics, &server, &load);
        add_memory(&mut metrics, &server, &dir)?;
        load::expect_all(lab, &server.target).await?;
        server.stop().await?;
    }
    Ok(metrics)
}

fn add_load(metrics: &mut Measurements, server: &Instance, load: &Load) {
    let each = |time: Duration| ms(time) / load.objects as f64;
    add(metrics, "creates", Unit::PerSecond, load.objects as f64 / load.took.as_secs_f64());
    add(metrics, "latency p50", Unit::Milliseconds, ms(load.latency(0.5)));
    add(metrics, "latency p99", Unit::Milliseconds, ms(load.latency(0.99)));
    add(metrics, "latency max", Unit::Milliseconds, ms(load.latency(1.0)));
    add(metrics, "server CPU per create", Unit::Milliseconds, each(load.server_cpu.iter().sum()));
    if load.server_cpu.len() > 1 {
        for (process, cpu) in server.processes.iter().zip(&load.server_cpu) {
            add(metrics, &format!("server CPU per create: {}", process.name), Unit::Milliseconds, each(*cpu));
        }
    }
    add(metrics, "client CPU per create", Unit::Milliseconds, each(load.client_cpu));
    add(metrics, "object sent", Unit::Bytes, load.sent as f64 / load.objects as f64);
    add(metrics, "object returned", Unit::Bytes, load.returned as f64 / load.objects as f64);
}

fn add_memory(metrics: &mut Measurements, server: &Instance, dir: &FreshDir) -> Result<(), Error> {
    add_resident(metrics, "resident after", server)?;
    add_peak(metrics, "resident at most", server)?;
    add(metrics, "on disk", Unit::MiB, mib(dir.bytes()));
    Ok(())
}
