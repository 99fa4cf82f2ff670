//! Wall time as objects and Tables show it.

use forebay_rt::Clock;
use jiff::Timestamp;

/// Wall time as `creationTimestamp` has it.
pub fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Wall time as the printers take it.
pub fn timestamp(clock: &Clock) -> Timestamp {
    Timestamp::from_millisecond(clock.unix_ms() as i64).unwrap_or(Timestamp::UNIX_EPOCH)
}
