//! Leases: what lets keys expire. Shared by many keys, as kube-apiserver shares them.
//!
//! In: lifetimes. Out: ids of leases that last at least as long, and a little longer: a lease is given to
//! further keys for [`LEASE_REUSE_PERCENT`](limits::LEASE_REUSE_PERCENT) of its time, at most a minute, and
//! to [`LEASE_KEYS_MAX`](limits::LEASE_KEYS_MAX) keys.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use forebay_rt::{Clock, Duration, Instant};
use tokio::sync::Semaphore;

use crate::error::RequestError;
use crate::limits;

pub(crate) struct Leases {
    clock: Clock,
    // Oldest first, at most LEASES_MAX.
    held: Mutex<Vec<Lease>>,
    // One is granted at a time, so that many writes together share one.
    turn: Semaphore,
}

struct Lease {
    id: u64,
    ttl_seconds: u64,
    // Given to new keys until then.
    until: Instant,
    keys: u64,
}

impl Leases {
    pub(crate) fn new(clock: Clock) -> Leases {
        Leases { clock, held: Mutex::default(), turn: Semaphore::new(1) }
    }

    /// A lease for one more key that is to live for `ttl`.
    ///
    /// - `grant`: asks etcd for a lease of so many seconds, and gives its id.
    pub(crate) async fn lease<F: Future<Output = Result<u64, RequestError>>>(
        &self,
        ttl: Duration,
        grant: impl Fn(u64) -> F,
    ) -> Result<u64, RequestError> {
        let ttl_seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        if let Some(id) = self.known(ttl_seconds) {
            return Ok(id);
        }
        let closed = |_| RequestError::Unreachable { text: "the store is closed".to_string() };
        let _turn = self.turn.acquire().await.map_err(closed)?;
        if let Some(id) = self.known(ttl_seconds) {
            return Ok(id);
        }
        let reuse_seconds =
            (ttl_seconds * limits::LEASE_REUSE_PERCENT / 100).min(limits::LEASE_REUSE_SECONDS_MAX);
        // Before it is granted: it may last a moment longer than is known here, never shorter.
        let until = self.clock.now() + Duration::from_secs(reuse_seconds);
        let id = grant(ttl_seconds + reuse_seconds).await?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|lease| lease.ttl_seconds != ttl_seconds);
        if held.len() == limits::LEASES_MAX {
            held.remove(0);
        }
        held.push(Lease { id, ttl_seconds, until, keys: 1 });
        Ok(id)
    }

    /// Forgets a lease that is gone.
    pub(crate) fn forget(&self, id: u64) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).retain(|lease| lease.id != id);
    }

    fn known(&self, ttl_seconds: u64) -> Option<u64> {
        let now = self.clock.now();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = |lease: &&mut Lease| {
            lease.ttl_seconds == ttl_seconds && now < lease.until && lease.keys < limits::LEASE_KEYS_MAX
        };
        let lease = held.iter_mut().find(usable)?;
        lease.keys += 1;
        Some(lease.id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_shared_for_a_while_and_by_so_many() {
        let (clock, granted) = (Clock::system(), AtomicU64::new(0));
        let leases = Leases::new(clock.clone());
        let last = AtomicU64::new(0);
        let grant = |seconds| {
            last.store(seconds, Ordering::Relaxed);
            std::future::ready(Ok(granted.fetch_add(1, Ordering::Relaxed) + 1))
        };
        let hour = Duration::from_secs(3600);
        for _ in 0..limits::LEASE_KEYS_MAX {
            assert_eq!(leases.lease(hour, grant).await, Ok(1));
        }
        assert_eq!(
            last.load(Ordering::Relaxed),
            3660,
            "it lasts as long for the last key that it is given to"
        );
        assert_eq!(leases.lease(hour, grant).await, Ok(2), "full");
        clock.sleep(Duration::from_secs(59)).await;
        assert_eq!(leases.lease(hour, grant).await, Ok(2));
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(leases.lease(hour, grant).await, Ok(3), "old");
        assert_eq!(leases.lease(Duration::from_millis(14_500), grant).await, Ok(4), "another lifetime");
        assert_eq!(last.load(Ordering::Relaxed), 15);
        assert_eq!(leases.lease(hour, grant).await, Ok(3));
        leases.forget(3);
        assert_eq!(leases.lease(hour, grant).await, Ok(5), "gone");
    }
}
