//! Up to where the readers of a cache wait for it to come: what its feed is hastened to.
//!
//! Readers put in what they wait for, and take it out when they have it or give up: what never comes, because it never was, is of
//! no concern after that. The ingest task is woken to look at it. Never: waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::Revision;
use tokio::sync::Notify;

/// See the module's doc.
pub(crate) struct Wanted {
    // Wakes the ingest task.
    kick: Arc<Notify>,
    // revision -> how many wait for it: no more than there are requests.
    waits: Mutex<BTreeMap<Revision, usize>>,
}

/// Somebody waits for it, until this is dropped.
pub(crate) struct Waiting<'a> {
    wanted: &'a Wanted,
    revision: Revision,
    is_met: bool,
}

impl Wanted {
    pub(crate) fn new(kick: Arc<Notify>) -> Wanted {
        Wanted { kick, waits: Mutex::default() }
    }

    /// Somebody waits for `revision` from now on.
    pub(crate) fn wait(&self, revision: Revision) -> Waiting<'_> {
        *self.waits().entry(revision).or_default() += 1;
        self.kick.notify_one();
        Waiting { wanted: self, revision, is_met: false }
    }

    /// The highest revision that anybody waits for now; the first when nobody does.
    pub(crate) fn upto(&self) -> Revision {
        self.waits().last_key_value().map_or(Revision::FIRST, |(revision, _)| *revision)
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<Revision, usize>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting<'_> {
    /// It was reached: nobody has to be told that it is not wanted any more.
    pub(crate) fn met(&mut self) {
        self.is_met = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waits = self.wanted.waits();
        if let Some(others) = waits.get_mut(&self.revision) {
            *others -= 1;
            if *others == 0 {
                waits.remove(&self.revision);
            }
        }
        drop(waits);
        if !self.is_met {
            self.wanted.kick.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_backend::{Backend, BoxFuture, Change, Feed, FeedError, FeedStep, Follow, Layer};
    use forebay_embedded::Engine;
    use forebay_rt::{Clock, Duration, Tasks};

    use super::*;
    use crate::ReadError;
    use crate::limits::FRESH_WAIT;
    use crate::tests::World;

    #[test]
    fn the_highest_of_those_who_still_wait_counts() {
        let wanted = Wanted::new(Arc::default());
        let revision = Revision::from_log;
        assert_eq!(wanted.upto(), Revision::FIRST);
        let [five, far, also_five] = [5, 1 << 40, 5].map(|number| wanted.wait(revision(number)));
        assert_eq!(wanted.upto(), revision(1 << 40));
        drop(far);
        drop(five);
        assert_eq!(wanted.upto(), revision(5), "one more waits for it");
        drop(also_five);
        assert_eq!(wanted.upto(), Revision::FIRST);
    }

    /// The engine, but its feed is silent, and notes what it is hastened to.
    struct Silent {
        engine: Arc<Engine>,
        hastened: Arc<Mutex<Vec<Revision>>>,
    }

    struct Noting(Arc<Mutex<Vec<Revision>>>);

    impl Follow for Noting {
        fn take(&mut self, _: &mut Vec<Change>) -> Result<FeedStep, FeedError> {
            Ok(FeedStep::Idle)
        }

        fn ready(&mut self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }

        fn hasten(&self, upto: Revision) {
            self.0.lock().expect("not poisoned").push(upto);
        }
    }

    impl Layer for Silent {
        fn below(&self) -> Arc<dyn Backend> {
            self.engine.clone()
        }

        fn feed<'a>(&'a self, _: &'a str, _: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
            let feed = Feed::following(Box::new(Noting(self.hastened.clone())));
            Box::pin(std::future::ready(Ok(feed)))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_feed_is_not_hastened_any_more_to_what_nobody_waits_for() {
        let (clock, tasks) = (Clock::system(), Tasks::new());
        let (manual, _hand) = Clock::manual(1_000_000);
        let silent = Silent { engine: World::engine(&manual), hastened: Arc::default() };
        let hastened = silent.hastened.clone();
        let cacher = World::start(Arc::new(silent), &clock, &tasks);
        cacher.wait_ready().await;
        let far = Revision::from_log(1 << 40);
        for patience in [FRESH_WAIT * 2, FRESH_WAIT / 2] {
            tokio::select! {
                biased;
                read = cacher.at_least(far, clock.now() + FRESH_WAIT) => {
                    assert!(matches!(read, Err(ReadError::TooLarge { .. })));
                }
                // Whose client goes away gives up, too.
                () = clock.sleep(patience) => {}
            }
            clock.sleep(Duration::from_millis(5)).await;
            let told = std::mem::take(&mut *hastened.lock().expect("not poisoned"));
            assert_eq!(told, [far, Revision::FIRST], "after {patience:?}");
        }
    }
}
