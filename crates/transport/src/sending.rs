//! What it takes on this machine to send a byte: to seal it, and to give it to the kernel.
//!
//! In: CPU time of some of what connections write, and how many bytes that were. Out: picoseconds a byte, as
//! they were of late. Never: measures what is short; reads the machine's clock in a simulation.
//!
//! Reading the clock takes 0.5 us, so that a connection measures [`SAMPLE_BYTES`] and then nothing for
//! [`SAMPLE_EVERY_BYTES`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits::{SAMPLE_BYTES, SAMPLE_EVERY_BYTES, SAMPLE_WRITE_BYTES_MIN};

/// As it was on a machine of two cores, until something is measured.
const AT_FIRST: u64 = 250;

// One for the process: what it takes is the machine's, whichever server sends.
static PICOS_A_BYTE: AtomicU64 = AtomicU64::new(AT_FIRST);

/// What it takes to send a byte, in picoseconds.
pub fn picos_to_send_byte() -> u64 {
    PICOS_A_BYTE.load(Ordering::Relaxed)
}

/// What one connection measures.
#[derive(Default)]
pub(crate) struct SendMeter {
    /// Bytes to be written until it measures again.
    rest: usize,
    bytes: usize,
    cpu: Duration,
}

impl SendMeter {
    /// A write of so many bytes begins, or of none: a flush of what was written before. What is returned is
    /// for [`SendMeter::end`].
    pub fn begin(&self, bytes: usize) -> Option<Duration> {
        let is_flush = bytes == 0 && self.bytes > 0;
        (self.rest == 0 && (is_flush || bytes >= SAMPLE_WRITE_BYTES_MIN)).then(forebay_rt::used_cpu)?
    }

    /// So many bytes were written.
    pub fn end(&mut self, began: Option<Duration>, bytes: usize) {
        let Some(began) = began else {
            self.rest = self.rest.saturating_sub(bytes);
            return;
        };
        let took = forebay_rt::used_cpu().map_or(Duration::ZERO, |now| now.saturating_sub(began));
        self.cpu += took;
        self.bytes += bytes;
        if self.bytes >= SAMPLE_BYTES {
            note(self.cpu, self.bytes);
            *self = SendMeter { rest: SAMPLE_EVERY_BYTES, ..SendMeter::default() };
        }
    }
}

fn note(cpu: Duration, bytes: usize) {
    let picos = u64::try_from(cpu.as_nanos() * 1_000 / bytes as u128).unwrap_or(u64::MAX);
    let moved = |known: u64| known - known / 8 + picos.min(8 * AT_FIRST) / 8;
    let _noted = PICOS_A_BYTE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| Some(moved(known)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_measures_some_of_what_is_long() {
        let mut meter = SendMeter::default();
        assert_eq!(meter.begin(SAMPLE_WRITE_BYTES_MIN - 1), None, "too short to tell");
        let began = meter.begin(SAMPLE_BYTES);
        assert!(began.is_some() && meter.begin(0).is_none(), "nothing was written yet");
        meter.end(began, SAMPLE_BYTES / 2);
        assert!(meter.begin(0).is_some(), "what was written is flushed");
        meter.end(began, SAMPLE_BYTES / 2);
        for left in (1..=SAMPLE_EVERY_BYTES / SAMPLE_BYTES).rev() {
            assert_eq!(meter.begin(SAMPLE_BYTES), None, "{left}");
            meter.end(None, SAMPLE_BYTES);
        }
        assert!(meter.begin(SAMPLE_BYTES).is_some());
    }

    #[test]
    fn what_is_known_follows_what_is_measured() {
        for _ in 0..100 {
            note(Duration::from_micros(500), 1_000_000);
        }
        assert!((495..=505).contains(&picos_to_send_byte()), "{}", picos_to_send_byte());
    }
}
