//! How connections are kept.
//!
//! In: what somebody chose. Out: the same, with what is usual. Never: a limit; those are in `limits.rs`.

use forebay_rt::{Clock, Duration};

use crate::limits;

/// How connections are kept.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// How long an HTTP/2 connection may be silent before it is pinged.
    pub ping_interval: Duration,
    /// How long nothing may come after a ping before the connection counts as dead.
    pub ping_timeout: Duration,
    /// How long a connection without requests is kept, unless it is the only one. Looked at when it is
    /// silent.
    pub idle_max: Duration,
    /// The age from which [`Pool::renew`](crate::Pool::renew) gives a connection up.
    pub renew_age_min: Duration,
    pub clock: Clock,
}

/// When to ask a silent server whether it is there, and for how long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pings {
    pub interval: Duration,
    pub timeout: Duration,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            ping_interval: limits::PING_INTERVAL,
            ping_timeout: limits::PING_TIMEOUT,
            idle_max: limits::IDLE_MAX,
            renew_age_min: limits::RENEW_AGE_MIN,
            clock: Clock::system(),
        }
    }
}

impl PoolOptions {
    pub(crate) fn pings(&self) -> Pings {
        Pings { interval: self.ping_interval, timeout: self.ping_timeout }
    }
}
