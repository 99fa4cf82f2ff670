//! The picture of a storm: what the [`Chart`] of a report shows.
//!
//! In: a report with the scenario `storm`. Out: a chart of the sum of each contender's processes, of the run
//! with the median peak, captioned with what it was measured on. Never: a run that was picked by its looks.

use crate::chart::{Chart, Curve, grouped};
use crate::lab::Lab;
use crate::lists;
use crate::report::{Entrant, Measured, Report, mib};
use crate::scenarios::Scenario;
use crate::series::{MemorySeries, Phase};

const HOW_TO_READ: &str = "Dotted: through with the phase before the other.";

/// The chart of the storm in `report`, if it was measured.
pub fn of_storm(report: &Report, lab: &Lab) -> Option<Chart> {
    let measured = report.measured.iter().find(|measured| measured.scenario == Scenario::Storm.name())?;
    Some(Chart {
        title: format!(
            "Resident memory while {} clients LIST {} pods at once",
            lab.listers,
            grouped(lab.size as f64)
        ),
        values: "resident memory (VmRSS), MiB".into(),
        phases: phase_names(lab),
        marked: Phase::ALL.iter().position(|phase| *phase == Phase::Storm)?,
        curves: report
            .contenders
            .iter()
            .zip(&measured.series)
            .filter_map(|(who, runs)| Some(curve(who.name, median_peak(runs)?)))
            .collect(),
        caption: caption(report, measured),
    })
}

fn phase_names(lab: &Lab) -> Vec<String> {
    let storm = match lists::waves(lab) {
        1 => format!("{} LISTs at once", lab.listers),
        times => format!("{} LISTs at once, {times} times", lab.listers),
    };
    Phase::ALL
        .map(|phase| if phase == Phase::Storm { storm.clone() } else { phase.name().to_owned() })
        .to_vec()
}

/// The run whose peak in the storm is the middle one of all runs.
fn median_peak(runs: &[MemorySeries]) -> Option<&MemorySeries> {
    let mut sorted: Vec<&MemorySeries> = runs.iter().collect();
    sorted.sort_by_key(|series| series.peak(Phase::Storm).map(|peak| peak.total()));
    sorted.get(sorted.len() / 2).copied()
}

fn curve(name: &str, series: &MemorySeries) -> Curve {
    let part = |phase| {
        let (begin, _) = series.span(phase).unwrap_or_default();
        series.of(phase).map(|sample| ((sample.at - begin).as_secs_f64(), mib(sample.total()))).collect()
    };
    Curve { name: name.to_owned(), parts: Phase::ALL.map(part).to_vec() }
}

fn caption(report: &Report, measured: &Measured) -> Vec<String> {
    let runs = measured.series.iter().map(Vec::len).max().unwrap_or(0);
    let shown = if runs > 1 { "Shown is the run with the median peak. " } else { "" };
    let versions = |who: &Entrant| format!("{}: {}", who.name, who.versions.join(", "));
    vec![
        format!("{}. {shown}{HOW_TO_READ}", measured.about),
        report.contenders.iter().map(versions).collect::<Vec<_>>().join(" · "),
        format!("{} · {}", report.date, report.machine),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::Protocol;
    use crate::report::Measurements;
    use crate::series::tests::{series, two};

    fn lab() -> Lab {
        Lab {
            size: 500,
            objects: crate::objects::Objects::Pods,
            is_governed: false,
            clients: 4,
            listers: 16,
            watchers: 2,
            crowd: 10,
            servers: 2,
            rounds: 1,
            runs: None,
            protocol: Protocol::Http1,
            settle: Duration::ZERO,
            static_server: None,
            sizes: vec![10],
            crowds: vec![2],
            rival_max: 10,
            storm_writes: 0,
            million: 10,
            only: vec![],
            overload: crate::overload::Overload::default(),
            base: std::env::temp_dir(),
        }
    }

    fn peaking_at(mib: u64) -> MemorySeries {
        series(&["forebay"], &format!("load 0 1\nstorm 10 {mib}\nafter 20 1"))
    }

    fn report() -> Report {
        let entrant =
            |name, version: &str| Entrant { name, versions: vec![version.into()], commands: vec![] };
        let measured = Measured {
            scenario: "storm",
            about: "16 clients".into(),
            metrics: vec![Measurements::new(), Measurements::new()],
            series: vec![vec![peaking_at(9), peaking_at(5), peaking_at(7)], vec![two()]],
            waves: vec![],
            rows: vec![],
            mishaps: vec![],
        };
        Report {
            date: "2001-02-03".into(),
            machine: "2 cores".into(),
            contenders: vec![entrant("forebay", "forebay 1"), entrant("theirs", "v2")],
            measured: vec![measured],
        }
    }

    #[test]
    fn the_chart_names_everything_that_the_figures_belong_to() {
        let chart = of_storm(&report(), &lab()).unwrap();
        assert_eq!(chart.title, "Resident memory while 16 clients LIST 500 pods at once");
        assert_eq!(chart.phases, ["load", "quiet", "16 LISTs at once, 2 times", "after"]);
        let caption = chart.caption.join("\n");
        for part in ["16 clients", "the median peak", "forebay 1", "v2", "2001-02-03", "2 cores"] {
            assert!(caption.contains(part), "{part}: {caption}");
        }
    }

    #[test]
    fn a_curve_has_the_sum_of_the_processes_from_the_start_of_each_phase() {
        let chart = of_storm(&report(), &lab()).unwrap();
        assert_eq!(chart.curves[1].parts[0], [(0.0, 30.0), (0.1, 90.0), (0.15, 120.0)]);
        assert_eq!(chart.curves[1].parts[3], [(0.0, 145.0), (10.0, 135.0)]);
    }

    #[test]
    fn the_run_shown_is_the_one_with_the_median_peak() {
        let chart = of_storm(&report(), &lab()).unwrap();
        assert_eq!(chart.curves[0].parts[2], [(0.0, 7.0)]);
        assert!(chart.curves[0].parts[1].is_empty());
    }

    #[test]
    fn a_report_without_a_storm_has_no_picture() {
        let mut report = report();
        report.measured[0].scenario = "start";
        assert!(of_storm(&report, &lab()).is_none());
    }
}
