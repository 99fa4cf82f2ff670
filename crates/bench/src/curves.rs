//! The picture of the scenario `curve`: what the [`Plot`] of a report shows.
//!
//! In: a report with that scenario. Out: medians of each contender over objects and watchers, captioned with
//! what they were measured on. Never: a point that was not measured.

use crate::plot::{Panel, Plot};
use crate::report::{Entrant, Measured, Report};
use crate::scenarios::Scenario;

/// What a panel shows: its title, what it is along, and the name of the figure around the number of what
/// grows.
const PANELS: [(&str, &str, &str, &str); 4] = [
    ("LIST: server CPU, ms", "objects", "LIST: server CPU, ", " objects"),
    ("gzip LIST: server CPU, ms", "objects", "gzip LIST: server CPU, ", " objects"),
    ("resident, MiB", "objects", "resident, ", " objects"),
    ("update to all: p99, ms", "watchers", "delay p99, ", " watchers"),
];

/// The plot; nothing when the scenario was not run.
pub fn of_curve(report: &Report) -> Option<Plot> {
    let measured = report.measured.iter().find(|measured| measured.scenario == Scenario::Curve.name())?;
    let panel = |(values, along, before, behind): (&str, &str, &str, &str)| Panel {
        values: values.into(),
        along: along.into(),
        curves: measured.metrics.iter().map(|metrics| points(metrics, before, behind)).collect(),
    };
    let versions = |who: &Entrant| format!("{}: {}", who.name, who.versions.join(", "));
    Some(Plot {
        title: "What a LIST, the data and an update cost as they grow".into(),
        panels: PANELS.into_iter().map(panel).collect(),
        names: report.contenders.iter().map(|who| who.name.to_owned()).collect(),
        caption: vec![
            about(measured),
            report.contenders.iter().map(versions).collect::<Vec<_>>().join(" · "),
            format!("{} · {}", report.date, report.machine),
        ],
    })
}

fn about(measured: &Measured) -> String {
    format!("Lower is better; both axes are logarithmic. {}.", measured.about)
}

/// The medians of the figures whose names have a number between `before` and `behind`.
fn points(metrics: &crate::report::Measurements, before: &str, behind: &str) -> Vec<(f64, f64)> {
    let point = |metric: &crate::report::Metric| {
        let number = metric.name.strip_prefix(before)?.strip_suffix(behind)?;
        Some((number.parse::<u32>().ok()?.into(), metric.median()))
    };
    let mut points: Vec<(f64, f64)> = metrics.iter().filter_map(point).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Metric, Unit};
    use crate::scenarios::{objects_name, watchers_name};

    #[test]
    fn figures_become_points_in_the_order_of_what_grows() {
        let metric = |name: String, samples: &[f64]| Metric {
            samples: samples.to_vec(),
            ..Metric::new(name, Unit::MiB)
        };
        let metrics = vec![
            metric(format!("resident{}", objects_name(10_000)), &[3.0, 1.0, 2.0]),
            metric(format!("resident{}", objects_name(1_000)), &[5.0]),
            metric(format!("resident{}: etcd", objects_name(1_000)), &[4.0]),
            metric(format!("delay p99, {}", watchers_name(10)), &[7.0]),
        ];
        let measured = Measured {
            scenario: "curve",
            about: "about".into(),
            metrics: vec![metrics],
            series: vec![],
            waves: vec![],
            rows: vec![],
            mishaps: vec![],
        };
        let who = Entrant { name: "forebay", versions: vec!["v1".into()], commands: vec![] };
        let mut report = Report {
            date: "2001-02-03".into(),
            machine: "2 cores".into(),
            contenders: vec![who],
            measured: vec![measured],
        };
        let plot = of_curve(&report).unwrap();
        assert_eq!(plot.panels[2].curves, [vec![(1_000.0, 5.0), (10_000.0, 2.0)]]);
        assert_eq!(plot.panels[3].curves, [vec![(10.0, 7.0)]]);
        assert!(plot.panels[0].curves[0].is_empty());
        assert!(plot.caption.concat().contains("2001-02-03 · 2 cores"));
        report.measured.clear();
        assert!(of_curve(&report).is_none());
    }
}
