//! What may happen to our server, in numbers: the law of `docs/robustness.md`. The rival is measured by the
//! same numbers.
//!
//! In: what a row says of itself. Out: a [`Law`], as data. Never: what happened; that is judged in
//! `judgement.rs`.

use std::time::Duration;

use super::http2;
use super::said::Said;

/// Growth by a single request that is refused, and by one that is taken: what the trees of 3 MiB come to.
pub const REFUSED_BYTES: u64 = 64 << 20;
pub const TAKEN_BYTES: u64 = 230 << 20;
/// What an anonymous connection may hold, and what a server may grow by besides while there are many.
pub const SEAT_BYTES: u64 = 32 << 10;
pub const SEATS_REST_BYTES: u64 = 16 << 20;
/// What a bystander waits at most, in 99 of 100 requests.
pub const BYSTANDER: Duration = Duration::from_millis(50);
/// CPU for one request.
pub const CPU: Duration = Duration::from_secs(2);

/// What is allowed to happen in a row.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    statuses: &'static [u16],
    others: &'static [Said],
    pub(super) growth: Growth,
    pub(super) cpu: Duration,
    /// What a body says that answers with success.
    pub(super) holds: Option<&'static str>,
    /// How many answers there are, at most.
    pub(super) answers_max: Option<usize>,
    /// One of the answers has this status.
    pub(super) needs: Option<u16>,
    /// How many connections stay open, at most.
    pub(super) open_max: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub enum Growth {
    /// A single request's, by whether it is taken.
    One,
    /// Any number's: whatever the memory limit leaves.
    Any,
    /// Connections that stay open.
    Seats,
}

impl Law {
    /// Every answer has one of these statuses.
    pub const fn says(statuses: &'static [u16]) -> Law {
        Law {
            statuses,
            others: &[],
            growth: Growth::One,
            cpu: CPU,
            holds: None,
            answers_max: None,
            needs: None,
            open_max: None,
        }
    }

    /// LISTs whose reader takes nothing: while there is no room for the answers, the reader loses them.
    pub const fn lists_that_nobody_takes() -> Law {
        Law::says(&[200, 429]).or(&[
            Said::StreamReset(http2::CANCEL),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Closed,
            Said::Open,
        ])
    }

    /// Or is one of these.
    pub const fn or(self, others: &'static [Said]) -> Law {
        Law { others, ..self }
    }

    /// It is many requests, or connections: so much CPU together, and all within the memory limit.
    pub const fn many(self, cpu_seconds: u64) -> Law {
        Law { growth: Growth::Any, cpu: Duration::from_secs(cpu_seconds), ..self }
    }

    /// It is some requests that answer for as little as one does, and so much CPU together.
    pub const fn together(self, cpu_seconds: u64) -> Law {
        Law { growth: Growth::One, cpu: Duration::from_secs(cpu_seconds), ..self }
    }

    /// It is many connections that stay: each its share.
    pub const fn seats(self, cpu_seconds: u64) -> Law {
        Law { growth: Growth::Seats, cpu: Duration::from_secs(cpu_seconds), ..self }
    }

    /// Success says this.
    pub const fn holds(self, text: &'static str) -> Law {
        Law { holds: Some(text), ..self }
    }

    /// There are no more answers than that: what hides in a request is not one.
    pub const fn at_most(self, answers: usize) -> Law {
        Law { answers_max: Some(answers), ..self }
    }

    /// One of the answers, if not more, has this status.
    pub const fn needs(self, status: u16) -> Law {
        Law { needs: Some(status), ..self }
    }

    /// No more connections than that stay open.
    pub const fn open_at_most(self, connections: usize) -> Law {
        Law { open_max: Some(connections), ..self }
    }

    /// Whether `said` may be an answer.
    pub fn allows(&self, said: Said) -> bool {
        match said {
            Said::Status(status) if self.statuses.contains(&status) => true,
            other => self.others.contains(&other),
        }
    }
}
