//! Whether the server is reached, as all collections of a factory know it together.
//!
//! In: what became of requests. Out: a ring for each time that the server answers one after it could not be
//! reached. Owner: shared by the drivers of a factory. Never: decides when anybody asks again; the reflector
//! does.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay_rt::{Bell, Ear};

/// Rows of the bell: drivers of so many threads sit down at once.
const ROWS: usize = 4;

pub(crate) struct Reach {
    // A request failed below HTTP, and none was answered since.
    is_lost: AtomicBool,
    bell: Bell,
}

impl Default for Reach {
    fn default() -> Reach {
        Reach { is_lost: AtomicBool::new(false), bell: Bell::new(ROWS) }
    }
}

impl Reach {
    /// One that hears it from now on.
    pub(crate) fn ear(&self) -> Ear {
        self.bell.ear()
    }

    /// A request came to grief below HTTP.
    pub(crate) fn failed(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// A request was answered, and not with a refusal.
    pub(crate) fn answered(&self) {
        if self.is_lost.swap(false, Ordering::Relaxed) {
            self.bell.ring();
        }
    }
}
