//! The picture of an avalanche: what was asked for after each blow, over time.
//!
//! In: a report with the scenario `avalanche`. Out: a chart of requests a second, in windows of two seconds,
//! of the run with the middle number of requests. Never: a run that was picked by its looks.

use crate::arrivals::WINDOW;
use crate::chart::{Chart, Curve};
use crate::lab::Lab;
use crate::report::Report;
use crate::scenarios::{Scenario, Wave};

/// The chart of the avalanche in `report`, if it was measured.
pub fn of_avalanche(report: &Report, lab: &Lab) -> Option<Chart> {
    let measured = report.measured.iter().find(|measured| measured.scenario == Scenario::Avalanche.name())?;
    let runs: Vec<(&str, &[Wave])> = report
        .contenders
        .iter()
        .zip(&measured.waves)
        .filter_map(|(who, runs)| Some((who.name, middle(runs)?)))
        .collect();
    let phases = runs.first()?.1.iter().map(|wave| wave.phase.to_owned()).collect();
    let crowd = lab.overload.readers + lab.overload.informers;
    let mut caption = vec![format!("{}. {}", report.date, report.machine), measured.about.clone()];
    caption.push("Requests of all informers, in windows of two seconds since a server was killed, until all are synced and it is back.".into());
    Some(Chart {
        title: format!("What {crowd} informers ask for when one of three servers dies"),
        values: "requests a second".into(),
        phases,
        marked: 0,
        curves: runs.into_iter().map(|(name, waves)| curve(name, waves)).collect(),
        caption,
    })
}

/// The run with the middle number of requests.
fn middle(runs: &[Vec<Wave>]) -> Option<&[Wave]> {
    let total = |waves: &Vec<Wave>| waves.iter().flat_map(|wave| &wave.rates).sum::<f64>();
    let mut sorted: Vec<&Vec<Wave>> = runs.iter().collect();
    sorted.sort_by(|a, b| total(a).total_cmp(&total(b)));
    sorted.get(sorted.len() / 2).map(|waves| waves.as_slice())
}

fn curve(name: &str, waves: &[Wave]) -> Curve {
    let point = |(at, rate): (usize, &f64)| (at as f64 * WINDOW.as_secs_f64(), *rate);
    let parts = waves.iter().map(|wave| wave.rates.iter().enumerate().map(point).collect()).collect();
    Curve { name: name.into(), parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rates: &[f64]) -> Vec<Wave> {
        vec![Wave { phase: "killed", rates: rates.to_vec() }]
    }

    #[test]
    fn the_run_drawn_is_the_one_with_the_middle_number_of_requests() {
        let runs = [run(&[9.0, 9.0]), run(&[1.0]), run(&[4.0, 3.0])];
        let curve = curve("a", middle(&runs).unwrap());
        assert_eq!(curve.parts, [vec![(0.0, 4.0), (2.0, 3.0)]]);
        assert!(middle(&[]).is_none());
    }
}
