//! How far this server has come with what is called `kubernetes`.
//!
//! In: who writes it, who finds that something of it is gone. Out: whose turn it is, what is settled. Never:
//! what is stored.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// See the module's doc.
pub(crate) struct KubernetesService {
    /// Something of it is gone.
    pub(crate) look: Notify,
    // This server ends: nobody is led here any more.
    withdrawn: AtomicBool,
    /// Whose turn it is to write where servers are: who says that this one goes comes after who says that it
    /// is there.
    pub(crate) turn: Semaphore,
    /// The ports of its endpoints are this server's; from then on another one's are left alone.
    pub(crate) ports_settled: AtomicBool,
    /// The same of the port of the Service itself.
    pub(crate) target_settled: AtomicBool,
}

impl Default for KubernetesService {
    fn default() -> KubernetesService {
        KubernetesService {
            look: Notify::new(),
            withdrawn: AtomicBool::new(false),
            turn: Semaphore::new(1),
            ports_settled: AtomicBool::new(false),
            target_settled: AtomicBool::new(false),
        }
    }
}

impl KubernetesService {
    pub(crate) fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// The turn to say that this server is there; none once it goes.
    pub(crate) async fn turn_to_stay(&self) -> Option<SemaphorePermit<'_>> {
        let turn = self.turn.acquire().await.ok()?;
        (!self.withdrawn.load(Ordering::Acquire)).then_some(turn)
    }
}
