//! Many control planes at once, each started as envtest starts one: how long until all are ready, and what
//! they hold.
//!
//! In: a contender and how many. Out: time and memory, a sample a run. Never: a directory that two of them
//! share.

use tokio::task::JoinSet;

use crate::contender::Contender;
use crate::envtest::{self, Assets};
use crate::lab::Lab;
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::server::Instance;
use crate::{Error, proc};

const RUNS: usize = 5;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} control planes at once as envtest starts them, each to the first 200 on /readyz, {} runs; each: {}",
        lab.servers,
        lab.runs(RUNS),
        envtest::commands()
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let dir = lab.fresh_dir()?;
        let assets = std::sync::Arc::new(Assets::of(who, dir.path())?);
        let since = std::time::Instant::now();
        let mut starting = JoinSet::new();
        for number in 0..lab.servers {
            let (assets, place) = (assets.clone(), dir.path().join(number.to_string()));
            starting.spawn(async move { assets.start(&place).await });
        }
        let servers: Vec<Instance> = starting.join_all().await.into_iter().collect::<Result<_, _>>()?;
        add(&mut metrics, "all ready", Unit::Milliseconds, ms(since.elapsed()));
        tokio::time::sleep(lab.settle).await;
        resident(&mut metrics, &servers)?;
        for server in servers {
            server.stop().await?;
        }
    }
    Ok(metrics)
}

/// Pages that processes share, as those of one program, are in each one's VmRSS; a share of them is in each
/// one's Pss.
fn resident(metrics: &mut Measurements, servers: &[Instance]) -> Result<(), Error> {
    let processes: Vec<_> = servers.iter().flat_map(|server| &server.processes).collect();
    let sum = |bytes: fn(u32) -> Result<u64, Error>, name: Option<&str>| {
        let counted = processes.iter().filter(|process| name.is_none_or(|name| process.name == name));
        counted.map(|process| bytes(process.pid()).map(mib)).sum::<Result<f64, _>>()
    };
    add(metrics, "resident, all", Unit::MiB, sum(proc::resident, None)?);
    for name in ["etcd", "kube-apiserver"] {
        add(metrics, &format!("resident, all: {name}"), Unit::MiB, sum(proc::resident, Some(name))?);
    }
    let proportional = sum(proc::proportional, None)?;
    add(metrics, "resident, shared pages once", Unit::MiB, proportional);
    add(metrics, "that, for each", Unit::MiB, proportional / servers.len() as f64);
    Ok(())
}
