//! How many seats a level could use, over time.
//!
//! In: a number, and when it became that. Out: its mean, deviation and highest since it was last asked, and a
//! smoothed one that falls slowly. Never: what follows from it.
//!
//! Source: apiserver v1.36.3 `fairqueuing/integrator.go`.

use crate::limits::SMOOTHING;
use crate::price::Moment;

/// A number over time.
#[derive(Clone, Debug, Default)]
pub struct Integrator {
    value: f64,
    since: Moment,
    highest: f64,
    seconds: f64,
    sum: f64,
    squares: f64,
}

/// What is known of a level's demand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    pub average: f64,
    pub deviation: f64,
    pub high_watermark: u64,
    /// Rises at once to where demand is, and falls slowly.
    pub smoothed: f64,
}

impl Integrator {
    /// It is that from now on.
    pub fn set(&mut self, value: u64, now: Moment) {
        self.advance(now);
        self.value = value as f64;
        self.highest = self.highest.max(self.value);
    }

    fn advance(&mut self, now: Moment) {
        let seconds = now.saturating_sub(self.since).as_secs_f64();
        self.since = self.since.max(now);
        self.seconds += seconds;
        self.sum += self.value * seconds;
        self.squares += self.value * self.value * seconds;
    }

    /// The highest since it was last taken.
    pub fn highest(&self) -> u64 {
        self.highest as u64
    }

    /// What it is.
    pub fn now(&self) -> f64 {
        self.value
    }

    /// Ends a period, and adds it to what was known.
    pub fn take(&mut self, known: &mut Demand, now: Moment) {
        self.advance(now);
        known.high_watermark = self.highest as u64;
        if self.seconds > 0.0 {
            known.average = self.sum / self.seconds;
            known.deviation = (self.squares / self.seconds - known.average * known.average).max(0.0).sqrt();
            let envelope = known.average + known.deviation;
            known.smoothed = envelope.max(SMOOTHING * known.smoothed + (1.0 - SMOOTHING) * envelope);
        }
        *self =
            Integrator { value: self.value, since: self.since, highest: self.value, ..Integrator::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn demand_rises_at_once_and_falls_slowly() {
        let at = Duration::from_secs;
        let (mut integrator, mut demand) = (Integrator::default(), Demand::default());
        integrator.set(10, at(0));
        integrator.set(30, at(5));
        integrator.take(&mut demand, at(10));
        assert_eq!(
            (demand.average, demand.deviation, demand.high_watermark, demand.smoothed),
            (20.0, 10.0, 30, 30.0)
        );
        integrator.set(0, at(10));
        integrator.take(&mut demand, at(20));
        assert_eq!((demand.average, demand.high_watermark), (0.0, 30));
        assert!((demand.smoothed - 30.0 * SMOOTHING).abs() < 1e-9);
        integrator.take(&mut demand, at(30));
        assert_eq!(demand.high_watermark, 0);
    }
}
