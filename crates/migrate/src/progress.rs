//! How far a long command is, on stderr: a line every few seconds, none for what is done at once.

use std::time::Duration;

use forebay_rt::{Clock, Instant};

const EVERY: Duration = Duration::from_secs(2);

/// See the module's doc.
pub struct Progress {
    done: &'static str,
    what: &'static str,
    of: Option<u64>,
    clock: Clock,
    next: Instant,
}

impl Progress {
    /// - `done`: what is done to keys: `restored`.
    /// - `of`: how many there are, if that is known.
    pub fn new(done: &'static str, of: Option<u64>) -> Progress {
        Progress::counting("keys", done, of)
    }

    /// The same of something else.
    pub fn counting(what: &'static str, done: &'static str, of: Option<u64>) -> Progress {
        let clock = Clock::system();
        let next = clock.now() + EVERY;
        Progress { done, what, of, clock, next }
    }

    /// That many are done.
    pub fn at(&mut self, count: u64) {
        let now = self.clock.now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        match self.of {
            Some(of) => eprintln!("{} {count} of {of} {}", self.done, self.what),
            None => eprintln!("{} {count} {}", self.done, self.what),
        }
    }
}
