//! What flow control takes LISTs to cost, before they run, beside what they then cost.
//!
//! In: a contender. Out: CPU time a LIST of each form, as it was foreseen and as it was taken, and how many
//! forms were foreseen within a fifth: of LISTs that are alone, and of such that are asked for again and
//! again. Never: who foresees nothing; of such a contender there is only what was taken.
//!
//! Who asks for the same of the same state within two seconds is sent what was made before, if that is kept.
//! So before each LIST that is to be alone something else is written, which makes another state of it; and of
//! those that come again the first two are not measured: they are made, and the second is kept.

use std::time::Duration;

use bytes::Bytes;

use crate::Error;
use crate::client::Client;
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::proc::ThreadTimes;
use crate::report::{Measurements, Unit, add, ms};
use crate::scenarios::list::forms::{ListRequest, forms};
use crate::server::Instance;

const RUNS: usize = 3;
/// LISTs of each form and each way in a run.
const LISTS: usize = 5;
const FORESEEN: &str = "forebay_flowcontrol_foreseen_cpu_seconds_total{";
/// How far from what was taken what was foreseen may be.
const WITHIN: f64 = 0.2;
/// What is written to make another state.
const OTHERS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// How LISTs of a form follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Each is of a state of its own.
    Alone,
    /// All are of one state.
    Again,
}

/// One LIST, or several.
#[derive(Clone, Copy, Default)]
struct Cost {
    taken: Duration,
    /// None of who foresees nothing.
    foreseen: Option<Duration>,
}

/// Who asks: what is measured, and what is done beside that.
struct Asker<'a> {
    server: &'a Instance,
    lists: Client,
    others: Client,
    /// Until what a request leaves to be done is done.
    pause: Duration,
    /// That reading the metrics is charged.
    reading: Duration,
}

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "one client LISTs {} {} in each form, {LISTS} times of as many states and as often of one state again: CPU time that flow control foresees beside what is taken; {} runs",
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
    let ways = [(Way::Alone, ""), (Way::Again, ", again")];
    for _ in 0..lab.runs(RUNS) {
        let (mut known, mut within) = ([0; 2], [0; 2]);
        for form in &forms {
            for (at, (way, told)) in ways.into_iter().enumerate() {
                let cost = listed(lab, &server, form, way).await?;
                let name = format!("{}{told}", form.name);
                add(&mut metrics, &format!("{name}: taken"), Unit::Milliseconds, ms(cost.taken));
                let Some(foreseen) = cost.foreseen else { continue };
                add(&mut metrics, &format!("{name}: foreseen"), Unit::Milliseconds, ms(foreseen));
                let ratio = foreseen.as_secs_f64() / cost.taken.as_secs_f64().max(1e-6);
                known[at] += 1;
                within[at] += usize::from((ratio - 1.0).abs() <= WITHIN);
            }
        }
        for (at, (_, told)) in ways.iter().enumerate().filter(|(at, _)| known[*at] > 0) {
            let name = format!("foreseen within a fifth{told}");
            add(&mut metrics, &name, Unit::Factor, f64::from(within[at] as u32) / f64::from(known[at]));
        }
    }
    server.stop().await?;
    Ok(metrics)
}

/// What a LIST in that form costs, of [`LISTS`].
async fn listed(lab: &Lab, server: &Instance, form: &ListRequest, way: Way) -> Result<Cost, Error> {
    let others = Client::connect(&server.target, lab.protocol).await?;
    let lists = form.connect(&server.target).await?;
    let mut asker = Asker { server, lists, others, pause: lab.settle / 100, reading: Duration::ZERO };
    asker.read_twice().await?;
    if way == Way::Again {
        asker.write().await?;
        for _ in 0..2 {
            form.list(&mut asker.lists).await?;
        }
    }
    let mut all = Cost { foreseen: Some(Duration::ZERO), ..Cost::default() };
    for _ in 0..LISTS {
        if way == Way::Alone {
            asker.write().await?;
        }
        let one = asker.measured(form).await?;
        all.taken += one.taken;
        all.foreseen = all.foreseen.zip(one.foreseen).map(|(all, one)| all + one);
    }
    let count = LISTS as u32;
    Ok(Cost { taken: all.taken / count, foreseen: all.foreseen.map(|all| all / count) })
}

impl Asker<'_> {
    /// Finds out what reading the metrics is charged.
    async fn read_twice(&mut self) -> Result<(), Error> {
        let before = self.foreseen().await?;
        let after = self.foreseen().await?;
        self.reading = before.zip(after).map_or(Duration::ZERO, |(before, after)| after - before);
        Ok(())
    }

    /// Makes another state, of which nothing that is LISTed is another.
    async fn write(&mut self) -> Result<(), Error> {
        let body = r#"{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"generateName":"other-"}}"#;
        self.others.post(OTHERS, Bytes::from(body)).await?.expect("a write", &[201])?;
        Ok(())
    }

    async fn measured(&mut self, form: &ListRequest) -> Result<Cost, Error> {
        let before = self.foreseen().await?;
        tokio::time::sleep(self.pause).await;
        let times = self.times()?;
        form.list(&mut self.lists).await?;
        tokio::time::sleep(self.pause).await;
        let taken = self.times()?.since(&times);
        let after = self.foreseen().await?;
        let reading = self.reading;
        let foreseen = before.zip(after).map(|(before, after)| (after - before).saturating_sub(reading));
        Ok(Cost { taken, foreseen })
    }

    fn times(&self) -> Result<ThreadTimes, Error> {
        ThreadTimes::of(self.server.processes.iter().map(|process| process.pid()))
    }

    /// CPU time that all turns were charged so far.
    async fn foreseen(&mut self) -> Result<Option<Duration>, Error> {
        let text = self.others.get("/metrics").await?;
        let text = String::from_utf8_lossy(&text.expect("metrics", &[200])?.body).into_owned();
        let seconds = text.lines().filter(|line| line.starts_with(FORESEEN));
        let seconds: Vec<f64> = seconds.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        Ok((!seconds.is_empty()).then(|| Duration::from_secs_f64(seconds.iter().sum())))
    }
}
