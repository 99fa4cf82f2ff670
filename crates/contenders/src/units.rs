//! What is measured, in the unit that it is shown in.
//!
//! In: bytes and spans. Out: numbers for tables. Never: rounded.

use std::time::Duration;

/// Milliseconds, with their fractions.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// MiB, with their fractions.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
