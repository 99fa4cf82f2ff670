//! What is counted of noting requests, for whoever shows metrics.
//!
//! In: events, verdicts, failures. Out: numbers since the start. Never: names of requests.
//!
//! Source: apiserver v0.36.3 `pkg/audit/metrics.go`.

use std::sync::atomic::{AtomicU64, Ordering};

use forebay_rt::Clock;

use crate::level::AuditLevel;
use crate::limits::COMPLAINT_EVERY;

/// See the module's doc.
#[derive(Debug, Default)]
pub struct AuditCounts {
    events: AtomicU64,
    levels: [AtomicU64; AuditLevel::ALL.len()],
    errors: [AtomicU64; AuditPlugin::ALL.len()],
    rejected: AtomicU64,
    /// Events that are neither kept nor lost yet, by where they are to be kept.
    under_way: [AtomicU64; AuditPlugin::ALL.len()],
    /// When the log was told last, in milliseconds since 1970.
    told_ms: AtomicU64,
}

/// What has lost an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditPlugin {
    /// A buffer was full.
    Buffered,
    Log,
    /// It is too large, whatever is left out.
    Truncate,
    Webhook,
}

impl AuditPlugin {
    pub const ALL: [AuditPlugin; 4] =
        [AuditPlugin::Buffered, AuditPlugin::Log, AuditPlugin::Truncate, AuditPlugin::Webhook];

    pub const fn name(self) -> &'static str {
        match self {
            AuditPlugin::Buffered => "buffered",
            AuditPlugin::Log => "log",
            AuditPlugin::Truncate => "truncate",
            AuditPlugin::Webhook => "webhook",
        }
    }
}

impl AuditCounts {
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Requests that were refused because they could not be noted.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Requests by how much of them is noted.
    pub fn levels(&self) -> impl Iterator<Item = (AuditLevel, u64)> {
        AuditLevel::ALL.into_iter().map(|level| (level, self.levels[level as usize].load(Ordering::Relaxed)))
    }

    /// Events that were lost, by what lost them.
    pub fn errors(&self) -> impl Iterator<Item = (AuditPlugin, u64)> {
        AuditPlugin::ALL
            .into_iter()
            .map(|plugin| (plugin, self.errors[plugin as usize].load(Ordering::Relaxed)))
    }

    pub(crate) fn event(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn level(&self, level: AuditLevel) {
        self.levels[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reject(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// An event is on its way to where it is to be kept.
    pub(crate) fn begun(&self, plugin: AuditPlugin) {
        self.under_way[plugin as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// It is known what became of so many events.
    pub(crate) fn settled(&self, plugin: AuditPlugin, events: usize) {
        let less = |under_way: u64| Some(under_way.saturating_sub(events as u64));
        let _always =
            self.under_way[plugin as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Nobody keeps what is under way any more: it is lost, and the log is told how much that is.
    pub(crate) fn give_up(&self) {
        for plugin in AuditPlugin::ALL {
            let events = self.under_way[plugin as usize].swap(0, Ordering::Relaxed);
            if events > 0 {
                self.errors[plugin as usize].fetch_add(events, Ordering::Relaxed);
                tracing::error!(
                    plugin = plugin.name(),
                    events,
                    "audit events are lost: the server has ended"
                );
            }
        }
    }

    /// So many events are lost. The log is told now and then.
    pub(crate) fn lost(&self, plugin: AuditPlugin, events: usize, why: &str, clock: &Clock) {
        let all = self.errors[plugin as usize].fetch_add(events as u64, Ordering::Relaxed) + events as u64;
        let (now, last) = (clock.unix_ms(), self.told_ms.load(Ordering::Relaxed));
        let is_due = last == 0 || now.saturating_sub(last) >= COMPLAINT_EVERY.as_millis() as u64;
        if is_due && self.told_ms.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            tracing::error!(plugin = plugin.name(), events, since_start = all, why, "audit events are lost");
        }
    }
}
