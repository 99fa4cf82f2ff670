//! Connections: who is there, and why others went.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::family::Counter;
use super::text::Text;

/// What is counted of connections.
#[derive(Debug, Default)]
pub struct SeatCounts {
    /// Strangers whose seats others got.
    pub gave_way: Counter,
    /// Those that were asked to end as they did nothing.
    pub idle: Counter,
    /// Those whose clients took nothing of what was written to them.
    pub unread: Counter,
    seated: AtomicUsize,
    strangers: AtomicUsize,
}

impl SeatCounts {
    /// How many there are now, and how many of them are strangers'.
    pub fn set(&self, seated: usize, strangers: usize) {
        self.seated.store(seated, Ordering::Relaxed);
        self.strangers.store(strangers, Ordering::Relaxed);
    }

    pub fn read(&self) -> (usize, usize) {
        (self.seated.load(Ordering::Relaxed), self.strangers.load(Ordering::Relaxed))
    }

    pub(super) fn write(&self, text: &mut Text) {
        let (seated, strangers) = self.read();
        let name = "forebay_connections_open";
        text.family(
            name,
            "gauge",
            "Connections that have a seat, by whether anybody was authenticated on them.",
        );
        for (client, count) in [("known", seated.saturating_sub(strangers)), ("stranger", strangers)] {
            text.value(name, &[("client", client)], count);
        }
        let name = "forebay_connections_ended_total";
        text.family(
            name,
            "counter",
            "Connections that were ended: strangers gave way, nothing was asked on them, or nothing read.",
        );
        for (why, count) in [("gave_way", &self.gave_way), ("idle", &self.idle), ("unread", &self.unread)] {
            text.value(name, &[("reason", why)], count.get());
        }
    }
}
