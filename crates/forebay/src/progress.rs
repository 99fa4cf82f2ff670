//! How far a long command is, on stderr: a line every few seconds, none for what is done at once.

use std::time::Duration;

use forebay_rt::{Clock, Instant};

const EVERY: Duration = Duration::from_secs(2);

/// See the module's doc.
pub struct Progress {
    done: &'static str,
    of: Option<u64>,
    clock: Clock,
    next: Instant,
}

impl Progress {
    /// - `done`: what is done to keys: `restored`.
    /// - `of`: how many there are, if that is known.
    pub fn new(done: &'static str, of: Option<u64>) -> Progress {
        let clock = Clock::system();
        let next = clock.now() + EVERY;
        Progress { done, of, clock, next }
    }

    /// That many keys are done.
    pub fn at(&mut self, keys: u64) {
        let now = self.clock.now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        match self.of {
            Some(of) => eprintln!("{} {keys} of {of} keys", self.done),
            None => eprintln!("{} {keys} keys", self.done),
        }
    }
}
