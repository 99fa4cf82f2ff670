//! What the streams of an HTTP/2 connection know of it.
//!
//! In: that a ping was not answered. Out: why a stream broke off. Never: the connection itself.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;

/// What the streams of a connection know of it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    ping_lost: AtomicBool,
}

impl Link {
    /// A ping was not answered in time.
    pub fn lose_ping(&self) {
        self.ping_lost.store(true, Ordering::Release);
    }

    /// The error of a stream: a connection that was given up without a word from the server says why.
    pub fn why(&self, error: h2::Error, named: fn(h2::Error) -> Error) -> Error {
        if self.ping_lost.load(Ordering::Acquire) { Error::PingLost } else { named(error) }
    }
}
