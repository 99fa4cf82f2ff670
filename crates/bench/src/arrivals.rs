//! Requests as they were sent: when, what for, and what was answered.
//!
//! In: one at a time, from many tasks. Out: how many of what, and how they came over time. One lock, held for
//! a push. Never: a request left out because it failed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What peaks are counted in.
pub const WINDOW: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    WatchList,
    Watch,
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    pub at: Instant,
    pub kind: Purpose,
    /// The status of the answer, or [`SentRequest::LOST`], or [`SentRequest::REFUSED`].
    pub code: u16,
}

/// A log that many write.
#[derive(Debug, Default)]
pub struct Arrivals(Mutex<Vec<SentRequest>>);

/// What came between two instants.
#[derive(Clone, Debug, Default)]
pub struct Span {
    pub requests: usize,
    /// Those that ask for all objects: lists and watch-lists.
    pub whole: usize,
    pub too_many: usize,
    pub lost: usize,
    /// In each [`WINDOW`] since the beginning; the last may be shorter.
    pub windows: Vec<usize>,
}

impl SentRequest {
    /// There was no answer.
    pub const LOST: u16 = 0;
    /// Nobody listened.
    pub const REFUSED: u16 = 1;
}

impl Arrivals {
    pub fn note(&self, arrival: SentRequest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
    }

    /// What came from `begin` on, before `end`.
    pub fn span(&self, begin: Instant, end: Instant) -> Span {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let took = end.saturating_duration_since(begin);
        let count = (took.as_secs_f64() / WINDOW.as_secs_f64()).ceil().max(1.0) as usize;
        let mut span = Span { windows: vec![0; count], ..Span::default() };
        for arrival in all.iter().filter(|arrival| (begin..end).contains(&arrival.at)) {
            span.requests += 1;
            span.whole += usize::from(arrival.kind != Purpose::Watch);
            span.too_many += usize::from(arrival.code == 429);
            span.lost += usize::from(matches!(arrival.code, SentRequest::LOST | SentRequest::REFUSED));
            let at = (arrival.at - begin).as_millis() / WINDOW.as_millis();
            if let Some(window) = span.windows.get_mut(at as usize) {
                *window += 1;
            }
        }
        span
    }
}

impl Span {
    /// The fullest window against the mean of all. 1 of one window, and of none with a request.
    pub fn peak(&self) -> f64 {
        let most = self.windows.iter().max().copied().unwrap_or(0);
        match self.requests {
            0 => 1.0,
            all => most as f64 * self.windows.len() as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_counts_by_kind_and_by_windows_of_two_seconds() {
        let (log, begin) = (Arrivals::default(), Instant::now());
        for (ms, kind, code) in [
            (0, Purpose::Watch, SentRequest::LOST),
            (1_999, Purpose::WatchList, 429),
            (2_000, Purpose::List, 200),
            (5_000, Purpose::Watch, 200),
            (6_000, Purpose::Watch, 200),
        ] {
            log.note(SentRequest { at: begin + Duration::from_millis(ms), kind, code });
        }
        let span = log.span(begin, begin + Duration::from_secs(6));
        assert_eq!((span.requests, span.whole, span.too_many, span.lost), (4, 2, 1, 1));
        assert_eq!(span.windows, [2, 1, 1]);
        assert!((span.peak() - 1.5).abs() < 1e-9);
        assert!((log.span(begin, begin).peak() - 1.0).abs() < 1e-9);
    }
}
