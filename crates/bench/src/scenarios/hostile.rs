//! The catalogue of hostile requests and connections, a row after the other, each beside a bystander.
//!
//! In: a contender. Out: what each row did, and the worst of all. Never: a run that ends because a server
//! died: that is a figure.

use std::time::Duration;

use crate::Error;
use crate::contender::Contender;
use crate::hostile::{Contest, Measure, Row, rows};
use crate::lab::Lab;
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::scenarios::outcome::Results;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} hostile requests and connections, each on a new server (or, where starting takes 2 s or more, on one that has grown by less than 128 MiB) with --authorization-mode=RBAC and a token file, forebay with --memory-limit=1Gi as well; a bystander reads, asks /livez and writes meanwhile; `!` is what is against our law, which is ours to keep",
        chosen(lab).count()
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Results, Error> {
    let mut contest = Contest::new(lab, who);
    let mut all = Vec::new();
    for row in chosen(lab) {
        let measure = contest.run(row).await?;
        eprintln!("hostile: {}: {} {}", row.name, measure.tally, measure.broken.join(", "));
        all.push(measure);
    }
    let mut metrics = Measurements::new();
    add_worst(&mut metrics, &all);
    Ok(Results { metrics, rows: all, ..Results::default() })
}

fn chosen(lab: &Lab) -> impl Iterator<Item = &'static Row> {
    rows::all().filter(|row| lab.only.is_empty() || lab.only.iter().any(|name| name == row.name))
}

fn add_worst(metrics: &mut Measurements, all: &[Measure]) {
    let count = |metrics: &mut Measurements, name: &str, is: fn(&Measure) -> bool| {
        add(metrics, name, Unit::Count, all.iter().filter(|measure| is(measure)).count() as f64);
    };
    count(metrics, "rows", |_| true);
    count(metrics, "rows survived", |measure| measure.survived);
    count(metrics, "rows within the law", |measure| measure.broken.is_empty());
    count(metrics, "rows that the bystander was failed beside", |measure| measure.seen.failures > 0);
    let worst = |of: fn(&Measure) -> Duration| all.iter().map(of).max().map_or(0.0, ms);
    let growth = all.iter().map(|measure| measure.growth).max().unwrap_or(0);
    add(metrics, "worst growth", Unit::MiB, mib(growth));
    add(metrics, "worst CPU", Unit::Milliseconds, worst(|measure| measure.cpu));
    add(metrics, "worst GET p99 beside a row", Unit::Milliseconds, worst(|measure| measure.seen.get_p99()));
    add(
        metrics,
        "worst /livez p99 beside a row",
        Unit::Milliseconds,
        worst(|measure| measure.seen.livez_p99()),
    );
    add(
        metrics,
        "worst write p99 beside a row",
        Unit::Milliseconds,
        worst(|measure| measure.seen.write_p99()),
    );
}
