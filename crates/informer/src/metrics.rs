//! What the informers of a factory did and hold, as Prometheus reads it.
//!
//! In: counts. Out: text. Never: keeps anything, waits.

use std::fmt::{self, Display, Write as _};

use crate::ceiling::AtLimit;
use crate::factory::Factory;
use crate::handler_stats::HandlerStats;
use crate::shared::Shared;

/// A metric: its name, what it is, and a line for each set of labels.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    lines: String,
}

/// Text within the quotes of a label.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

impl Metric {
    fn new(name: &'static str, kind: &'static str, help: &'static str) -> Metric {
        Metric { name, help, kind, lines: String::new() }
    }

    fn add(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", Quoted(value))).collect();
        self.lines += &format!("{}{{{}}} {value}\n", self.name, labels.join(","));
    }

    fn finish(self, out: &mut String) {
        if !self.lines.is_empty() {
            *out += &format!("# HELP {} {}\n# TYPE {} {}\n", self.name, self.help, self.name, self.kind);
            *out += &self.lines;
        }
    }
}

impl Factory {
    /// What its informers did so far and hold now, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        let mut states =
            Metric::new("informer_states_total", "counter", "Whole states that were had, by why.");
        let mut requests =
            Metric::new("informer_requests_total", "counter", "Requests, by what was asked for.");
        let mut taken =
            Metric::new("informer_objects_taken_total", "counter", "Objects and changes that came.");
        let mut read = Metric::new("informer_read_bytes_total", "counter", "Bytes of answers, as they came.");
        let mut messages =
            Metric::new("informer_protobuf_answers_total", "counter", "Answers that were in protobuf.");
        let mut faults = Metric::new("informer_faults_total", "counter", "What befell connections, by how.");
        let mut objects = Metric::new("informer_objects", "gauge", "Objects that are held.");
        let mut held =
            Metric::new("informer_held_bytes", "gauge", "Bytes that are held, the window's among them.");
        let mut most = Metric::new("informer_max_bytes", "gauge", "Bytes that the informer may hold.");
        let mut partial = Metric::new(
            "informer_partial",
            "gauge",
            "Whether metadata alone is held, since all is too much.",
        );
        let mut refused =
            Metric::new("informer_refused", "gauge", "Whether nothing is held, since it is too much.");
        let mut spilled =
            Metric::new("informer_spilled_bytes", "gauge", "Bytes in files, since they are too much.");
        let mut losses = Metric::new(
            "informer_spill_losses_total",
            "counter",
            "Files that did not give back what was put there.",
        );
        let mut age =
            Metric::new("informer_age_seconds", "gauge", "Since something last came from the server.");
        let mut failing =
            Metric::new("informer_failing", "gauge", "Whether the collection cannot be followed now.");
        let mut given =
            Metric::new("informer_handler_notices_total", "counter", "Notices that a handler was given.");
        let mut panics =
            Metric::new("informer_handler_panics_total", "counter", "Notices over which one panicked.");
        let mut summed =
            Metric::new("informer_handler_conflated_total", "counter", "Changes that one was told as a sum.");
        let mut lag = Metric::new("informer_handler_lag_revisions", "gauge", "Revisions that one is behind.");
        for informer in self.held() {
            for part in &informer.parts {
                let (name, stats) = (part.cacher.resource().name.as_str(), part.progress.stats());
                let of = ("collection", name);
                for (why, count) in &stats.states {
                    states.add(&[of, ("reason", why)], count);
                }
                for (what, count) in [
                    ("list", stats.pages_asked),
                    ("watch_list", stats.watch_lists_asked),
                    ("watch", stats.watches_asked),
                ] {
                    requests.add(&[of, ("verb", what)], count);
                }
                taken.add(&[of], stats.objects_taken);
                read.add(&[of], stats.bytes_read);
                messages.add(&[of], stats.protobuf_answers);
                for (fault, count) in &stats.faults {
                    faults.add(&[of, ("fault", fault)], count);
                }
                objects.add(&[of], part.cacher.snapshot().map_or(0, |state| state.len()));
                held.add(&[of], part.held_bytes());
                if let Some(ceiling) = &part.ceiling {
                    most.add(&[of], ceiling.max_bytes);
                    partial.add(&[of], u8::from(part.progress.is_partial()));
                    refused.add(&[of], u8::from(part.progress.refused().is_some()));
                    if let AtLimit::Spill { .. } = ceiling.at_limit {
                        spilled.add(&[of], stats.spilled_bytes);
                        losses.add(&[of], stats.spill_losses);
                    }
                }
                let health = part.progress.health();
                if let Some(heard) = health.last_heard_at {
                    age.add(&[of], informer.clock.now().duration_since(heard).as_secs_f64());
                }
                failing.add(&[of], u8::from(health.failing.is_some()));
            }
            let newest = newest(&informer);
            for (handler, stats) in informer.handlers() {
                let HandlerStats { given: notices, panics: panicked, conflated, revision } = stats;
                let labels = [("handler", handler.as_str())];
                given.add(&labels, notices);
                panics.add(&labels, panicked);
                summed.add(&labels, conflated);
                if let Some(revision) = revision {
                    lag.add(&labels, newest.saturating_sub(revision.get()));
                }
            }
        }
        let mut out = String::new();
        for metric in [
            states, requests, taken, read, messages, faults, objects, held, most, partial, refused, spilled,
            losses, age, failing, given, panics, summed, lag,
        ] {
            metric.finish(&mut out);
        }
        out
    }
}

/// What is shown: the lowest revision of its parts, as a subscription's.
fn newest(informer: &Shared) -> u64 {
    let revisions = informer.revisions();
    revisions.into_iter().flatten().min().map_or(0, |revision| revision.get())
}
