//! How often values became readable that were not before: by another configuration, or a plugin that answers
//! what it refused.
//!
//! In: that it was so. Out: whoever waits for it goes on. Never: says which values.

use std::sync::Arc;

use tokio::sync::watch;

/// See the module's doc. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Rekeyed(Arc<watch::Sender<u64>>);

impl Default for Rekeyed {
    fn default() -> Rekeyed {
        Rekeyed(Arc::new(watch::Sender::new(0)))
    }
}

impl Rekeyed {
    pub(crate) fn note(&self) {
        self.0.send_modify(|times| *times += 1);
    }

    /// Waits until it is another number than `seen`. Cancel-safe.
    pub(crate) async fn after(&self, seen: u64) -> u64 {
        // The sender is here: it does not go meanwhile.
        let now = self.0.subscribe().wait_for(|times| *times != seen).await.map(|times| *times);
        now.unwrap_or(seen)
    }
}
