//! The self-check: what a cache shows is held against its store, key by key, at one revision.
//!
//! Caches are checked only where the store is reached over a network, because others write to it as well. One
//! cache of this process is checked at a time.
//!
//! A key whose value the cache could not read is read again, so many in a round: what can be read by now and
//! is not shown differs as well. Those that could not be decrypted are `look.rs`'s, as far as they are known.
//!
//! In: the published snapshot, and the store's keys at its revision, without values, a page at a time. Out:
//! each key that differs, in the log and the counters; and an order to the ingest task, which fills the cache
//! anew. Never: changes a cache.
//!
//! Source: kube-apiserver's consistency checker (reference §3.1).

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, Range, ReadError};
use forebay_object::{Interner, Object};
use forebay_rt::{Clock, Duration};
use tokio::sync::{Semaphore, watch};

use crate::commands::Commands;
use crate::compare::{Differs, differences};
use crate::counters::Counters;
use crate::interest::Reach;
use crate::limits;
use crate::published::Published;
use crate::resource::Resource;
use crate::snapshot::Snapshot;

/// Held by the cache of this process that is being checked: etcd reads keys for one at a time.
static TURN: Semaphore = Semaphore::const_new(1);

pub(crate) struct Checker {
    pub(crate) resource: Resource,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Clock,
    pub(crate) published: watch::Receiver<Published>,
    pub(crate) counters: Arc<Counters>,
    // Is told to fill the cache anew when it differs from the store.
    pub(crate) commands: Arc<Commands>,
}

/// Whose turn it is to be read again, of the keys whose values a cache may not be able to read.
#[derive(Default)]
struct HiddenTurn {
    // The last one that was read; the next round goes on behind it, or from the first key on.
    last: Option<Key>,
    // How many may be read in this round.
    left: usize,
}

impl HiddenTurn {
    fn begin(&mut self) {
        if self.left > 0 {
            self.last = None;
        }
        self.left = limits::CHECK_HIDDEN_MAX;
    }

    /// - `key`: later than those before in this round.
    fn takes(&mut self, key: &Key) -> bool {
        let is_next = self.left > 0 && self.last.as_ref().is_none_or(|last| key > last);
        if is_next {
            self.left -= 1;
            self.last = Some(key.clone());
        }
        is_next
    }
}

/// A key at which cache and store differ, and the revisions that each has there.
#[derive(Debug, PartialEq, Eq)]
struct Mismatch {
    key: Key,
    cached: Option<Revision>,
    stored: Option<Revision>,
}

impl Checker {
    /// Checks every `period`, or up to half of that later, so that the caches take turns.
    pub(crate) async fn run(self, period: Duration) {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&self.resource.name);
        let period = period + period / 2 * (hash % 1000) as u32 / 1000;
        let mut hidden = HiddenTurn::default();
        loop {
            self.clock.sleep(period).await;
            let Ok(_turn) = TURN.acquire().await else { return };
            let shown = match &*self.published.borrow() {
                Published::Ready { snapshot, .. } => snapshot.clone(),
                Published::Filling { .. } => continue,
                Published::Closed => return,
            };
            match self.check(&shown, &mut hidden).await {
                Ok(mismatches) => self.report(&shown, &mismatches),
                // It is too long ago by now, or the store does not answer: the next time, then.
                Err(why) => {
                    tracing::debug!(resource = self.resource.name, %why, "the cache could not be checked");
                }
            }
        }
    }

    fn report(&self, shown: &Snapshot, mismatches: &[Mismatch]) {
        if mismatches.is_empty() {
            return Counters::add(&self.counters.checks, 1);
        }
        Counters::add(&self.counters.checks_failed, 1);
        Counters::add(&self.counters.mismatches, mismatches.len());
        for Mismatch { key, cached, stored } in mismatches.iter().take(limits::MISMATCHES_LOGGED_MAX) {
            let shown_as = |revision: &Option<Revision>| revision.map_or("none".into(), |r| r.to_string());
            tracing::error!(
                resource = self.resource.name, %key, at = %shown.revision(),
                cached = shown_as(cached), stored = shown_as(stored),
                "the watch cache differs from the store: it is filled anew, clients list again"
            );
        }
        self.commands.diverged();
    }

    /// The keys that only one of them has, or that each has at another revision.
    async fn check(&self, shown: &Snapshot, hidden: &mut HiddenTurn) -> Result<Vec<Mismatch>, ReadError> {
        hidden.begin();
        let reach = Reach::Below(self.resource.prefix.clone());
        let (mut after, mut mismatches) = (None::<Key>, Vec::new());
        loop {
            let range = Range {
                prefix: self.resource.prefix.clone(),
                start_after: after.clone(),
                limit: limits::CHECK_PAGE,
                at: Some(shown.revision()),
            };
            let page = self.backend.keys(range).await?;
            let last = page.items.last().map(|(key, _)| key.clone());
            let more = page.more;
            for differs in differences(shown, &reach, after.as_ref(), page) {
                let (key, cached, stored) = match differs {
                    Differs::Gone(held) => (held.key().clone(), Some(held.revision()), None),
                    Differs::Found { held, key, found } => {
                        let held = held.map(|held| held.revision());
                        // What is held in the place of what is not decrypted is an earlier one.
                        let may_differ = match held {
                            Some(_) => shown.may_be_undecrypted(&key),
                            None => shown.may_hide(&key),
                        };
                        // Once enough is known to differ, the others are counted as they are.
                        let is_enough = mismatches.len() >= limits::MISMATCHES_LOGGED_MAX;
                        let is_to_ask = if may_differ {
                            if shown.unread().undecrypted_at(&key).is_some() || !hidden.takes(&key) {
                                continue;
                            }
                            true
                        } else {
                            held.is_none() && !is_enough
                        };
                        if is_to_ask && !self.is_missing(&key, found.revision).await? {
                            continue;
                        }
                        (key, held, Some(found.revision))
                    }
                };
                mismatches.push(Mismatch { key, cached, stored });
            }
            if !more {
                return Ok(mismatches);
            }
            after = last;
        }
    }

    /// Whether the cache ought to show the value that was put at `key` at `stored`. It never shows a value
    /// that cannot be decoded. Where the value was changed or deleted since, nobody can tell; a difference
    /// that stays is found by the next check.
    async fn is_missing(&self, key: &Key, stored: Revision) -> Result<bool, ReadError> {
        let found = self.backend.get(key).await?.filter(|found| found.revision == stored);
        let Some(found) = found else { return Ok(false) };
        let layout = &self.resource.layout;
        let decoded = Object::decode(layout, key.clone(), stored, &found.value, &mut Interner::default());
        Ok(decoded.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::Ordering;

    use forebay_backend::{BoxFuture, Layer, RangePage, Versioned};
    use forebay_embedded::Engine;
    use forebay_rt::Tasks;

    use super::*;
    use crate::tests::{PREFIX, World, everything};
    use crate::{Cacher, WatchStep};

    type Lie = fn(&mut RangePage);

    /// The engine, whose keys are told otherwise.
    struct Lying {
        engine: Arc<Engine>,
        lie: Mutex<Option<Lie>>,
    }

    impl Layer for Lying {
        fn below(&self) -> Arc<dyn Backend> {
            self.engine.clone()
        }

        fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
            Box::pin(async move {
                let mut page = Backend::range(&*self.engine, range).await?;
                if let Some(lie) = *self.lie.lock().expect("not poisoned") {
                    lie(&mut page);
                }
                Ok(page)
            })
        }

        fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
            Box::pin(async move {
                match key.as_str().strip_suffix("-other") {
                    Some(told_of) => Backend::get(&*self.engine, &Key::new(told_of)).await,
                    // It is gone by the time that anybody looks.
                    None if key.as_str().ends_with("/y") => Ok(None),
                    None => Backend::get(&*self.engine, key).await,
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_that_differs_from_its_store_is_noticed_by_key_and_filled_anew() {
        let (clock, tasks) = (Clock::system(), Tasks::new());
        let (manual, _hand) = Clock::manual(1_000_000);
        let engine = World::engine(&manual);
        let store = Arc::new(Lying { engine: engine.clone(), lie: Mutex::default() });
        let period = Duration::from_secs(300);
        let cacher: Cacher = World::start_checked(store.clone(), &clock, &tasks, period);
        cacher.wait_ready().await;
        let world = World { engine, cacher, tasks, clock: clock.clone() };
        for number in 0..2_500 {
            world.put(&format!("a/x{number:04}"), "").await;
        }
        let unreadable = forebay_backend::Op::Put { value: "no JSON".into(), ttl: None };
        world.commit("a/y", unreadable).await;
        let mut watcher = world.cacher.watch(everything(), Revision::FIRST).expect("held");
        world.drain(&mut watcher).await;
        let counters = world.cacher.counters();
        let counted = || {
            let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            (read(&counters.mismatches), read(&counters.initializations))
        };
        clock.sleep(period * 2).await;
        assert_eq!(counted(), (0, 1), "what cannot be read is no difference");
        assert!(counters.checks.load(Ordering::Relaxed) > 0, "after 300 to 450 s");
        let told_of: Lie = |page| {
            if let Some((_, last)) = page.items.last().filter(|_| !page.more).cloned() {
                page.items.push((Key::from(format!("{PREFIX}a/z")), last));
            }
        };
        *store.lie.lock().expect("not poisoned") = Some(told_of);
        clock.sleep(period * 2).await;
        assert_eq!(counted(), (0, 1), "nor is what is gone by the time that it is looked at");
        *store.lie.lock().expect("not poisoned") = None;
        let lies: [(Lie, u64); 3] = [
            // One is gone, one is there that nobody knows of, one is another.
            (|page| page.items.retain(|(key, _)| !key.as_str().ends_with("/x1700")), 1),
            (
                |page| {
                    page.items.iter_mut().for_each(|(key, _)| {
                        if key.as_str().ends_with("/x0003") {
                            *key = Key::from(format!("{PREFIX}a/x0003-other"));
                        }
                    })
                },
                2,
            ),
            (
                |page| {
                    page.items.iter_mut().for_each(|(key, found)| {
                        if key.as_str().ends_with("/x2499") {
                            found.revision = found.revision.next();
                        }
                    })
                },
                1,
            ),
        ];
        let mut before = counted();
        for (lie, mismatches) in lies {
            let mut watcher = world.cacher.watch(everything(), Revision::from_log(2_502)).expect("held");
            *store.lie.lock().expect("not poisoned") = Some(lie);
            watcher.ready().await;
            assert!(
                matches!(watcher.try_next(), Some(WatchStep::Expired { .. })),
                "who has seen it lists again"
            );
            *store.lie.lock().expect("not poisoned") = None;
            world.cacher.wait_ready().await;
            assert_eq!(counted(), (before.0 + mismatches, before.1 + 1));
            before = counted();
            clock.sleep(period * 2).await;
            assert_eq!(counted(), before, "all is well again");
        }
    }
}
