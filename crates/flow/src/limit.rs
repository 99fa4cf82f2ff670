//! The limit that finds itself: how many requests may be worked on at once, and how many bytes may be held.
//!
//! In: how long requests took against what they cost, how many were under way, how much memory is left;
//! bounds. Out: seats and bytes. Never: which level has them.
//!
//! Latency of each class of cost is held against what it was without load. While the one is little more than
//! the other there are not too many; when it grows, the limit falls in proportion (the gradient of adaptive
//! concurrency). Some room on top lets it find more. Without load is: in a window in which no more was under
//! way at once than there are cores, or in one of every [`PROBE_EVERY`] for which the limit is halved, if
//! that left latency as it was. For writes it is already where half of the limit is not used.

use std::time::Duration;

use crate::limits::{BYTES_MIN, PROBE_EVERY, SEATS_A_CORE, WINDOW, WINDOW_SAMPLES_MIN};
use crate::price::{Moment, nanos};

/// How much more latency than without load is no sign of too much.
const TOLERANCE: f64 = 1.5;
/// How much of a new limit is taken at once.
const STEP: f64 = 0.4;
/// Classes of cost: reading and writing, each by powers of two of microseconds.
const CLASSES: usize = 2 * POWERS;
const POWERS: usize = 24;
/// What is left of latency when half as many are under way, if it is not they who make it.
const KEPT: f64 = 0.8;
/// Samples of a class in a window that say anything.
const CLASS_SAMPLES_MIN: u64 = 4;

/// What flags say: bounds, no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitBounds {
    pub seats_min: u64,
    pub seats_max: u64,
    /// For answers that wait for their readers.
    pub bytes_max: u64,
}

/// Whether a request writes; the two are not compared with each other, as one waits for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    samples: u64,
    nanos: u64,
    /// Mean without load, in nanoseconds; 0 before it is known.
    unloaded: f64,
    /// Mean in the window before.
    last: f64,
}

impl Class {
    fn mean(&self) -> Option<f64> {
        (self.samples >= CLASS_SAMPLES_MIN).then(|| self.nanos as f64 / self.samples as f64)
    }
}

/// Finds the limit.
#[derive(Debug)]
pub struct Limiter {
    bounds: LimitBounds,
    cores: u64,
    seats: f64,
    bytes: u64,
    classes: [Class; CLASSES],
    began: Moment,
    samples: u64,
    /// Most requests that were under way at once in this window.
    busiest: u64,
    /// The same in the window before.
    last_busiest: u64,
    windows: u64,
    stretch: f64,
}

impl Limiter {
    pub fn new(bounds: LimitBounds, cores: u64, now: Moment) -> Limiter {
        let LimitBounds { seats_min, seats_max, bytes_max } = bounds;
        assert!(1 <= seats_min && seats_min <= seats_max, "bounds of a limit are in order");
        let seats = cores.saturating_mul(SEATS_A_CORE).clamp(seats_min, seats_max) as f64;
        let classes = [Class::default(); CLASSES];
        Limiter {
            bounds,
            cores,
            seats,
            bytes: bytes_max,
            classes,
            began: now,
            samples: 0,
            busiest: 0,
            last_busiest: 0,
            windows: 0,
            stretch: 1.0,
        }
    }

    /// How many requests may be worked on at once.
    pub fn seats(&self) -> u64 {
        let seats = if self.is_probe() { self.seats / 2.0 } else { self.seats };
        (seats.round() as u64).clamp(self.bounds.seats_min, self.bounds.seats_max)
    }

    /// How many bytes may be held for readers.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Latency under load by latency without, in the last window.
    pub fn stretch(&self) -> f64 {
        self.stretch
    }

    /// So many requests are worked on.
    pub fn under_way(&mut self, requests: u64) {
        self.busiest = self.busiest.max(requests);
    }

    /// A request that was to take `cpu` was answered after `took`.
    pub fn answered(&mut self, access: Access, cpu: Duration, took: Duration) {
        let class = &mut self.classes[class_of(access, cpu)];
        class.samples += 1;
        class.nanos += nanos(took);
        self.samples += 1;
    }

    /// So much memory is left beside what answers hold. Half of it is for answers: they fall at once, and
    /// rise slowly.
    pub fn memory(&mut self, left: u64, held: u64) {
        let wanted = (left.saturating_add(held) / 2).clamp(BYTES_MIN, self.bounds.bytes_max.max(BYTES_MIN));
        self.bytes = match wanted < self.bytes {
            true => wanted,
            false => self.bytes + (wanted - self.bytes).div_ceil(8),
        };
    }

    /// Ends the window if it is time, and says whether it did.
    pub fn tick(&mut self, now: Moment) -> bool {
        if now.saturating_sub(self.began) < WINDOW || self.samples < WINDOW_SAMPLES_MIN {
            return false;
        }
        let probe = self.is_probe();
        let is_calm = self.busiest <= self.cores;
        let stretch = self.gathered(probe, is_calm);
        if let Some(stretch) = stretch.filter(|_| !probe) {
            self.stretch = stretch;
            self.move_by(stretch);
        }
        for class in &mut self.classes {
            (class.samples, class.nanos) = (0, 0);
        }
        self.last_busiest = self.busiest;
        (self.began, self.samples, self.busiest) = (now, 0, 0);
        self.windows = if is_calm && !probe { 0 } else { self.windows + 1 };
        true
    }

    fn is_probe(&self) -> bool {
        self.windows % PROBE_EVERY == PROBE_EVERY - 1
    }

    /// Latency against what it is without load, of all classes together; learns what it is without.
    fn gathered(&mut self, probe: bool, is_calm: bool) -> Option<f64> {
        let (mut took, mut expected) = (0.0, 0.0);
        // Where fewer than half of the limit were under way, as many are when it is halved.
        let fewer = probe && 4 * self.busiest <= 3 * self.last_busiest;
        let has_half = self.has_half();
        for (number, class) in self.classes.iter_mut().enumerate() {
            let Some(mean) = class.mean() else { continue };
            // What a write waits for the store is not in this, as it has no seat then. But where so many of
            // its level are at the store that it keeps its seat (ADR 94), it is: they share a sync of the
            // disk, and many at once take longer, and are no fewer for that.
            let is_calm = is_calm || number >= POWERS && has_half;
            if class.unloaded == 0.0 || mean < class.unloaded {
                class.unloaded = mean;
            } else if is_calm || fewer && mean >= KEPT * class.last {
                class.unloaded += (mean - class.unloaded) / 4.0;
            }
            class.last = mean;
            took += mean * class.samples as f64;
            expected += class.unloaded * class.samples as f64;
        }
        (expected > 0.0).then(|| took / expected)
    }

    /// Whether half of the limit was not used.
    fn has_half(&self) -> bool {
        (self.busiest as f64) < self.seats / 2.0
    }

    fn move_by(&mut self, stretch: f64) {
        let gradient = (TOLERANCE / stretch).clamp(0.5, 1.0);
        let wanted = self.seats * gradient + self.seats.sqrt();
        // What is not used says nothing about more of it.
        if wanted > self.seats && self.has_half() {
            return;
        }
        let moved = self.seats + STEP * (wanted - self.seats);
        self.seats = moved.clamp(self.bounds.seats_min as f64, self.bounds.seats_max as f64);
    }
}

fn class_of(access: Access, cpu: Duration) -> usize {
    let power = (128 - cpu.as_micros().leading_zeros()) as usize;
    power.min(POWERS - 1) + if access == Access::Write { POWERS } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: LimitBounds = LimitBounds { seats_min: 4, seats_max: 4_096, bytes_max: 1 << 30 };
    const CPU: Duration = Duration::from_millis(1);

    /// A window in which as many were under way as may be, of a server that does `most` at once.
    fn window(limiter: &mut Limiter, number: u64, most: u64) {
        let under_way = limiter.seats();
        limiter.under_way(under_way);
        let took = CPU * 2 * (under_way.max(most) as u32) / most as u32;
        (0..100).for_each(|_| limiter.answered(Access::Read, CPU, took));
        assert!(limiter.tick(WINDOW * (number as u32 + 1)));
    }

    #[test]
    fn the_limit_finds_what_a_server_can_and_follows_it() {
        let mut limiter = Limiter::new(BOUNDS, 2, Duration::ZERO);
        for (phase, most) in [20, 400, 60].into_iter().enumerate() {
            (0..400).for_each(|at| window(&mut limiter, phase as u64 * 400 + at, most));
            let found = limiter.seats();
            assert!((most..=4 * most).contains(&found), "{found} for {most}");
        }
    }

    #[test]
    fn what_is_not_used_does_not_raise_it() {
        let mut limiter = Limiter::new(BOUNDS, 2, Duration::ZERO);
        let before = limiter.seats();
        for at in 1..100 {
            limiter.under_way(3);
            (0..100).for_each(|_| limiter.answered(Access::Read, CPU, CPU));
            limiter.tick(WINDOW * at);
        }
        assert_eq!(limiter.seats(), before);
    }

    #[test]
    fn what_waits_for_a_core_is_not_taken_for_latency_without_load() {
        let mut limiter = Limiter::new(BOUNDS, 2, Duration::ZERO);
        let window = |limiter: &mut Limiter, at: u32, under_way: u64| {
            limiter.under_way(under_way);
            let took = CPU * under_way.max(2) as u32 / 2;
            (0..100).for_each(|_| limiter.answered(Access::Read, CPU, took));
            assert!(limiter.tick(WINDOW * at));
        };
        window(&mut limiter, 1, 2);
        // A few clients keep both cores busy for a minute, and use less than half of the limit.
        (2..122).for_each(|at| window(&mut limiter, at, 10));
        assert!(limiter.stretch() > 4.0, "{}", limiter.stretch());
        // Then there are many.
        (122..142).for_each(|at| {
            let all = limiter.seats();
            window(&mut limiter, at, all);
        });
        assert!(limiter.seats() <= 2 * BOUNDS.seats_min, "{}", limiter.seats());
    }

    #[test]
    fn what_writes_wait_for_the_disk_with_a_seat_takes_none_from_others() {
        let seats = |access: Access| {
            let mut limiter = Limiter::new(BOUNDS, 2, Duration::ZERO);
            for at in 1..200 {
                // First one at a time; then more than there are cores, which wait for one sync together.
                let (under_way, took) = if at < 10 { (1, CPU) } else { (10, 10 * CPU) };
                limiter.under_way(under_way);
                (0..100).for_each(|_| limiter.answered(access, CPU, took));
                assert!(limiter.tick(WINDOW * at));
            }
            limiter.seats()
        };
        assert!(seats(Access::Write) > SEATS_A_CORE, "{}", seats(Access::Write));
        assert!(seats(Access::Read) < 10, "these wait for a core");
    }

    #[test]
    fn bytes_fall_at_once_and_rise_slowly() {
        let mut limiter = Limiter::new(BOUNDS, 2, Duration::ZERO);
        limiter.memory(64 << 20, 0);
        assert_eq!(limiter.bytes(), 32 << 20);
        limiter.memory(1 << 30, 0);
        assert_eq!(limiter.bytes(), 92 << 20);
        limiter.memory(0, 0);
        assert_eq!(limiter.bytes(), BYTES_MIN);
    }
}
