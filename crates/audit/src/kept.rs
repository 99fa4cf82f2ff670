//! Whether an event is kept where it was to be, for a request that waits for that.
//!
//! In: promises of back ends. Out: yes, or that one failed that must not. Never: waits by itself for a time.

use tokio::sync::oneshot;

/// A back end that must not lose events has lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unkept;

/// What a request waits for before it goes on. Who does not wait drops it, and nothing else changes.
#[derive(Debug, Default)]
pub struct Waits(Vec<(oneshot::Receiver<bool>, Strictness)>);

/// What becomes of a request whose event is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// It goes on.
    Lenient,
    /// It is refused, where it has not begun.
    Strict,
}

impl Waits {
    pub(crate) fn add(&mut self, kept: oneshot::Receiver<bool>, strictness: Strictness) {
        self.0.push((kept, strictness));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits for all of them. Cancel-safe.
    ///
    /// # Errors
    /// [`Unkept`].
    pub async fn kept(self) -> Result<(), Unkept> {
        let mut all = Ok(());
        for (kept, strictness) in self.0 {
            // Who is gone has kept nothing.
            if !kept.await.unwrap_or(false) && strictness == Strictness::Strict {
                all = Err(Unkept);
            }
        }
        all
    }
}
