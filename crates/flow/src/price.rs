//! What a request costs: bytes that it holds and CPU time that it takes; and what both are in seats.
//!
//! In: what a request will take, known before it runs. Out: its work, in time of one seat. Never: whose turn
//! it is.
//!
//! A seat is one thread's time and [`Seat::bytes`] of memory. To use a second of CPU, or to hold so many
//! bytes for a second, is a second of a seat. So a GET costs what it computes, and an answer that nobody
//! reads costs more the longer it lies there.

use std::time::Duration;

use crate::limits::HOLD_EXPECTED;

/// Since the server's start; whoever steps the machine has the clock.
pub type Moment = Duration;

/// What a request takes, known before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Held from when it runs until its reader has taken them.
    pub bytes: u64,
    pub cpu: Duration,
}

/// What a seat is, beside one request that is worked on: so many bytes held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    pub bytes: u64,
}

/// Time of one seat, in nanoseconds.
pub type SeatTime = u64;

impl Seat {
    /// What a request is charged before it runs: its CPU time, and its bytes for as long as a reader takes
    /// that keeps up.
    pub fn work(&self, price: Price) -> SeatTime {
        nanos(price.cpu).saturating_add(self.holding(price.bytes, HOLD_EXPECTED)).max(1)
    }

    /// What it is to hold bytes for some time.
    pub fn holding(&self, bytes: u64, time: Duration) -> SeatTime {
        let work = u128::from(bytes) * time.as_nanos() / u128::from(self.bytes.max(1));
        u64::try_from(work).unwrap_or(u64::MAX)
    }

    /// How many seats bytes take, rounded up.
    pub fn seats(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes.max(1))
    }
}

/// Nanoseconds, as far as 64 bits reach.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_held_for_a_second_are_as_much_as_a_second_of_cpu() {
        let seat = Seat { bytes: 1 << 20 };
        assert_eq!(seat.holding(1 << 20, Duration::from_secs(1)), 1_000_000_000);
        assert_eq!(seat.holding(1 << 19, Duration::from_secs(4)), 2_000_000_000);
        let get = Price { bytes: 4 << 10, cpu: Duration::from_micros(50) };
        let list = Price { bytes: 8 << 20, cpu: Duration::from_millis(40) };
        assert!(seat.work(list) > 500 * seat.work(get));
        assert_eq!(seat.work(Price::default()), 1);
        assert_eq!((seat.seats(0), seat.seats(1), seat.seats((1 << 20) + 1)), (0, 1, 2));
    }
}
