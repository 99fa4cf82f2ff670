//! Counters of connections. All of them only grow, except the number of open connections.
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

/// Why a connection is told to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesFor {
    /// Nothing happens on it.
    Idle,
    /// Other servers hold less.
    Share,
    /// A request was refused on it, and other servers have room.
    Refused,
    /// This server ends.
    Shutdown,
}

/// What is counted of the connections of one server.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    /// Connections that were accepted, and how many of them were closed at once because there were too many.
    pub accepted: Counter,
    pub refused: Counter,
    /// Connections whose TLS handshake failed.
    pub handshake_errors: Counter,
    /// Strangers that had to give way.
    pub gave_way: Counter,
    // Connections that were told to go, by why.
    told_to_go: [Counter; 4],
    /// Connections that were cut because their clients took nothing of what was written to them.
    pub unread: Counter,
    seated: AtomicUsize,
    strangers: AtomicUsize,
}

impl ConnectionCounts {
    /// Connections that were told to go for this.
    pub fn told_to_go(&self, why: GoesFor) -> &Counter {
        &self.told_to_go[why as usize]
    }

    /// Sets the number of open connections, and of strangers among them.
    pub fn set(&self, seated: usize, strangers: usize) {
        self.seated.store(seated, Ordering::Relaxed);
        self.strangers.store(strangers, Ordering::Relaxed);
    }

    pub fn read(&self) -> (usize, usize) {
        (self.seated.load(Ordering::Relaxed), self.strangers.load(Ordering::Relaxed))
    }
}
