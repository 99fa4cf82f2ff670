//! How much a webhook may say.

/// Bytes of an answer: a patch that replaces an object of 3 MiB is 4 MiB in base64, and it may have copies of
/// both objects in it. What is longer is no answer, and counts by the failure policy. Upstream has no limit.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Bytes of an answer's body that are told where it is an error; upstream's.
pub const ERROR_BYTES_MAX: usize = 2_048;

/// Bytes of a Status that an error is told by. A longer one is told as any other body.
pub const STATUS_BYTES_MAX: usize = 64 << 10;

/// Warnings of one answer that are told, in their order. Upstream tells all until their header is full.
pub const WARNINGS_MAX: usize = 256;

/// Audit annotations of one answer that are kept.
pub const ANNOTATIONS_MAX: usize = 256;

/// How long a call may take where its webhook says nothing, in seconds; upstream's default.
pub const TIMEOUT_SECONDS: u32 = 10;

/// Series of each family of metrics: a webhook has ten or so. Calls of webhooks beyond are not counted.
pub const SERIES_MAX: usize = 2_000;

/// Places of admission plugins whose time is counted, a kilobyte each: there are some thirty, and what the
/// registry carries out itself.
pub const PLUGINS_MAX: usize = 64;
