//! Which admission policies and webhooks are in force.
//!
//! In: what one task publishes. Out: the same to every write; who waits for it is told when it has been taken
//! in. Never: one that is stored and not taken in yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use forebay_policy::Hook;
use forebay_rt::{Clock, Instant};
use forebay_webhooks::Webhook;
use tokio::sync::watch;

/// See the module's doc.
pub(crate) struct InForce {
    pub(crate) validating: ArcSwap<Vec<Hook>>,
    pub(crate) mutating: ArcSwap<Vec<Hook>>,
    pub(crate) validating_webhooks: ArcSwap<Vec<Arc<Webhook>>>,
    pub(crate) mutating_webhooks: ArcSwap<Vec<Arc<Webhook>>>,
    // Whether webhooks are called: not for what a start writes, as they may wait for this server to serve.
    calls: AtomicBool,
    // How often somebody asked that all be taken in, and as of which asking it was.
    pub(crate) asked: watch::Sender<u64>,
    pub(crate) taken_in: watch::Sender<u64>,
}

impl Default for InForce {
    fn default() -> InForce {
        InForce {
            validating: ArcSwap::default(),
            mutating: ArcSwap::default(),
            validating_webhooks: ArcSwap::default(),
            mutating_webhooks: ArcSwap::default(),
            calls: AtomicBool::new(false),
            asked: watch::Sender::new(0),
            taken_in: watch::Sender::new(0),
        }
    }
}

impl InForce {
    pub(crate) fn validating(&self) -> Arc<Vec<Hook>> {
        self.validating.load_full()
    }

    pub(crate) fn mutating(&self) -> Arc<Vec<Hook>> {
        self.mutating.load_full()
    }

    /// Whether anybody may change what a client writes.
    pub(crate) fn may_mutate(&self) -> bool {
        !self.mutating.load().is_empty() || !self.mutating_webhooks.load().is_empty()
    }

    pub(crate) fn validating_webhooks(&self) -> Arc<Vec<Arc<Webhook>>> {
        self.validating_webhooks.load_full()
    }

    pub(crate) fn mutating_webhooks(&self) -> Arc<Vec<Arc<Webhook>>> {
        self.mutating_webhooks.load_full()
    }

    /// From now on webhooks are called.
    pub(crate) fn begin_calling(&self) {
        self.calls.store(true, Ordering::Release);
    }

    pub(crate) fn is_calling(&self) -> bool {
        self.calls.load(Ordering::Acquire)
    }

    /// Waits until everything that the caches tell of is in force, at most until `deadline`.
    pub(crate) async fn reach(&self, clock: &Clock, deadline: Instant) {
        let mut mine = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            mine = *asked;
        });
        let mut taken_in = self.taken_in.subscribe();
        tokio::select! {
            _ = taken_in.wait_for(|reached| *reached >= mine) => {}
            () = clock.sleep_until(deadline) => {}
        }
    }
}
