//! How often a server is asked, and how much of its answer is read.

use std::time::Duration;

/// How often the screen is drawn again.
pub const PERIOD: Duration = Duration::from_secs(2);

/// How long a server may take to answer; then it counts as one that does not.
pub const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Bytes of an answer: with all rows at their worst there are 4 MB. More is no answer of Forebay's.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Longest pause that a server that refuses may ask for.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Keys that are pressed and not looked at yet; more are dropped.
pub const KEYS_MAX: usize = 16;
