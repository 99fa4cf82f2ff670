//! What is counted of events that were sent to watchers.

use std::sync::Arc;

use forebay_registry::histogram::{Bounds, Histogram};
use forebay_registry::{Encoding, Part};
use forebay_rt::{Clock, Instant};

/// Group, resource and version.
pub type WatchLabels = (Arc<str>, Arc<str>, Arc<str>);

/// Group, resource, scope and version.
pub type WatchListLabels = (Arc<str>, Arc<str>, &'static str, Arc<str>);

/// Counts one watch's events.
pub struct WatchEvents {
    // The count of the histogram is the number of events.
    sizes: Arc<Histogram>,
    list_seconds: Arc<Histogram>,
    clock: Clock,
    started: Instant,
}

impl WatchEvents {
    pub fn new(sizes: Arc<Histogram>, list_seconds: Arc<Histogram>, clock: Clock) -> WatchEvents {
        let started = clock.now();
        WatchEvents { sizes, list_seconds, clock, started }
    }

    /// The initial state that a watch-list asked for is sent.
    pub fn listed(&self) {
        self.list_seconds.observe(self.clock.now().duration_since(self.started).as_secs_f64());
    }

    /// Counts what is sent.
    pub fn count(&mut self, encoding: Encoding, part: &Part) {
        match encoding {
            // Then nothing has to be looked for.
            _ if part.is_frame => self.sizes.observe(part.bytes.len() as f64),
            Encoding::Json => self.count_lines(&part.bytes),
            Encoding::Protobuf => self.count_frames(&part.bytes),
        }
    }

    fn count_lines(&mut self, lines: &[u8]) {
        let mut start = 0;
        self.sizes.observe_all(memchr::memchr_iter(b'\n', lines).map(|end| {
            let from = std::mem::replace(&mut start, end + 1);
            (end + 1 - from) as f64
        }));
    }

    /// Each is behind its length.
    fn count_frames(&mut self, mut frames: &[u8]) {
        while let Some((len, rest)) = frames.split_first_chunk() {
            let len = u32::from_be_bytes(*len) as usize;
            self.sizes.observe((4 + len) as f64);
            frames = rest.get(len..).unwrap_or_default();
        }
    }
}

pub const SIZES: Bounds = &[
    ("1024", 1024.0),
    ("2048", 2048.0),
    ("4096", 4096.0),
    ("8192", 8192.0),
    ("16384", 16384.0),
    ("32768", 32768.0),
    ("65536", 65536.0),
    ("131072", 131072.0),
];

pub const LIST_SECONDS: Bounds = &[
    ("0.05", 0.05),
    ("0.1", 0.1),
    ("0.2", 0.2),
    ("0.4", 0.4),
    ("0.6", 0.6),
    ("0.8", 0.8),
    ("1", 1.0),
    ("2", 2.0),
    ("4", 4.0),
    ("6", 6.0),
    ("8", 8.0),
    ("10", 10.0),
    ("15", 15.0),
    ("20", 20.0),
    ("30", 30.0),
    ("45", 45.0),
    ("60", 60.0),
];
