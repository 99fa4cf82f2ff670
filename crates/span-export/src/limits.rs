//! How many spans go together, and how long a collector may take.

use forebay_rt::Duration;
use forebay_spans::limits::QUEUE_MAX;

/// Spans of one call, as OpenTelemetry's: 512 x 3 KiB = 1.5 MiB, below the 4 MiB that a server of gRPC takes.
pub const BATCH_MAX: usize = 512;

/// How long the first span of a batch waits for others.
pub const BATCH_WAIT: Duration = Duration::from_secs(5);

/// How long a collector may take to be connected to.
pub const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How long it may take to answer; then the batch counts as not taken.
pub const EXPORT_WAIT: Duration = Duration::from_secs(10);

/// How long the last batch may take once the server leaves.
pub const LEAVE_WAIT: Duration = Duration::from_secs(2);

/// Bytes of an answer that are read; there are a few.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// How often the log says that spans were lost.
pub const COMPLAINT_PAUSE: Duration = Duration::from_secs(60);

const _: () = assert!(BATCH_MAX <= QUEUE_MAX);
