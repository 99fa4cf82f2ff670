//! What is counted of events that were sent to watchers.

use std::sync::Arc;

use forebay_catalog::histogram::{Bounds, Histogram};
use forebay_rt::{Clock, Instant};
use forebay_usage::Usage;

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
    usage: Option<Arc<Usage>>,
}

impl WatchEvents {
    /// - `usage`: whom they are put down to.
    pub fn new(
        sizes: Arc<Histogram>,
        list_seconds: Arc<Histogram>,
        clock: Clock,
        usage: Option<Arc<Usage>>,
    ) -> WatchEvents {
        let started = clock.now();
        WatchEvents { sizes, list_seconds, clock, started, usage }
    }

    /// The initial state that a watch-list asked for is sent.
    pub fn listed(&self) {
        self.list_seconds.observe(self.clock.now().duration_since(self.started).as_secs_f64());
    }

    /// Whom it is put down to.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }

    /// Counts what is sent.
    ///
    /// - `sizes`: bytes of each event.
    pub fn count(&self, sizes: impl IntoIterator<Item = u32>) {
        let mut events = 0;
        self.sizes.observe_all(sizes.into_iter().inspect(|_| events += 1).map(f64::from));
        self.usage.iter().for_each(|usage| usage.made(events));
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
