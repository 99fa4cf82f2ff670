//! From exec to ready on an empty directory, and what is resident then.
//!
//! In: a contender. Out: time and memory, a sample a run. Never: a directory used twice.

use crate::Error;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::report::{Measurements, Unit, add, ms};
use crate::scenarios::memory::add_resident;

const RUNS: usize = 5;

pub(super) fn about(lab: &Lab) -> String {
    format!("from exec to the first 200 on /readyz, empty directory, {} runs", lab.runs(RUNS))
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let dir = lab.fresh_dir()?;
        let server = who.start(dir.path()).await?;
        add(&mut metrics, "ready", Unit::Milliseconds, ms(server.ready));
        add_resident(&mut metrics, "resident then", &server)?;
        server.stop().await?;
    }
    Ok(metrics)
}
