//! That something else is told of other servers than was.
//!
//! In: that it is. Out: a number that goes up, and who waits for that is woken. Never: what has changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use forebay_rt::{Bell, Ear};

/// See the module's doc.
pub struct Changes {
    // How often; 0 until something is told for the first time.
    count: AtomicU64,
    bell: Bell,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes { count: AtomicU64::new(0), bell: Bell::new(1) }
    }
}

impl Changes {
    /// Something has changed, and can be read.
    pub fn tell(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.bell.ring();
    }

    /// How often until now; asked for before what has changed is read.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Hears what is told from now on.
    pub fn ear(&self) -> Ear {
        self.bell.ear()
    }

    /// Waits until it is another number than `count`. Cancel-safe.
    pub async fn later_than(&self, count: u64) {
        let mut ear = self.ear();
        while self.count() == count {
            std::future::poll_fn(|cx| match ear.poll_rung(cx) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            })
            .await;
        }
    }
}
