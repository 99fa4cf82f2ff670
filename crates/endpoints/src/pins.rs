//! The answers that are being read, and what becomes of those that nobody reads on.
//!
//! A LIST pins a snapshot for as long as its client reads. One that takes nothing for [`STALL_WAIT`] loses it: the
//! source is dropped here, and the stream is reset when the client comes back, never ended as if it were whole.
//!
//! Owner: each source belongs to its body; the reaper takes it away under the same lock.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_rt::{Clock, Instant};

use crate::limits::{CHUNK_BYTES, STALL_PERIOD, STALL_WAIT};
use crate::source::Source;

/// All answers that are being read. Cheap to clone.
#[derive(Clone)]
pub struct Pins {
    clock: Clock,
    // One entry an answer; those of finished ones go when the reaper passes.
    all: Arc<Mutex<Vec<Weak<Mutex<State>>>>>,
}

/// One answer that is being read.
pub struct Pinned {
    state: Arc<Mutex<State>>,
    clock: Clock,
}

struct State {
    // `None` once it is complete or taken away.
    source: Option<Box<dyn Source>>,
    touched: Instant,
}

/// The reader took too long.
#[derive(Debug, thiserror::Error)]
#[error("the reader took nothing for too long")]
pub struct Stalled;

impl Pins {
    pub fn new(clock: Clock) -> Pins {
        Pins { clock, all: Arc::default() }
    }

    /// Watches over the reading of `source`.
    pub fn pin(&self, source: Box<dyn Source>) -> Pinned {
        let state = Arc::new(Mutex::new(State { source: Some(source), touched: self.clock.now() }));
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&state));
        Pinned { state, clock: self.clock.clone() }
    }

    /// Takes their sources from readers that have stalled, for ever.
    pub async fn reap(self) {
        loop {
            self.clock.sleep(STALL_PERIOD).await;
            self.reap_once();
        }
    }

    fn reap_once(&self) {
        let now = self.clock.now();
        let mut stalled = Vec::new();
        self.all.lock().unwrap_or_else(PoisonError::into_inner).retain(|entry| {
            let Some(state) = entry.upgrade() else { return false };
            // One that is locked is being read just now.
            if let Ok(mut state) = state.try_lock()
                && now.duration_since(state.touched) >= STALL_WAIT
            {
                stalled.extend(state.source.take());
                return false;
            }
            true
        });
        if !stalled.is_empty() {
            tracing::info!(answers = stalled.len(), "let go of answers that nobody reads on");
        }
    }
}

impl Pinned {
    /// The next piece; `None` when it is complete.
    ///
    /// # Errors
    /// [`Stalled`], once.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Stalled> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut source) = state.source.take() else { return Err(Stalled) };
        let mut out = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
        let mut more = true;
        while more && out.is_empty() {
            more = source.fill(&mut out);
        }
        state.touched = self.clock.now();
        state.source = Some(source);
        Ok(if out.is_empty() { None } else { Some(out) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::source::testing::Pieces;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stalls_loses_its_source_and_is_told() {
        let clock = Clock::system();
        let pins = Pins::new(clock.clone());
        let source = || Box::new(Pieces::of(&[b"a", b"", b"b"]));
        let (mut slow, mut fast) = (pins.pin(source()), pins.pin(source()));
        assert_eq!(slow.next().ok().flatten().as_deref(), Some(b"a".as_slice()));
        clock.sleep(STALL_WAIT - Duration::from_secs(1)).await;
        pins.reap_once();
        assert_eq!(fast.next().ok().flatten().as_deref(), Some(b"a".as_slice()));
        clock.sleep(Duration::from_secs(1)).await;
        pins.reap_once();
        assert!(slow.next().is_err());
        assert_eq!(fast.next().ok().flatten().as_deref(), Some(b"b".as_slice()));
        assert_eq!(fast.next().ok().flatten(), None);
        drop((slow, fast));
        pins.reap_once();
        assert!(pins.all.lock().expect("not poisoned").is_empty());
    }
}
