//! What a cache is told to do, as one state: whoever wants something changes the state, and the ingest task
//! looks at it.
//!
//! In: the revisions that readers wait for, to which the feed is hastened; how much the window may hold; that
//! the store may have gone back, that the cache differs from it, that memory is short, that values cannot be
//! decrypted, and those of them that can be by now. A reader takes its
//! revision out when the cache has reached it, or when it gives up: so a revision that never comes does no
//! harm. Out: each [`Order`] once, for the task that carries it out. Never: carries one out; keeps a caller
//! waiting.

use std::collections::BTreeMap;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::Versioned;
use tokio::sync::watch;

/// The state, which is shared by the cache's readers and its tasks.
pub(crate) struct Commands(watch::Sender<Command>);

/// What is to be done, and was not done yet.
struct Command {
    // revision -> how many readers wait for it: no more than there are requests.
    wanted: BTreeMap<Revision, usize>,
    // How often a reader began to wait or gave up.
    turns: u64,
    // Bytes that the window may hold at present, as long as memory is short.
    window_cap: usize,
    // Somebody has seen the store at an older revision than the cache.
    is_suspect: bool,
    // The self-check has found a difference.
    has_diverged: bool,
    // The protobuf messages of all objects are to be dropped.
    is_pressed: bool,
    // The state has values that cannot be decrypted, and nobody looks for them.
    is_to_look: bool,
    // Values that could not be decrypted before: at most LOOK_BYTES and one more.
    found: Vec<(Key, Versioned)>,
}

/// What the ingest task is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The revisions that readers wait for have changed: see [`Commands::wanted`].
    Hasten,
    /// The window may hold more or less than before: see [`Commands::window_cap`].
    Cap,
    /// To ask the store whether it is where the cache is.
    CheckStore,
    /// To show what can be decrypted by now: see [`Commands::take_found`].
    TakeFound,
    FillAnew,
}

/// What the task that is given orders has seen of the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    turns: u64,
    window_cap: usize,
}

/// Somebody waits for it, until this is dropped.
pub(crate) struct Waiting<'a> {
    commands: &'a Commands,
    revision: Revision,
    is_met: bool,
}

impl Default for Commands {
    fn default() -> Commands {
        Commands(watch::Sender::new(Command {
            wanted: BTreeMap::new(),
            turns: 0,
            window_cap: usize::MAX,
            is_suspect: false,
            has_diverged: false,
            is_pressed: false,
            is_to_look: false,
            found: Vec::new(),
        }))
    }
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { turns: 0, window_cap: usize::MAX }
    }
}

impl Commands {
    /// Notes that a reader waits for `revision`, until the result is dropped.
    pub(crate) fn wait(&self, revision: Revision) -> Waiting<'_> {
        self.0.send_modify(|now| {
            *now.wanted.entry(revision).or_default() += 1;
            now.turns += 1;
        });
        Waiting { commands: self, revision, is_met: false }
    }

    /// The highest revision that anybody waits for now; the first when nobody does.
    pub(crate) fn wanted(&self) -> Revision {
        self.0.borrow().wanted.last_key_value().map_or(Revision::FIRST, |(revision, _)| *revision)
    }

    /// Sets how many bytes the window may hold from now on.
    pub(crate) fn cap_window(&self, cap: usize) {
        self.0.send_if_modified(|now| std::mem::replace(&mut now.window_cap, cap) != cap);
    }

    pub(crate) fn window_cap(&self) -> usize {
        self.0.borrow().window_cap
    }

    /// Notes that the store may have gone back.
    pub(crate) fn suspect(&self) {
        self.0.send_if_modified(|now| !std::mem::replace(&mut now.is_suspect, true));
    }

    /// Notes that the cache differs from its store.
    pub(crate) fn diverged(&self) {
        self.0.send_if_modified(|now| !std::mem::replace(&mut now.has_diverged, true));
    }

    /// Notes that memory is short, and the protobuf messages of all objects are to be dropped.
    pub(crate) fn press(&self) {
        self.0.send_if_modified(|now| !std::mem::replace(&mut now.is_pressed, true));
    }

    /// Waits until [`Commands::press`] was called since this last returned. Cancel-safe.
    pub(crate) async fn pressed(&self) {
        self.when(|now| now.is_pressed).await;
        self.done(|now| now.is_pressed = false);
    }

    /// Notes that the published state has values that cannot be decrypted.
    pub(crate) fn look(&self) {
        self.0.send_if_modified(|now| !std::mem::replace(&mut now.is_to_look, true));
    }

    /// Waits until [`Commands::look`] was called since this last returned. Cancel-safe.
    pub(crate) async fn to_look(&self) {
        self.when(|now| now.is_to_look).await;
        self.done(|now| now.is_to_look = false);
    }

    /// Hands over values that can be decrypted now, once those before were taken. Cancel-safe: if it is
    /// dropped they are not handed over.
    pub(crate) async fn found(&self, found: Vec<(Key, Versioned)>) {
        self.when(|now| now.found.is_empty()).await;
        self.0.send_modify(|now| now.found = found);
    }

    /// What was found, for the ingest task.
    pub(crate) fn take_found(&self) -> Vec<(Key, Versioned)> {
        let mut found = Vec::new();
        // Whoever has found more waits for this.
        self.0.send_modify(|now| found = std::mem::take(&mut now.found));
        found
    }

    /// The next order for the ingest task; each is given once. Cancel-safe.
    ///
    /// - `seen`: what the task had seen of the state when it was last given an order.
    pub(crate) async fn next(&self, seen: &mut Seen) -> Order {
        let (turns, window_cap) = (seen.turns, seen.window_cap);
        let is_new = |now: &Command| now.turns != turns || now.window_cap != window_cap;
        self.when(|now| is_new(now) || now.is_suspect || now.has_diverged || !now.found.is_empty()).await;
        let mut order = Order::FillAnew;
        self.done(|now| {
            if now.turns != turns {
                (order, seen.turns) = (Order::Hasten, now.turns);
            } else if now.window_cap != window_cap {
                (order, seen.window_cap) = (Order::Cap, now.window_cap);
            } else if now.is_suspect {
                (order, now.is_suspect) = (Order::CheckStore, false);
            } else if !now.found.is_empty() {
                order = Order::TakeFound;
            } else {
                now.has_diverged = false;
            }
        });
        order
    }

    async fn when(&self, is_so: impl Fn(&Command) -> bool) {
        // The sender is here: it does not go meanwhile.
        let _so = self.0.subscribe().wait_for(|now| is_so(now)).await.map(drop);
    }

    /// Changes the state without waking anybody.
    fn done(&self, take: impl FnOnce(&mut Command)) {
        self.0.send_if_modified(|now| {
            take(now);
            false
        });
    }
}

impl Waiting<'_> {
    /// Notes that the revision was reached. So the ingest task does not have to learn that nobody waits for
    /// it any more.
    pub(crate) fn met(&mut self) {
        self.is_met = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.commands.0.send_if_modified(|now| {
            if let Some(others) = now.wanted.get_mut(&self.revision) {
                *others -= 1;
                if *others == 0 {
                    now.wanted.remove(&self.revision);
                }
            }
            now.turns += u64::from(!self.is_met);
            !self.is_met
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use forebay_backend::{Backend, BoxFuture, Change, Feed, FeedError, FeedStep, Follow, Layer};
    use forebay_embedded::Engine;
    use forebay_rt::{Clock, Duration, Tasks};

    use super::*;
    use crate::ReadError;
    use crate::limits::FRESH_WAIT;
    use crate::tests::World;

    #[test]
    fn the_highest_of_those_who_still_wait_counts() {
        let wanted = Commands::default();
        let revision = Revision::from_log;
        assert_eq!(wanted.wanted(), Revision::FIRST);
        let [five, far, also_five] = [5, 1 << 40, 5].map(|number| wanted.wait(revision(number)));
        assert_eq!(wanted.wanted(), revision(1 << 40));
        drop(far);
        drop(five);
        assert_eq!(wanted.wanted(), revision(5), "one more waits for it");
        drop(also_five);
        assert_eq!(wanted.wanted(), Revision::FIRST);
    }

    #[tokio::test]
    async fn what_is_told_is_done_once_and_in_order_of_how_soon() {
        let (commands, mut seen) = (Commands::default(), Seen::default());
        commands.diverged();
        commands.suspect();
        commands.cap_window(5);
        commands.cap_window(5);
        commands.suspect();
        drop(commands.wait(Revision::FIRST));
        let mut told = Vec::new();
        loop {
            tokio::select! {
                biased;
                order = commands.next(&mut seen) => told.push(order),
                () = std::future::ready(()) => break,
            }
        }
        assert_eq!(told, [Order::Hasten, Order::Cap, Order::CheckStore, Order::FillAnew]);
        commands.wait(Revision::FIRST).met();
        commands.press();
        commands.pressed().await;
        tokio::select! {
            biased;
            () = commands.pressed() => panic!("once"),
            order = commands.next(&mut seen) => assert_eq!(order, Order::Hasten),
        }
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
