//! What is counted of connections. Everything only grows, but for how many there are.
//!
//! In: what happened. Out: numbers, for whoever shows them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is counted of the connections of one server.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    /// Connections that were accepted, and those of them that were closed at once, as there were too many.
    pub accepted: Counter,
    pub refused: Counter,
    /// Connections whose TLS handshake failed.
    pub handshake_errors: Counter,
    /// Strangers whose seats others got.
    pub gave_way: Counter,
    /// Connections that were asked to end because nothing happened on them.
    pub idle: Counter,
    /// Those whose clients took nothing of what was written to them.
    pub unread: Counter,
    seated: AtomicUsize,
    strangers: AtomicUsize,
}

impl ConnectionCounts {
    /// How many there are now, and how many of them are strangers'.
    pub fn set(&self, seated: usize, strangers: usize) {
        self.seated.store(seated, Ordering::Relaxed);
        self.strangers.store(strangers, Ordering::Relaxed);
    }

    pub fn read(&self) -> (usize, usize) {
        (self.seated.load(Ordering::Relaxed), self.strangers.load(Ordering::Relaxed))
    }
}
