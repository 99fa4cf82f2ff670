//! What a server has in memory, as a figure: all its processes together, and each.
//!
//! In: a running server. Out: figures. Never: memory of who measures.

use crate::report::{Measurements, Unit, add, mib};
use crate::server::Instance;
use crate::{Error, proc};

/// Bytes that are resident now, in all processes together.
pub fn resident(server: &Instance) -> Result<u64, Error> {
    server.processes.iter().map(|process| proc::resident(process.pid())).sum()
}

/// Adds what is resident now: in all, and in each process where there are several.
pub fn add_resident(metrics: &mut Measurements, name: &str, server: &Instance) -> Result<(), Error> {
    add_each(metrics, name, server, proc::resident)
}

/// Adds the most that was resident since the start. The sum is of each process's own peak.
pub fn add_peak(metrics: &mut Measurements, name: &str, server: &Instance) -> Result<(), Error> {
    add_each(metrics, name, server, proc::resident_peak)
}

fn add_each(
    metrics: &mut Measurements,
    name: &str,
    server: &Instance,
    bytes: impl Fn(u32) -> Result<u64, Error>,
) -> Result<(), Error> {
    let each: Vec<f64> =
        server.processes.iter().map(|p| bytes(p.pid()).map(mib)).collect::<Result<_, _>>()?;
    add(metrics, name, Unit::MiB, each.iter().sum());
    if each.len() > 1 {
        for (process, own) in server.processes.iter().zip(each) {
            add(metrics, &format!("{name}: {}", process.name), Unit::MiB, own);
        }
    }
    Ok(())
}
