//! The rows side by side: a line for each on each server.

use serde_json::{Value, json};

use super::Measure;
use forebay_contenders::units::{mib, ms};

const HEAD: [&str; 11] =
    ["", "from", "", "survived", "growth", "CPU", "took", "GET p99", "livez p99", "write p99", "answer"];

/// Lines of cells: `all` has what each of `names` did, in the same order of rows.
pub fn table(names: &[&str], all: &[Vec<Measure>]) -> Vec<Vec<String>> {
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    let rows = all.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..rows {
        for (name, measures) in names.iter().zip(all) {
            lines.extend(measures.get(row).map(|measure| measure.cells(name)));
        }
    }
    lines
}

impl Measure {
    fn cells(&self, server: &str) -> Vec<String> {
        let time = |time| format!("{:.1} ms", ms(time));
        let broken = match self.broken.is_empty() {
            true => String::new(),
            false => format!("  ! {}", self.broken.join(", ")),
        };
        vec![
            self.name.to_owned(),
            self.from.to_owned(),
            server.to_owned(),
            if self.survived { "yes" } else { "DIED" }.to_owned(),
            format!("{:.1} MiB", mib(self.growth)),
            time(self.cpu),
            time(self.took),
            time(self.seen.get_p99()),
            time(self.seen.livez_p99()),
            time(self.seen.write_p99()),
            format!("{}{broken}", self.tally),
        ]
    }

    pub fn json(&self) -> Value {
        json!({
            "row": self.name, "from": self.from, "survived": self.survived, "answer": self.tally.to_string(),
            "text": self.tally.text, "growth": self.growth, "cpu_ms": ms(self.cpu), "took_ms": ms(self.took),
            "get_p99_ms": ms(self.seen.get_p99()), "livez_p99_ms": ms(self.seen.livez_p99()),
            "write_p99_ms": ms(self.seen.write_p99()), "bystander_failures": self.seen.failures,
            "first_failure": self.seen.first_failure, "broken": self.broken,
        })
    }
}
