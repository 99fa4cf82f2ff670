//! Many watchers to whom nothing happens: what each keeps resident.
//!
//! In: a contender. Out: memory for each watcher, with a connection of its own and with 100 on one, a sample
//! a run. Never: a watcher that was not answered before the memory is read.

use std::time::Duration;

use crate::client::Protocol;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::report::{Measurements, Unit, add};
use crate::scenarios::memory::resident;
use crate::watchers::Watchers;
use crate::{Error, load};

const RUNS: usize = 5;
/// How long it is quiet before memory is read, in settle times: 10 s of the default 2 s.
const QUIET: u32 = 5;

const WAYS: [(&str, Protocol); 2] = [("own connection", Protocol::Http1), ("100 on one", Protocol::Http2)];

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} watchers of all pods, of which there are none, each on a connection of its own (HTTP/1.1) and 100 on one (HTTP/2), TLS; VmRSS before and {:?} after; {} runs",
        lab.watchers,
        quiet(lab),
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        for (way, protocol) in WAYS {
            // A server for each, as memory that was once taken may stay.
            let (_dir, server) = load::start(lab, who).await?;
            tokio::time::sleep(quiet(lab)).await;
            let before = resident(&server)?;
            let path = |_| "/api/v1/pods?watch=1&resourceVersion=0".to_owned();
            let watchers = Watchers::open(&server.target, protocol, lab.watchers, path).await?;
            tokio::time::sleep(quiet(lab)).await;
            let grown = resident(&server)?.saturating_sub(before) as f64;
            add(
                &mut metrics,
                &format!("resident per watcher, {way}"),
                Unit::Bytes,
                grown / watchers.count as f64,
            );
            drop(watchers);
            server.stop().await?;
        }
    }
    Ok(metrics)
}

fn quiet(lab: &Lab) -> Duration {
    lab.settle * QUIET
}
