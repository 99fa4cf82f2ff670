//! Values that cannot be decrypted for a while: nobody takes a live object for deleted, and nothing is left
//! out without a word.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use expect_test::expect;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Change, Feed, FeedError, FeedStep, Follow, Layer, Op, Range, RangePage, ReadError,
    Versioned, undecrypted,
};
use forebay_embedded::Engine;
use forebay_rt::{Clock, Duration, Tasks};
use tokio::sync::watch;

use crate::follow_tests::told;
use crate::limits::{self, PACE};
use crate::tests::{PREFIX, World, check, everything, labelled};
use crate::{Cacher, Follower, History, Interest, Reach, Snapshot, Watcher};

/// The engine, some of whose values nobody can decrypt.
struct Locked {
    engine: Arc<Engine>,
    locks: Arc<Locks>,
}

#[derive(Default)]
struct Locks {
    // key -> the last revision that cannot be
    keys: Mutex<BTreeMap<Key, Revision>>,
    // Changes that a feed does not tell.
    untold: Mutex<BTreeSet<Key>>,
    // A feed tells nothing.
    is_mute: AtomicBool,
    // History before it is gone.
    oldest: AtomicU64,
    rekeyed: watch::Sender<u64>,
}

impl Locks {
    fn lock(&self, places: &[&str]) {
        places.iter().for_each(|place| self.lock_upto(place, Revision::from_log(u64::MAX)));
    }

    /// What comes behind can be decrypted.
    fn lock_upto(&self, place: &str, last: Revision) {
        self.keys.lock().expect("not poisoned").insert(key(place), last);
    }

    /// There is the key, and nobody says so.
    fn unlock(&self, is_of_it: impl Fn(&str) -> bool) {
        let stays = |key: &Key| !is_of_it(&key.as_str()[PREFIX.len()..]);
        self.keys.lock().expect("not poisoned").retain(|key, _| stays(key));
    }

    fn unlock_and_say(&self, is_of_it: impl Fn(&str) -> bool) {
        self.unlock(is_of_it);
        self.rekeyed.send_modify(|times| *times += 1);
    }

    fn check_history(&self, after: Revision) -> Result<(), FeedError> {
        match Revision::new(self.oldest.load(Ordering::Relaxed)) {
            Some(oldest) if after < oldest => Err(FeedError::Compacted { oldest }),
            _ => Ok(()),
        }
    }

    fn seen(&self, key: &Key, found: Versioned) -> Versioned {
        let last = self.keys.lock().expect("not poisoned").get(key).copied();
        match last.is_some_and(|last| found.revision <= last) {
            true => Versioned { value: undecrypted("no key"), ..found },
            false => found,
        }
    }
}

impl Layer for Locked {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Box::pin(async move {
            let found = Backend::get(&*self.engine, key).await?;
            Ok(found.map(|found| self.locks.seen(key, found)))
        })
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(async move {
            let mut page = Backend::range(&*self.engine, range).await?;
            for (key, found) in &mut page.items {
                *found = self.locks.seen(key, found.clone());
            }
            Ok(page)
        })
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        Box::pin(async move {
            self.locks.check_history(after)?;
            let below = Backend::feed(&*self.engine, prefix, after).await?;
            Ok(Feed::following(Box::new(LockedFeed { below, after, locks: self.locks.clone() })))
        })
    }
}

/// It has `rekeyed` of its own, which a layer hands on.
struct Rekeying(Locked);

macro_rules! hand_on {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $out:ty;)*) => {
        $(fn $name<'a>(&'a self, $($argument: $ty),*) -> $out { Backend::$name(&self.0, $($argument),*) })*
    };
}

impl Backend for Rekeying {
    hand_on! {
        commit(txn: forebay_backend::Txn) -> BoxFuture<'a, Result<forebay_backend::TxnResponse, forebay_backend::TxnError>>;
        get(key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>>;
        range(range: Range) -> BoxFuture<'a, Result<RangePage, ReadError>>;
        barrier() -> BoxFuture<'a, Result<Revision, ReadError>>;
        feed(prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>>;
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move {
            let oldest = Backend::oldest(&self.0).await?;
            Ok(Revision::new(self.0.locks.oldest.load(Ordering::Relaxed))
                .map_or(oldest, |gone| gone.max(oldest)))
        })
    }

    fn oldest_known(&self) -> Revision {
        Backend::oldest_known(&self.0)
    }

    fn size(&self) -> forebay_backend::Size {
        Backend::size(&self.0)
    }

    fn rekeyed(&self, seen: u64) -> BoxFuture<'_, u64> {
        let mut times = self.0.locks.rekeyed.subscribe();
        Box::pin(async move { *times.wait_for(|times| *times != seen).await.expect("the sender is there") })
    }
}

struct LockedFeed {
    below: Feed,
    after: Revision,
    locks: Arc<Locks>,
}

impl Follow for LockedFeed {
    fn take(&mut self, changes: &mut Vec<Change>) -> Result<FeedStep, FeedError> {
        self.locks.check_history(self.after)?;
        if self.locks.is_mute.load(Ordering::Relaxed) {
            return Ok(FeedStep::Idle);
        }
        let mut taken = Vec::new();
        let step = self.below.take(512, &mut taken)?;
        let Some(last) = taken.last().map(|change: &Change| change.revision) else { return Ok(step) };
        let untold = self.locks.untold.lock().expect("not poisoned").clone();
        taken.retain(|change| !untold.contains(&change.key));
        if taken.is_empty() {
            return Ok(FeedStep::Progress(last));
        }
        changes.extend(taken.into_iter().map(|Change { key, revision, value }| {
            let value = value.map(|value| self.locks.seen(&key, Versioned { revision, value }).value);
            Change { key, revision, value }
        }));
        Ok(step)
    }

    fn ready(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            while self.locks.is_mute.load(Ordering::Relaxed) {
                Clock::system().sleep(Duration::from_millis(10)).await;
            }
            self.below.ready().await;
        })
    }

    fn hasten(&self, upto: Revision) {
        self.below.hasten(upto);
    }
}

fn key(place: &str) -> Key {
    Key::from(format!("{PREFIX}{place}"))
}

fn below(namespace: &str) -> Interest {
    Interest::all(Reach::Below(key(&format!("{namespace}/"))))
}

fn one(place: &str) -> Interest {
    Interest::all(Reach::One(key(place)))
}

struct Lab {
    world: World,
    locks: Arc<Locks>,
    backend: Arc<dyn Backend>,
}

impl Lab {
    async fn new(history: History, places: &[&str]) -> Lab {
        let (manual, _hand) = Clock::manual(1_000_000);
        let engine = World::engine(&manual);
        let locks = Arc::<Locks>::default();
        let locked = Locked { engine: engine.clone(), locks: locks.clone() };
        let backend: Arc<dyn Backend> = Arc::new(Rekeying(locked));
        let (clock, tasks) = (Clock::system(), Tasks::new());
        let cacher = Lab::cacher(&backend, &clock, &tasks, history);
        let world = World { engine, cacher, tasks, clock };
        for place in places {
            world.put(place, "").await;
        }
        world.cacher.wait_ready().await;
        world.cacher.fresh(world.soon()).await.expect("fresh");
        Lab { world, locks, backend }
    }

    fn cacher(backend: &Arc<dyn Backend>, clock: &Clock, tasks: &Tasks, history: History) -> Cacher {
        let early = Arc::new(crate::early_readers::EarlyReaders::admitted());
        World::start_as(backend.clone(), (clock, tasks), PACE, history, early)
    }

    /// Another cache over the same.
    async fn again(&self) -> Cacher {
        let cacher = Lab::cacher(&self.backend, &self.world.clock, &self.world.tasks, History::Own);
        cacher.wait_ready().await;
        cacher
    }

    fn watch(&self, interest: Interest) -> Watcher {
        let now = self.world.cacher.snapshot().expect("ready").revision();
        self.world.cacher.watch(interest, now).expect("held")
    }

    async fn fresh(&self) -> Arc<Snapshot> {
        self.world.cacher.fresh(self.world.soon()).await.expect("fresh")
    }

    /// Waits until a read of `interest` is answered.
    async fn until_read(&self, cacher: &Cacher, interest: &Interest) -> Arc<Snapshot> {
        loop {
            let now = cacher.snapshot();
            match now {
                Ok(now) if now.check_decrypted(&interest.reach).is_ok() => return now,
                _ => self.world.clock.sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

fn refused(read: Result<impl Sized, crate::ReadError>) -> String {
    read.err().map_or_else(|| "answered".into(), |error| error.to_string())
}

const NO_KEY: &str = r#"unable to transform key "/registry/pods/a/x": no key"#;

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decrypted_is_not_shown_as_deleted_and_ends_those_who_watch_it() {
    let lab = Lab::new(History::Own, &["a/x", "a/y", "b/z"]).await;
    let world = &lab.world;
    let before = lab.fresh().await.revision();
    let mut follower = world.cacher.follow(everything());
    assert_eq!(told(&mut follower), ["+x", "+y", "+z", "synced"]);
    let mut concerned =
        [everything(), below("a"), one("a/x"), labelled("app=web")].map(|interest| lab.watch(interest));
    let mut others = [below("b"), one("a/y")].map(|interest| lab.watch(interest));

    lab.locks.lock(&["a/x"]);
    let put = world.put("a/x", "app=web").await;
    world.put("a/y", "k=v").await;
    for watcher in &mut concerned {
        check(expect!["UNDECRYPTED a/x: no key"], &world.drain(watcher).await);
    }
    check(expect![""], &world.drain(&mut others[0]).await);
    check(expect!["~y@6"], &world.drain(&mut others[1]).await);
    assert_eq!(told(&mut follower), ["~y"], "what was told is still there");
    let state = lab.fresh().await;
    assert_eq!(state.get(&key("a/x")).map(|object| object.revision()), Revision::new(2));
    assert!(state.may_be_undecrypted(&key("a/x")) && state.may_hide(&key("a/x")));
    let reach = |interest: Interest| interest.reach;
    assert_eq!(refused(state.check_decrypted(&reach(everything()))), NO_KEY);
    assert_eq!(refused(state.check_decrypted(&reach(below("a")))), NO_KEY);
    assert_eq!(refused(state.check_decrypted(&reach(below("b")))), "answered");
    // Nobody is let in who would miss it.
    assert_eq!(refused(world.cacher.watch(below("a"), before)), NO_KEY);
    assert_eq!(refused(world.cacher.watch_list(everything(), state.clone())), NO_KEY);
    assert_eq!(refused(world.cacher.watch(one("a/y"), before)), "answered");

    // Once there is a key it is there, without anybody writing it.
    lab.locks.unlock_and_say(|_| true);
    let state = lab.until_read(&world.cacher, &everything()).await;
    assert_eq!(state.revision(), Revision::from_log(6));
    assert_eq!(state.get(&key("a/x")).map(|object| object.revision()), Some(put));
    world.clock.sleep(limits::REBASE_PERIOD * 2).await;
    assert_eq!(told(&mut follower), ["~x"]);
    assert_eq!(follower.told_of(&key("a/x")).map(|object| object.revision()), Some(put));
    // Who comes from before lists again, and who has seen it goes on.
    let mut late = world.cacher.watch(everything(), before).expect("held");
    check(expect!["EXPIRED 4<5"], &world.drain(&mut late).await);
    let mut next = world.cacher.watch(everything(), put).expect("held");
    world.put("a/x", "").await;
    check(expect!["~y@6 ~x@7"], &world.drain(&mut next).await);
    check(expect![""], &world.drain(&mut others[0]).await);
    assert_eq!(told(&mut follower), ["~x"]);
    // The past is as it was.
    check(expect!["6: a/x@5 a/y@6 b/z@4"], &world.state(Revision::new(6)).await);
    check(expect!["4: a/x@2 a/y@3 b/z@4"], &world.state(Some(before)).await);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_decrypted_and_is_put_or_deleted_is_nobody_s_secret_change() {
    let lab = Lab::new(History::Own, &["a/x", "a/y"]).await;
    let world = &lab.world;
    let mut follower = world.cacher.follow(everything());
    assert_eq!(told(&mut follower), ["+x", "+y", "synced"]);
    let mut watcher = lab.watch(everything());
    lab.locks.lock(&["a/x", "a/y", "a/new"]);
    let first = world.put("a/new", "").await;
    check(expect!["UNDECRYPTED a/new: no key"], &world.drain(&mut watcher).await);
    let other = world.put("a/x", "").await;
    let second = world.put("a/y", "").await;
    lab.fresh().await;
    assert!(told(&mut follower).is_empty());
    assert!(lab.fresh().await.get(&key("a/new")).is_none());
    // A later value that can be decrypted, a deletion, and one of what nobody was shown.
    lab.locks.lock_upto("a/x", other);
    world.put("a/x", "k=v").await;
    world.delete("a/y").await;
    world.delete("a/new").await;
    let state = lab.fresh().await;
    assert_eq!(refused(state.check_decrypted(&everything().reach)), "answered");
    assert_eq!(told(&mut follower), ["~x", "-y"]);
    check(expect!["9: a/x@7"], &world.state(None).await);
    // Whoever another server has told of them cannot be told what became of them.
    for after in [first, second] {
        let mut watcher = world.cacher.watch(everything(), after).expect("held");
        let said = world.drain(&mut watcher).await;
        assert!(said.starts_with("EXPIRED "), "{after}: {said}");
    }
    // What nobody knows of the past is not shown as if it was known.
    let past = world.cacher.exact(second, world.soon()).await.expect("held");
    assert!(refused(past.check_decrypted(&everything().reach)).starts_with("unable to transform key"));
    let before = world.cacher.exact(Revision::from_log(first.get() - 1), world.soon()).await.expect("held");
    assert_eq!(refused(before.check_decrypted(&everything().reach)), "answered");
    assert_eq!((before.len(), before.get(&key("a/new")).is_some()), (2, false));
    assert_eq!(before.get(&key("a/x")).map(|object| object.revision()), Revision::new(2));
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_begins_without_a_key_refuses_and_looks_again_by_itself() {
    let lab = Lab::new(History::Own, &["a/x", "b/z"]).await;
    lab.locks.lock(&["a/x"]);
    let cacher = lab.again().await;
    let state = cacher.snapshot().expect("ready");
    assert_eq!(refused(state.check_decrypted(&everything().reach)), NO_KEY);
    assert_eq!(refused(cacher.watch_list(below("b"), state)), "answered");
    let mut follower = cacher.follow(everything());
    assert_eq!(told(&mut follower), ["+z", "synced"]);
    // Nobody says that there is a key.
    lab.locks.unlock(|_| true);
    let state = lab.until_read(&cacher, &everything()).await;
    assert_eq!(state.len(), 2);
    lab.world.clock.sleep(limits::REBASE_PERIOD * 2).await;
    assert_eq!(told(&mut follower), ["+x"]);
    assert!(state.get(&key("a/x")).is_some_and(|object| object.is_at_rest()), "nobody else puts it there");
}

#[tokio::test(start_paused = true)]
async fn of_more_than_are_known_nobody_is_shown_a_part_and_all_come_back() {
    let places: Vec<String> =
        (0..limits::UNREADABLE_MAX + 5).map(|number| format!("a/{number:05}")).collect();
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let lab = Lab::new(History::Own, &places).await;
    let world = &lab.world;
    world.put("b/z", "").await;
    lab.fresh().await;
    let mut follower = world.cacher.follow(everything());
    assert_eq!(follower_told_all(&mut follower).await, places.len() + 2);
    lab.locks.lock(&places);
    for place in &places {
        world.put(place, "").await;
    }
    let state = lab.fresh().await;
    assert!(refused(state.check_decrypted(&below("b").reach)).starts_with("unable to transform key"));
    assert!(state.may_be_undecrypted(&key(places[places.len() - 1])));
    // Of some there is a key: the cache is filled anew, and what cannot be decrypted yet stays as it was.
    lab.locks.unlock_and_say(|place| place < "a/00500");
    while world.cacher.counters().initializations.load(Ordering::Relaxed) < 2 {
        world.clock.sleep(Duration::from_millis(100)).await;
    }
    let state = lab.until_read(&world.cacher, &below("b")).await;
    assert_eq!(state.len(), places.len() + 1);
    assert!(refused(state.check_decrypted(&everything().reach)).starts_with("unable to transform key"));
    assert!(!state.may_be_undecrypted(&key("a/00499")) && state.may_be_undecrypted(&key("a/00500")));
    world.clock.sleep(limits::REBASE_PERIOD * 2).await;
    assert_eq!(follower_told_all(&mut follower).await, 500, "those alone are other than before");
    lab.locks.unlock_and_say(|_| true);
    let state = lab.until_read(&world.cacher, &everything()).await;
    assert_eq!(state.len(), places.len() + 1);
    world.clock.sleep(limits::REBASE_PERIOD * 2).await;
    assert_eq!(follower_told_all(&mut follower).await, places.len() - 500);
}

/// How much it was told; never of a deletion.
async fn follower_told_all(follower: &mut Follower) -> usize {
    let mut count = 0;
    loop {
        let now = told(follower);
        assert!(now.iter().all(|told| !told.starts_with('-')), "nothing was deleted");
        count += now.iter().filter(|told| *told != "relisted").count();
        if now.is_empty() {
            tokio::task::yield_now().await;
            let more = told(follower);
            count += more.iter().filter(|told| *told != "relisted").count();
            if more.is_empty() {
                return count;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_self_check_finds_what_is_missing_among_many_that_cannot_be_read() {
    let period = Duration::from_secs(300);
    let lab = Lab::new(History::Shared { check_every: period }, &["a/x"]).await;
    let world = &lab.world;
    for number in 0..limits::UNREADABLE_MAX + limits::CHECK_HIDDEN_MAX {
        world.commit(&format!("a/bad{number:05}"), Op::Put { value: "no JSON".into(), ttl: None }).await;
    }
    lab.locks.untold.lock().expect("not poisoned").insert(key("c/missed"));
    world.put("c/missed", "").await;
    world.put("c/z", "").await;
    let state = lab.fresh().await;
    assert!(state.may_hide(&key("c/missed")) && state.get(&key("c/missed")).is_none());
    let counters = world.cacher.counters();
    let begun = counters.checks.load(Ordering::Relaxed);
    while counters.mismatches.load(Ordering::Relaxed) == 0 {
        let rounds = counters.checks.load(Ordering::Relaxed) - begun;
        assert!(rounds < 10, "it is looked for in turn");
        world.clock.sleep(period).await;
    }
    lab.locks.untold.lock().expect("not poisoned").clear();
    while world.cacher.snapshot().is_ok_and(|state| state.get(&key("c/missed")).is_none()) {
        world.clock.sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_has_not_come_to_it_yet_is_told_what_came_before() {
    let lab = Lab::new(History::Own, &["a/x"]).await;
    let mut watcher = lab.watch(everything());
    lab.world.put("a/y", "").await;
    lab.locks.lock(&["a/x"]);
    lab.world.put("a/x", "").await;
    lab.world.put("a/z", "").await;
    check(expect!["+y@3 UNDECRYPTED a/x: no key"], &lab.world.drain(&mut watcher).await);
    let mut lists = lab.world.cacher.watch_list(one("a/y"), lab.fresh().await).expect("held");
    check(expect!["+y@3 END 5"], &lab.world.drain(&mut lists).await);
}

#[tokio::test(start_paused = true)]
async fn a_hole_in_the_history_deletes_nothing_that_cannot_be_decrypted() {
    let period = Duration::from_secs(1 << 20);
    let lab = Lab::new(History::Shared { check_every: period }, &["a/x", "b/z"]).await;
    let world = &lab.world;
    let mut follower = world.cacher.follow(everything());
    assert_eq!(told(&mut follower), ["+x", "+z", "synced"]);
    let [mut all, mut other, mut one] = [everything(), below("b"), one("b/z")].map(|of| lab.watch(of));
    lab.locks.is_mute.store(true, Ordering::Relaxed);
    lab.locks.lock(&["a/x"]);
    let put = world.put("a/x", "").await;
    let last = world.put("b/y", "").await;
    lab.locks.oldest.store(last.get(), Ordering::Relaxed);
    lab.locks.is_mute.store(false, Ordering::Relaxed);
    // It wakes the feed.
    world.put("c/w", "").await;
    let state = lab.fresh().await;
    assert_eq!(world.cacher.counters().holes_bridged.load(Ordering::Relaxed), 1);
    assert_eq!(told(&mut follower), ["+y", "+w"]);
    assert_eq!(state.get(&key("a/x")).map(|object| object.revision()), Revision::new(2));
    assert_eq!(refused(state.check_decrypted(&below("a").reach)), NO_KEY);
    check(expect!["UNDECRYPTED a/x: no key"], &world.drain(&mut all).await);
    check(expect!["EXPIRED 3<5"], &world.drain(&mut other).await);
    check(expect![""], &world.drain(&mut one).await);
    lab.locks.unlock_and_say(|_| true);
    let state = lab.until_read(&world.cacher, &everything()).await;
    assert_eq!(state.get(&key("a/x")).map(|object| object.revision()), Some(put));
    world.clock.sleep(limits::REBASE_PERIOD * 2).await;
    assert_eq!(told(&mut follower), ["~x"]);
}
