//! The table of a run, in Markdown.
//!
//! In: outcomes. Out: text. Never: a figure that was not measured.

use std::time::Duration;

use crate::run::{Plan, Trial, Verdict};

/// The first two lines.
pub fn head(subjects: &[&str]) -> String {
    let names: Vec<String> = subjects.iter().map(|name| format!(" {name} |")).collect();
    format!(
        "| fault | lasts | lists needed |{}\n|---|---|---|{}",
        names.concat(),
        "---|".repeat(subjects.len())
    )
}

/// The line of a fault: for each client lists asked for, time blind, and what is wrong at the end, if
/// anything.
pub fn line(outcome: &Trial, plan: &Plan) -> String {
    let row = outcome.fault.row();
    let cells: Vec<String> = outcome.of.iter().map(|verdict| format!(" {} |", cell(verdict, plan))).collect();
    let needed = row.needed * plan.informers as u64;
    format!("| {} | {} | {needed} |{}", row.what, seconds(outcome.lasted), cells.concat())
}

fn cell(verdict: &Verdict, plan: &Plan) -> String {
    let blind = match verdict.blind {
        Some(blind) => seconds(blind),
        None => format!("> {}", seconds(plan.blind_max)),
    };
    let equal = if verdict.equal { "equal" } else { "**not equal**" };
    let probes = match verdict.asked.probes {
        0 => String::new(),
        probes => format!(" and {probes} of one object"),
    };
    format!("{} lists{probes}, {blind}, {equal}", verdict.asked.whole())
}

fn seconds(time: Duration) -> String {
    match time.as_millis() {
        0..50 => "once".to_owned(),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;
    use crate::proxy::RequestCounts;

    #[test]
    fn a_line_has_a_cell_for_each_client() {
        let plan = Plan {
            informers: 50,
            writes_per_second: 100,
            a_while: Duration::from_secs(5),
            long: Duration::from_secs(30),
            blind_max: Duration::from_secs(90),
            equal_max: Duration::from_secs(10),
        };
        let good = Verdict { blind: Some(Duration::from_millis(5_230)), equal: true, ..Verdict::default() };
        let asked = RequestCounts { lists: 50, watch_lists: 60, watches: 7, ..RequestCounts::default() };
        let bad = Verdict { asked, ..Verdict::default() };
        let outcome = Trial { fault: Fault::Expired, lasted: Duration::from_secs(5), of: vec![good, bad] };
        assert_eq!(
            format!("{}\n{}", head(&["a", "b"]), line(&outcome, &plan)),
            "| fault | lasts | lists needed | a | b |\n|---|---|---|---|---|\n\
             | HTTP 410 | 5.0 s | 50 | 0 lists, 5.2 s, equal | 110 lists, > 90.0 s, **not equal** |"
        );
    }
}
