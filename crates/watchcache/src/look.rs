//! Looks again for values that could not be decrypted: soon, then ever more seldom, and at once when there
//! are other keys.
//!
//! That there are keys is told by whoever decrypts; a key that a plugin gives out again is told by nobody, so
//! time passes as well. A cache that has no such value is not looked after.
//!
//! In: the published state, and the store. Out: values that can be decrypted by now, to the ingest task; and
//! an order to fill the cache anew, where not all of their keys are known. Never: changes a cache; more
//! questions in a round than there are known keys, or while the store fails.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_backend::{Backend, why_undecrypted};
use forebay_rt::Clock;
use tokio::sync::watch;

use crate::commands::Commands;
use crate::limits;
use crate::published::Published;
use crate::unreadable::Unreadable;

pub(crate) struct Looker {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Clock,
    pub(crate) published: watch::Receiver<Published>,
    pub(crate) commands: Arc<Commands>,
}

impl Looker {
    pub(crate) async fn run(self) {
        let (mut rekeyed, mut last) = (0, None);
        loop {
            self.commands.to_look().await;
            let mut pause = limits::LOOK_PAUSE.0;
            // A cache that is being filled says so itself, once it is.
            while self.undecrypted().is_some() {
                tokio::select! {
                    biased;
                    times = self.backend.rekeyed(rekeyed) => (rekeyed, pause) = (times, limits::LOOK_PAUSE.0),
                    () = self.clock.sleep(pause) => pause = (pause * 2).min(limits::LOOK_PAUSE.1),
                }
                if let Some(unread) = self.undecrypted() {
                    self.look(unread, &mut last).await;
                }
            }
        }
    }

    /// What the published state cannot read, if there is such a value.
    fn undecrypted(&self) -> Option<Unreadable> {
        match &*self.published.borrow() {
            Published::Ready { snapshot, .. } => {
                Some(snapshot.unread().clone()).filter(Unreadable::has_undecrypted)
            }
            Published::Filling { .. } | Published::Closed => None,
        }
    }

    /// One round over the keys that are known.
    ///
    /// - `last`: the key that was looked at last; the round begins behind it.
    async fn look(&self, unread: Unreadable, last: &mut Option<Key>) {
        let (mut found, mut bytes, mut any, mut failures) = (Vec::new(), 0, false, 0);
        for key in round(unread.undecrypted().map(|(key, _)| key).cloned().collect(), last.as_ref()) {
            let Some(noted) = unread.undecrypted_at(&key) else { continue };
            let value = match self.backend.get(&key).await {
                // What was put or deleted since is on its way by the feed.
                Ok(found) => found.filter(|found| found.revision == noted.revision),
                Err(error) => {
                    tracing::debug!(%key, %error, "what could not be decrypted cannot be looked at");
                    failures += 1;
                    None
                }
            };
            let value = value.filter(|value| why_undecrypted(&value.value).is_none());
            if let Some(value) = value {
                any = true;
                bytes += value.value.len();
                found.push((key.clone(), value));
            }
            *last = Some(key);
            if bytes >= limits::LOOK_BYTES {
                bytes = 0;
                self.commands.found(std::mem::take(&mut found)).await;
            }
            if failures >= limits::LOOK_FAILURES_MAX {
                break;
            }
        }
        if !found.is_empty() {
            self.commands.found(found).await;
        }
        // The others may be in the same case, and only the store knows them.
        if unread.are_more_undecrypted() && (any || unread.undecrypted().next().is_none()) {
            self.commands.diverged();
        }
    }
}

/// The keys, which ascend: those behind `last`, and then the others.
fn round(mut keys: Vec<Key>, last: Option<&Key>) -> Vec<Key> {
    let behind = keys.partition_point(|key| last.is_some_and(|last| key <= last));
    keys.rotate_left(behind);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_goes_on_behind_the_key_that_was_looked_at_last() {
        let keys = |text: &str| text.chars().map(|key| Key::from(key.to_string())).collect::<Vec<_>>();
        let b = Key::from("b");
        assert_eq!(round(keys("abcd"), Some(&b)), keys("cdab"));
        assert_eq!(round(keys("acd"), Some(&b)), keys("cda"));
        assert_eq!(round(keys("ab"), Some(&b)), keys("ab"));
        assert_eq!(round(keys("abc"), None), keys("abc"));
    }
}
