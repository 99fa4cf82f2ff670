//! What is held of spans, and what of one is told.

/// Spans that wait to be sent, as OpenTelemetry's: 2^11 x 3 KiB = 6 MiB. Beyond, they are dropped, and
/// counted.
pub const QUEUE_MAX: usize = 2_048;

/// Bytes of one text of a span; the rest is cut off.
pub const TEXT_BYTES_MAX: usize = 1_024;

/// Attributes of a span beyond those that it begins with.
pub const ATTRIBUTES_MAX: usize = 16;
