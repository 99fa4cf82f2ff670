//! What flow control takes LISTs to cost, before they run, beside what they then cost.
//!
//! In: a contender. Out: CPU time a LIST of each form, as it was foreseen and as it was taken, and how many
//! were foreseen within a fifth. Never: who foresees nothing; of such a contender there is only what was
//! taken.

use std::time::Duration;

use crate::Error;
use crate::client::Client;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Measurements, Unit, add, ms};
use crate::scenarios::list::forms::{ListRequest, forms};
use crate::scenarios::list::listed;
use crate::server::Instance;

const RUNS: usize = 3;
const FORESEEN: &str = "forebay_flowcontrol_foreseen_cpu_seconds_total{";
/// How far from what was taken what was foreseen may be.
const WITHIN: f64 = 0.2;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "one client LISTs {} {} in each form: CPU time that flow control foresees beside what is taken; {} runs",
        lab.size,
        lab.objects.about(),
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    let (_dir, server) = load::start(lab, who).await?;
    load::create(lab, &server, Depth::Whole).await?;
    // What is at rest is measured: a server may still be busy with what came in.
    tokio::time::sleep(lab.settle * 10).await;
    let forms: Vec<ListRequest> =
        [ListRequest::plain(lab, lab.protocol)].into_iter().chain(forms(lab)).collect();
    for _ in 0..lab.runs(RUNS) {
        let (mut known, mut within) = (0, 0);
        for form in &forms {
            let before = foreseen(lab, &server).await?;
            let took = listed(lab, &server, form, 1).await?;
            let after = foreseen(lab, &server).await?;
            add(&mut metrics, &format!("{}: taken", form.name), Unit::Milliseconds, ms(took.cpu));
            let Some(foreseen) = before.zip(after).map(|(before, after)| (after - before) / took.lists)
            else {
                continue;
            };
            add(&mut metrics, &format!("{}: foreseen", form.name), Unit::Milliseconds, ms(foreseen));
            let ratio = foreseen.as_secs_f64() / took.cpu.as_secs_f64().max(1e-6);
            (known, within) = (known + 1, within + usize::from((ratio - 1.0).abs() <= WITHIN));
        }
        if known > 0 {
            add(&mut metrics, "foreseen within a fifth", Unit::Factor, within as f64 / known as f64);
        }
    }
    server.stop().await?;
    Ok(metrics)
}

/// CPU time that all turns were charged so far.
async fn foreseen(lab: &Lab, server: &Instance) -> Result<Option<Duration>, Error> {
    let text = Client::connect(&server.target, lab.protocol).await?.get("/metrics").await?;
    let text = String::from_utf8_lossy(&text.expect("metrics", &[200])?.body).into_owned();
    let seconds = text.lines().filter(|line| line.starts_with(FORESEEN));
    let seconds: Vec<f64> = seconds.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    Ok((!seconds.is_empty()).then(|| Duration::from_secs_f64(seconds.iter().sum())))
}
