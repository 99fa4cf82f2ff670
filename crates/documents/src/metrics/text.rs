//! The text format that Prometheus scrapes.
//!
//! In: families and their series. Out: lines, each family under its HELP and TYPE.

use std::fmt::{Display, Write};

use forebay_catalog::histogram::Histogram;

/// What it is served as.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Labels of a series, in the order they are written.
pub type Labels<'l> = &'l [(&'l str, &'l str)];

/// Text in the making.
#[derive(Default)]
pub struct Text(String);

impl Text {
    /// Begins a family. `kind` is `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// A series with one value.
    pub fn value(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        self.labels(labels, None);
        self.push(format_args!(" {value}\n"));
    }

    /// A family of one series without labels.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.value(name, &[], value);
    }

    /// A series of buckets.
    pub fn histogram(&mut self, name: &str, labels: Labels<'_>, histogram: &Histogram) {
        let (counts, sum) = histogram.read();
        let bounds = histogram.bounds.iter().map(|(text, _)| *text).chain(["+Inf"]);
        for (bound, count) in bounds.zip(&counts) {
            self.push(format_args!("{name}_bucket"));
            self.labels(labels, Some(bound));
            self.push(format_args!(" {count}\n"));
        }
        for (part, value) in [("sum", sum), ("count", counts.last().copied().unwrap_or(0) as f64)] {
            self.push(format_args!("{name}_{part}"));
            self.labels(labels, None);
            self.push(format_args!(" {value}\n"));
        }
    }

    fn labels(&mut self, labels: Labels<'_>, le: Option<&str>) {
        let all = labels.iter().copied().chain(le.map(|bound| ("le", bound)));
        for (place, (name, value)) in all.enumerate() {
            self.push(format_args!("{}{name}=\"", if place == 0 { '{' } else { ',' }));
            for c in value.chars() {
                match c {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    c => self.0.push(c),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() || le.is_some() {
            self.0.push('}');
        }
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("a String takes every write");
    }

    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_in_the_classic_format() {
        let mut text = Text::default();
        text.single("a_total", "counter", "Things.", 3);
        text.family("b", "histogram", "Sizes.");
        let histogram = Histogram::new(&[("0.5", 0.5), ("1e+06", 1e6)]);
        histogram.observe(0.25);
        histogram.observe(2e6);
        text.histogram("b", &[("x", "\"\\\n")], &histogram);
        assert_eq!(
            text.finish(),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\n# HELP b Sizes.\n# TYPE b histogram\n\
             b_bucket{x=\"\\\"\\\\\\n\",le=\"0.5\"} 1\nb_bucket{x=\"\\\"\\\\\\n\",le=\"1e+06\"} 1\n\
             b_bucket{x=\"\\\"\\\\\\n\",le=\"+Inf\"} 2\nb_sum{x=\"\\\"\\\\\\n\"} 2000000.25\n\
             b_count{x=\"\\\"\\\\\\n\"} 2\n"
        );
    }
}
