//! How long a key waits that failed, and what a queue keeps when it has nothing to do.
//!
//! In: nothing. Out: constants, each with its reason. Never: read from outside.

use forebay_rt::Duration;

/// Wait after the first failure of a key. As client-go's: a conflict is usually over by then.
pub const BASE_DELAY: Duration = Duration::from_millis(5);

/// Longest wait after failures of a key: 2^18 x 5 ms is beyond it, so that the 19th failure in a row waits
/// that long. As client-go's.
pub const MAX_DELAY: Duration = Duration::from_secs(1_000);

/// Tokens that come back to the bucket in a second: retries of all keys together, once the burst is used up.
/// As client-go's.
pub const BUCKET_QPS: u32 = 10;

/// Retries of all keys together that need not wait for the bucket. As client-go's.
pub const BUCKET_BURST: u32 = 100;

/// Longest delay: 10 years. Whoever asks for more means never, and no clock of a machine reaches beyond some
/// hundred years.
pub const DELAY_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Keys for which room is kept in the table once it is empty: a storm of 100,000 leaves 10 MB behind
/// otherwise.
pub const ROOM_KEPT: usize = 1_024;

/// Workers of one queue. Each is a task; more of them than this waits for a server and not for a worker. At
/// the limit no more are started.
pub const WORKERS_MAX: usize = 1_024;

/// Upper ends of the buckets in which [`super::Spans`] counts: powers of ten from 10 ns to 1,000 s, and the
/// rest. As client-go's, so that dashboards made for those can be used.
pub const SPAN_BUCKETS: [Duration; 12] = [
    Duration::from_nanos(10),
    Duration::from_nanos(100),
    Duration::from_micros(1),
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_secs(100),
    Duration::from_secs(1_000),
];

const _: () = assert!(BUCKET_QPS > 0 && BUCKET_BURST > 0 && WORKERS_MAX > 0);
const _: () = assert!(BASE_DELAY.as_nanos() < MAX_DELAY.as_nanos());
