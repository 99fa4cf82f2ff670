//! The figures, side by side.
//!
//! In: what each scenario measured on each contender. Out: tables for a person, or JSON.
//! Never: a mean; a ratio where only one side has the figure.

use std::fmt::{self, Write};

use serde_json::{Value, json};

use crate::hostile::{self, Measure};
use crate::scenarios::Wave;
use crate::series::MemorySeries;
pub use crate::units::{mib, ms};

/// One figure with a sample for each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: String,
    pub unit: Unit,
    pub samples: Vec<f64>,
    /// What is aimed at, where anything is: the median is to be at most that.
    pub most: Option<f64>,
}

/// What a figure counts, and so which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    KiB,
    MiB,
    MiBPerSecond,
    Bytes,
    PerSecond,
    /// How many times one figure is another, where less is better.
    Times,
    /// Likewise, where more is.
    Factor,
    Cores,
    Count,
}

/// One scenario on one contender.
pub type Measurements = Vec<Metric>;

/// One scenario, measured on everyone who took part.
#[derive(Debug)]
pub struct Measured {
    pub scenario: &'static str,
    pub about: String,
    /// In the order of [`Report::contenders`].
    pub metrics: Vec<Measurements>,
    /// Likewise; of each run, where the scenario keeps any.
    pub series: Vec<Vec<MemorySeries>>,
    /// Likewise; what was asked for after each blow of the scenario avalanche.
    pub waves: Vec<Vec<Vec<Wave>>>,
    /// Likewise; of each row of the catalogue, where the scenario has one.
    pub rows: Vec<Vec<Measure>>,
    /// Likewise; what happened that is no figure.
    pub mishaps: Vec<Vec<String>>,
}

/// Someone who took part. The first is ours.
#[derive(Debug)]
pub struct Entrant {
    pub name: &'static str,
    pub versions: Vec<String>,
    pub commands: Vec<String>,
}

#[derive(Debug)]
pub struct Report {
    /// The day, as YYYY-MM-DD.
    pub date: String,
    pub machine: String,
    pub contenders: Vec<Entrant>,
    pub measured: Vec<Measured>,
}

/// What to know before comparing.
const NOTES: [&str; 5] = [
    "min / median / max of the runs; ratio: forebay's median over theirs, in brackets how many times better or worse",
    "both store the same: what managedFields take in a cluster is in annotations, and the load clears what servers add of them; only `create` keeps these",
    "one server at a time, the same client code and bodies; memory is VmRSS, which counts etcd's mapped database file",
    "the client shares the machine's cores with the server it measures; its CPU is listed apart",
    "`CPU taken by others` is all other work on the machine while a scenario ran: figures beside more than a trace of it are worth little",
];

impl Metric {
    /// A figure without samples yet.
    pub fn new(name: impl Into<String>, unit: Unit) -> Metric {
        Metric { name: name.into(), unit, samples: Vec::new(), most: None }
    }

    /// The middle sample.
    pub fn median(&self) -> f64 {
        self.sorted().get(self.samples.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Whether it is more than what is aimed at; one that is no number has not reached it.
    pub fn is_missed(&self) -> bool {
        let median = self.median();
        self.most.is_some_and(|most| median.is_nan() || median > most)
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// Adds a sample to the metric called `name`, which is made when it is the first.
pub fn add(metrics: &mut Measurements, name: &str, unit: Unit, sample: f64) {
    match metrics.iter_mut().find(|metric| metric.name == name) {
        Some(metric) => metric.samples.push(sample),
        None => metrics.push(Metric { samples: vec![sample], ..Metric::new(name, unit) }),
    }
}

/// As [`add`], of a figure whose median is to be at most `most`.
pub fn aim(metrics: &mut Measurements, name: &str, unit: Unit, sample: f64, most: f64) {
    add(metrics, name, unit, sample);
    if let Some(metric) = metrics.iter_mut().find(|metric| metric.name == name) {
        metric.most = Some(most);
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "µs",
            Unit::Milliseconds => "ms",
            Unit::KiB => "KiB",
            Unit::MiB => "MiB",
            Unit::MiBPerSecond => "MiB/s",
            Unit::Bytes => "bytes",
            Unit::PerSecond => "/s",
            Unit::Times | Unit::Factor => "times",
            Unit::Cores => "cores",
            Unit::Count => "count",
        }
    }

    fn more_is_better(self) -> bool {
        matches!(self, Unit::PerSecond | Unit::MiBPerSecond | Unit::Factor)
    }

    /// Whether a ratio of it says something: not of what others did, nor of counts, which may be 0.
    fn is_compared(self) -> bool {
        !matches!(self, Unit::Cores | Unit::Count)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine: {}", self.machine)?;
        for entrant in &self.contenders {
            writeln!(f, "{}: {}", entrant.name, entrant.versions.join(" · "))?;
            for command in &entrant.commands {
                writeln!(f, "    {command}")?;
            }
        }
        for measured in &self.measured {
            writeln!(f, "\n{}: {}", measured.scenario, measured.about)?;
            f.write_str(&self.catalogue(measured))?;
            f.write_str(&self.table(measured))?;
            for (entrant, told) in self.contenders.iter().zip(&measured.mishaps) {
                told.iter().try_for_each(|told| writeln!(f, "  {}: {told}", entrant.name))?;
            }
        }
        writeln!(f)?;
        NOTES.iter().try_for_each(|note| writeln!(f, "- {note}"))
    }
}

impl Report {
    /// Everything, for another program.
    pub fn json(&self) -> Value {
        let entrants = self.contenders.iter().map(|entrant| {
            json!({"name": entrant.name, "versions": entrant.versions, "commands": entrant.commands})
        });
        let scenarios = self.measured.iter().map(|measured| {
            let rows = rows(measured).into_iter().map(|row| {
                let samples = row.cells.iter().map(|cell| cell.map(|metric| &metric.samples));
                let of = |said: fn(&Metric) -> Value| {
                    row.cells.iter().map(|cell| cell.map(said)).collect::<Vec<_>>()
                };
                json!({"metric": row.name, "unit": row.unit.name(), "samples": samples.collect::<Vec<_>>(),
                       "ratio": row.ratio(), "at most": of(|metric| json!(metric.most)),
                       "missed": of(|metric| json!(metric.is_missed()))})
            });
            let series =
                measured.series.iter().map(|runs| runs.iter().map(MemorySeries::json).collect::<Vec<_>>());
            let catalogue = measured.rows.iter().map(|all| all.iter().map(Measure::json).collect::<Vec<_>>());
            let waves = measured.waves.iter().map(|runs| {
                let each = |wave: &Wave| json!({"phase": wave.phase, "requests a second": wave.rates});
                runs.iter().map(|waves| waves.iter().map(each).collect::<Vec<_>>()).collect::<Vec<_>>()
            });
            json!({"name": measured.scenario, "about": measured.about, "rows": rows.collect::<Vec<_>>(),
                   "waves": waves.collect::<Vec<_>>(), "mishaps": measured.mishaps,
                   "series": series.collect::<Vec<_>>(), "catalogue": catalogue.collect::<Vec<_>>()})
        });
        json!({
            "date": self.date,
            "machine": self.machine,
            "contenders": entrants.collect::<Vec<_>>(),
            "scenarios": scenarios.collect::<Vec<_>>(),
            "notes": NOTES,
        })
    }

    /// A line for each row of the catalogue on each contender.
    fn catalogue(&self, measured: &Measured) -> String {
        if measured.rows.iter().all(Vec::is_empty) {
            return String::new();
        }
        let names: Vec<&str> = self.contenders.iter().map(|entrant| entrant.name).collect();
        aligned(&hostile::table(&names, &measured.rows)) + "\n"
    }

    fn table(&self, measured: &Measured) -> String {
        let mut lines = vec![vec!["".to_owned(), "".to_owned()]];
        lines[0].extend(self.contenders.iter().map(|entrant| entrant.name.to_owned()));
        if self.contenders.len() == 2 {
            lines[0].push("ratio".to_owned());
        }
        for row in rows(measured) {
            let mut line = vec![row.name.to_owned(), row.unit.name().to_owned()];
            line.extend(row.cells.iter().map(|cell| cell.map_or_else(|| "-".to_owned(), cell_text)));
            line.extend(row.ratio().map(|ratio| verdict(ratio, row.unit)));
            lines.push(line);
        }
        aligned(&lines)
    }
}

/// A metric by name, with each contender's samples where it has them.
struct Row<'a> {
    name: &'a str,
    unit: Unit,
    cells: Vec<Option<&'a Metric>>,
}

impl Row<'_> {
    fn ratio(&self) -> Option<f64> {
        match self.cells[..] {
            [Some(ours), Some(theirs)] if self.unit.is_compared() => {
                Some(ours.median() / theirs.median()).filter(|ratio| ratio.is_normal())
            }
            _ => None,
        }
    }
}

/// One row for each name, in the order of the contender that knows most, then those only others know.
fn rows(measured: &Measured) -> Vec<Row<'_>> {
    let mut by_length: Vec<&Measurements> = measured.metrics.iter().collect();
    by_length.sort_by_key(|metrics| std::cmp::Reverse(metrics.len()));
    let mut rows: Vec<Row<'_>> = Vec::new();
    for metric in by_length.into_iter().flatten() {
        if rows.iter().all(|row| row.name != metric.name) {
            let cells = measured.metrics.iter().map(|own| own.iter().find(|other| other.name == metric.name));
            rows.push(Row { name: &metric.name, unit: metric.unit, cells: cells.collect() });
        }
    }
    rows
}

/// The figures, and what was aimed at: `25.1 (MISSED: 20.0 at most)`.
fn cell_text(metric: &Metric) -> String {
    let Some(most) = metric.most.map(number) else { return spread(metric) };
    let missed = if metric.is_missed() { "MISSED: " } else { "" };
    format!("{} ({missed}{most} at most)", spread(metric))
}

/// `min / median / max`, or the one figure there is.
fn spread(metric: &Metric) -> String {
    match metric.sorted()[..] {
        [] => "-".to_owned(),
        [only] => number(only),
        [min, .., max] => format!("{} / {} / {}", number(min), number(metric.median()), number(max)),
    }
}

/// `0.050 (20.0x better)`.
fn verdict(ratio: f64, unit: Unit) -> String {
    let gain = if unit.more_is_better() { ratio } else { 1.0 / ratio };
    match gain {
        same if (0.95..1.05).contains(&same) => format!("{ratio:.3} (the same)"),
        better if better > 1.0 => format!("{ratio:.3} ({better:.1}x better)"),
        worse => format!("{ratio:.3} ({:.1}x worse)", 1.0 / worse),
    }
}

/// Three digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        big if big >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Columns as wide as their widest cell, the first two left-aligned, the others right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let mut row = String::from(" ");
        for (at, cell) in line.iter().enumerate() {
            let width = widths[at];
            let _ = if at < 2 { write!(row, " {cell:<width$}") } else { write!(row, "  {cell:>width$}") };
        }
        text += row.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let metric = |name: &str, unit, samples: &[f64]| Metric {
            samples: samples.to_vec(),
            ..Metric::new(name, unit)
        };
        let entrant =
            |name| Entrant { name, versions: vec!["1".into()], commands: vec![format!("{name} serve")] };
        Report {
            date: "2001-02-03".into(),
            machine: "2 cores".into(),
            contenders: vec![entrant("a"), entrant("b")],
            measured: vec![Measured {
                scenario: "start",
                about: "on nothing".into(),
                metrics: vec![
                    vec![metric("ready", Unit::Milliseconds, &[90.0, 100.0, 300.0])],
                    vec![
                        metric("ready", Unit::Milliseconds, &[2000.0, 1000.0, 3000.0]),
                        metric("rate", Unit::PerSecond, &[5.0]),
                    ],
                ],
                series: vec![],
                waves: vec![],
                rows: vec![],
                mishaps: vec![vec![], vec!["died after 2.0 s".into()]],
            }],
        }
    }

    #[test]
    fn the_table_has_spread_and_ratio_and_leaves_out_what_one_side_lacks() {
        let text = report().to_string();
        let line =
            |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap().to_owned();
        let ready = line("ready");
        assert!(ready.contains("90.0 / 100 / 300") && ready.contains("1000 / 2000 / 3000"), "{ready}");
        assert!(ready.ends_with("0.050 (20.0x better)"), "{ready}");
        assert!(line("rate").ends_with("5.000") && line("rate").contains(" - "), "{}", line("rate"));
        assert_eq!(line("b: died"), "  b: died after 2.0 s");
        assert!(text.contains("a serve") && text.contains("both store the same"), "{text}");
    }

    #[test]
    fn what_is_above_its_aim_is_said_to_be_missed() {
        let mut metrics = Measurements::new();
        for sample in [19.0, 30.0, 21.0] {
            aim(&mut metrics, "event", Unit::Microseconds, sample, 20.0);
        }
        aim(&mut metrics, "lists", Unit::Count, 0.0, 0.0);
        aim(&mut metrics, "odd", Unit::Count, f64::NAN, 0.0);
        assert_eq!(metrics.iter().map(Metric::is_missed).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(cell_text(&metrics[0]), "19.0 / 21.0 / 30.0 (MISSED: 20.0 at most)");
        assert_eq!(cell_text(&metrics[1]), "0.000 (0.000 at most)");
    }

    #[test]
    fn more_is_better_only_for_rates() {
        assert_eq!(verdict(5.0, Unit::PerSecond), "5.000 (5.0x better)");
        assert_eq!(verdict(0.5, Unit::PerSecond), "0.500 (2.0x worse)");
        assert_eq!(verdict(2.0, Unit::MiB), "2.000 (2.0x worse)");
        assert_eq!(verdict(1.03, Unit::Bytes), "1.030 (the same)");
    }

    #[test]
    fn json_has_every_sample() {
        let json = report().json();
        assert_eq!(
            json["scenarios"][0]["rows"][0]["samples"],
            json!([[90.0, 100.0, 300.0], [2000.0, 1000.0, 3000.0]])
        );
        assert_eq!(json["scenarios"][0]["rows"][0]["ratio"], json!(0.05));
        assert_eq!(json["scenarios"][0]["rows"][1]["samples"], json!([null, [5.0]]));
        assert_eq!(json["scenarios"][0]["rows"][1]["ratio"], json!(null));
        assert_eq!(json["scenarios"][0]["mishaps"], json!([[], ["died after 2.0 s"]]));
    }

    #[test]
    fn samples_of_one_name_are_gathered() {
        let mut metrics = Measurements::new();
        add(&mut metrics, "ready", Unit::Milliseconds, 2.0);
        add(&mut metrics, "rate", Unit::PerSecond, 1.0);
        add(&mut metrics, "ready", Unit::Milliseconds, 1.0);
        assert_eq!(metrics.len(), 2);
        assert_eq!(metrics[0].samples, [2.0, 1.0]);
    }
}
