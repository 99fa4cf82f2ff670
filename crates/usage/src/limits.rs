//! How many clients are known by name, how much is kept of each, and for how long.

use std::time::Duration;

/// Clients that have a row of their own: with its counters of the past a row takes about 2.2 KB, and at most
/// 5 times [`TEXT_BYTES_MAX`] of names, so that all are 1.1 MB, and 1.8 MB at the worst. One more takes the
/// place of the lightest, which is counted with everybody else from then on: who takes more than one part in
/// so many of what all take is never the lightest.
pub const ROWS_MAX: usize = 512;

/// Bytes of a user's name, an agent's, a flow's: what is longer is cut there, and those that begin alike are
/// one row.
pub const TEXT_BYTES_MAX: usize = 256;

/// How often it is noted how far the counters are, and how many such notes are kept: the last minute, in
/// steps of ten seconds, and the last ten minutes, in steps of one.
pub const TICK: Duration = Duration::from_secs(10);
pub const TICKS: usize = 6;
pub const MINUTES: usize = 10;

/// How long a client that was told that its place in history is gone is expected to list for it.
pub const EXPIRED_MAX: Duration = Duration::from_secs(60);

/// Collections that a connection is known to have read: 4 bytes each. With more the oldest is forgotten, and
/// a client that reads it again counts as one that has begun.
pub const READ_BEFORE_MAX: usize = 128;

/// A row as JSON at the worst: its names, each byte of which may be an escape of six, and four times its
/// numbers. All rows are 4 MB, and 0.4 MB as they usually are.
pub const ROW_JSON_BYTES: usize = 8 << 10;

const _: () = assert!(ROW_JSON_BYTES >= 5 * TEXT_BYTES_MAX * 2 + 3 * 1024);
