//! How an engine is set up.

use forebay_rt::Clock;

use crate::disk::Syncs;
use crate::limits::{DEFRAG_SLACK_BYTES, HISTORY_MS, MARK_EVERY_MS};

/// See the module's doc.
#[derive(Clone, Debug)]
pub struct Options {
    /// What time it is, for expiry and history.
    pub clock: Clock,
    /// How long history is kept, at least.
    pub history_ms: u64,
    /// How far apart the marks are that history is measured by; it is kept up to this much longer.
    pub mark_every_ms: u64,
    /// How much more than twice its live data and history the file may use before it is made anew.
    pub slack_bytes: u64,
    /// When a store in a directory syncs.
    pub syncs: Syncs,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            clock: Clock::system(),
            history_ms: HISTORY_MS,
            mark_every_ms: MARK_EVERY_MS,
            slack_bytes: DEFRAG_SLACK_BYTES,
            syncs: Syncs::default(),
        }
    }
}
