//! The log: on stderr, one line an event, for people first.
//!
//! `-v` chooses how much, as in Kubernetes: 0 to 3 what an operator wants, 4 and 5 what happens to requests,
//! 6 and more what happens inside; from 8 on, other crates too.

use std::fmt;
use std::io::{self, IsTerminal as _};

use jiff::Timestamp;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;

/// Sends events to stderr from now on. Called once; a second call changes nothing.
pub fn init(verbosity: u32) {
    let color =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(color)
        .event_format(Line { color, time: Timestamp::now });
    let subscriber = tracing_subscriber::registry().with(targets(verbosity)).with(lines);
    // Fails only when there is one already, as in tests that run the command twice.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Logs what somebody should look after.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

fn targets(verbosity: u32) -> Targets {
    let own = match verbosity {
        0..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let others = if verbosity >= 8 { own } else { LevelFilter::WARN };
    Targets::new().with_default(others).with_target("forebay", own)
}

/// `2026-01-02T03:04:05.678Z INFO  message field=value`
struct Line {
    color: bool,
    time: fn() -> Timestamp,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (name, color) = match *event.metadata().level() {
            Level::ERROR => ("ERROR", "31"),
            Level::WARN => ("WARN ", "33"),
            Level::INFO => ("INFO ", "32"),
            Level::DEBUG => ("DEBUG", "34"),
            Level::TRACE => ("TRACE", "35"),
        };
        let time = (self.time)();
        if self.color {
            write!(out, "\x1b[2m{time:.3}\x1b[0m \x1b[{color}m{name}\x1b[0m ")?;
        } else {
            write!(out, "{time:.3} {name} ")?;
        }
        context.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(verbosity: u32, color: bool, log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let time = || Timestamp::from_millisecond(1_800_000_000_120).expect("a time");
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(color)
            .event_format(Line { color, time });
        let subscriber = tracing_subscriber::registry().with(targets(verbosity)).with(lines);
        tracing::subscriber::with_default(subscriber, log);
        let bytes = buffer.0.lock().expect("not poisoned").clone();
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn a_line_has_time_level_message_and_fields() {
        let text = logged(0, false, || tracing::info!(port = 6443, "serving"));
        assert_eq!(text, "2027-01-15T08:00:00.120Z INFO  serving port=6443\n");
        let text = logged(0, true, || tracing::warn!("careful"));
        assert_eq!(text, "\x1b[2m2027-01-15T08:00:00.120Z\x1b[0m \x1b[33mWARN \x1b[0m careful\n");
    }

    #[test]
    fn verbosity_opens_levels_and_other_crates() {
        let all = || {
            tracing::error!(target: "forebay_registry", "e");
            tracing::info!(target: "forebay_registry", "i");
            tracing::debug!(target: "forebay_registry", "d");
            tracing::trace!(target: "forebay_registry", "t");
            tracing::warn!(target: "hyper", "hw");
            tracing::info!(target: "hyper", "hi");
        };
        let rows = [(0, "e i hw"), (3, "e i hw"), (4, "e i d hw"), (6, "e i d t hw"), (8, "e i d t hw hi")];
        for (verbosity, want) in rows {
            let text = logged(verbosity, false, all);
            let messages: Vec<_> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
            assert_eq!(messages.join(" "), want, "-v {verbosity}");
        }
    }
}
