//! A store on a simulated machine, its clients, and what they were told: the model that it is compared with.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, Change, Expect, Feed, FeedStep, Op, Range, Txn, TxnError, TxnResponse};
use forebay_embedded::faults::{Crash, Faults, Machine};
use forebay_embedded::{Engine, Stepper};
use forebay_rt::{Clock, ManualClock, Random};

use crate::common::{self, HISTORY_MS};

const KEYS: u64 = 12;

pub struct World {
    pub seed: u64,
    pub random: Random,
    pub machine: Machine,
    clock: Clock,
    hand: ManualClock,
    store: Option<(Arc<Engine>, Stepper)>,
    feed: Option<Feed>,
    // Every change that a feed has yielded or a reopened store has, by revision.
    history: Vec<Change>,
    // The state after all of it: key -> (revision, value).
    now: BTreeMap<Key, (u64, Bytes)>,
    // What was asked for and got neither yes nor no.
    unknown: Vec<Txn>,
    // (unix ms, revision) as time went by
    times: VecDeque<(u64, u64)>,
    next_value: u64,
    pub seen: Seen,
}

/// How often the interesting things happened: a test in which they do not proves nothing.
#[derive(Debug, Default)]
pub struct Seen {
    pub failures: u64,
    pub reads_after_failure: u64,
    pub refused_for_space: u64,
    pub conflicts: u64,
    pub expired: u64,
    pub compacted: u64,
    pub survived_unacknowledged: u64,
    pub defragmented: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.failures += other.failures;
        self.reads_after_failure += other.reads_after_failure;
        self.refused_for_space += other.refused_for_space;
        self.conflicts += other.conflicts;
        self.expired += other.expired;
        self.compacted += other.compacted;
        self.survived_unacknowledged += other.survived_unacknowledged;
        self.defragmented += other.defragmented;
    }
}

impl World {
    pub fn new(seed: u64) -> World {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let mut world = World {
            seed,
            random: Random::seeded(seed),
            machine: Machine::new(),
            clock,
            hand,
            store: None,
            feed: None,
            history: Vec::new(),
            unknown: Vec::new(),
            times: VecDeque::new(),
            next_value: 0,
            now: BTreeMap::new(),
            seen: Seen::default(),
        };
        world.store = Some(world.open().expect("an empty machine"));
        world
    }

    fn open(&self) -> Result<(Arc<Engine>, Stepper), forebay_embedded::OpenError> {
        Engine::open_stepped(self.machine.disk(), common::options(&self.clock))
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.store.as_ref().expect("open").0
    }

    fn step(&mut self) {
        self.store.as_mut().expect("open").1.step();
    }

    fn last(&self) -> u64 {
        self.history.last().map_or(1, |change| change.revision.get())
    }

    /// The state as of `revision`, by the model.
    fn state(&self, revision: u64) -> BTreeMap<Key, (u64, Bytes)> {
        let mut state = BTreeMap::new();
        for change in self.history.iter().take_while(|change| change.revision.get() <= revision) {
            match &change.value {
                Some(value) => state.insert(change.key.clone(), (change.revision.get(), value.clone())),
                None => state.remove(&change.key),
            };
        }
        state
    }

    /// Up to `rounds` batches of some clients each; ends early when the store has failed.
    pub async fn live(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.pass_time();
            let txns = (0..self.random.below(7)).map(|_| self.txn()).collect();
            self.batch(txns).await;
            if self.engine().failure().is_some() {
                return;
            }
        }
    }

    fn pass_time(&mut self) {
        self.times.push_back((self.clock.unix_ms(), self.last()));
        let span_ms = match self.random.below(10) {
            0 => self.random.below(HISTORY_MS),
            1..5 => self.random.below(3_000),
            _ => 0,
        };
        self.hand.advance_ms(span_ms);
    }

    fn txn(&mut self) -> Txn {
        let key = Key::new(&format!("/registry/{}/{}", self.random.below(2), self.random.below(KEYS)));
        let held = self.now.get(&key).map(|(revision, _)| Revision::from_log(*revision));
        let expect = match (held, self.random.below(8)) {
            (_, 0) => Expect::Absent,
            (_, 1) => Expect::At(Revision::from_log(1 + self.random.below(self.last()))),
            (Some(revision), _) => Expect::At(revision),
            (None, _) => Expect::Absent,
        };
        if self.random.below(4) == 0 {
            return Txn { key, expect, op: Op::Delete };
        }
        self.next_value += 1;
        let filler = match self.random.below(12) {
            0 => self.random.below(30_000),
            1..4 => self.random.below(3_000),
            _ => self.random.below(100),
        };
        let mut value = format!("value {} ", self.next_value).into_bytes();
        // Half of it compresses.
        value.extend((0..filler).map(|n| if n % 2 == 0 { b'x' } else { self.random.next_u64() as u8 }));
        let ttl =
            (self.random.below(4) == 0).then(|| std::time::Duration::from_millis(self.random.below(20_000)));
        Txn { key, expect, op: Op::Put { value: Bytes::from(value), ttl } }
    }

    /// Commits `txns` as one batch, and holds every reply against the feed and the model.
    async fn batch(&mut self, txns: Vec<Txn>) {
        let (before, mut asked) = (self.history.len(), Vec::new());
        for txn in txns {
            let (engine, copy) = (self.engine().clone(), txn.clone());
            asked.push((txn, tokio::spawn(async move { Backend::commit(&*engine, copy).await })));
        }
        // Every task runs up to where it waits for its reply.
        tokio::task::yield_now().await;
        self.step();
        self.follow().await;
        self.seen.expired +=
            self.history[before..].iter().filter(|change| change.value.is_none()).count() as u64;
        for (txn, reply) in asked {
            match reply.await.expect("no panic") {
                Ok(TxnResponse::Committed(revision)) => {
                    self.seen.expired -= u64::from(matches!(txn.op, Op::Delete));
                    self.was_committed(&txn, revision);
                }
                Ok(TxnResponse::Conflict(there)) => {
                    self.seen.conflicts += 1;
                    let (key, history) = (&txn.key, &self.history);
                    let ever = there.iter().all(|there| {
                        let there = (key, there.revision, Some(&there.value));
                        history.iter().rev().any(|was| (&was.key, was.revision, was.value.as_ref()) == there)
                    });
                    assert!(ever, "seed {}: {there:?} never was", self.seed);
                }
                Err(TxnError::ReadOnly { .. }) => self.unknown.push(txn),
                Err(TxnError::Failed { cause }) => {
                    assert!(cause.contains("no space left"), "seed {}: {cause}", self.seed);
                    self.seen.refused_for_space += 1;
                }
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
    }

    fn was_committed(&self, txn: &Txn, revision: Revision) {
        let seen: Vec<_> = self.history.iter().filter(|change| change.revision == revision).collect();
        let value = if let Op::Put { value, .. } = &txn.op { Some(value.clone()) } else { None };
        let expected = Change { key: txn.key.clone(), revision, value };
        assert_eq!(seen, [&expected], "seed {}: the feed has it when the reply comes", self.seed);
        let before =
            self.history.iter().rev().find(|change| change.key == txn.key && change.revision < revision);
        let before = before.filter(|change| change.value.is_some()).map(|change| change.revision);
        let expected = if let Expect::At(revision) = txn.expect { Some(revision) } else { None };
        assert_eq!(before, expected, "seed {}: {txn:?}", self.seed);
    }

    /// Takes what the feed has into the model. What several changes share a revision, or nobody asked for,
    /// has expired.
    async fn follow(&mut self) {
        if self.feed.is_none() {
            let last = Revision::from_log(self.last());
            self.feed = Some(self.open_feed(last).await);
        }
        let barrier = self.engine().barrier().await.expect("open");
        loop {
            let mut changes = Vec::new();
            let step =
                self.feed.as_mut().expect("just made").take(100, &mut changes).expect("followed closely");
            changes.into_iter().for_each(|change| self.happened(change));
            if matches!(step, FeedStep::Idle) {
                break;
            }
        }
        assert!(self.last() <= barrier.get(), "seed {}: the feed was ahead of the barrier", self.seed);
        assert_eq!(self.last(), barrier.get(), "seed {}: the feed did not reach the barrier", self.seed);
    }

    fn happened(&mut self, change: Change) {
        assert!(change.revision.get() >= self.last(), "seed {}: {change:?} after {}", self.seed, self.last());
        match &change.value {
            Some(value) => self.now.insert(change.key.clone(), (change.revision.get(), value.clone())),
            None => self.now.remove(&change.key),
        };
        self.history.push(change);
    }

    async fn open_feed(&mut self, after: Revision) -> Feed {
        let engine = self.engine().clone();
        let opening = tokio::spawn(async move { Backend::feed(&*engine, "/", after).await });
        tokio::task::yield_now().await;
        self.step();
        opening.await.expect("no panic").expect("kept")
    }

    /// Compares every kind of read with the model, unless the machine is down.
    pub async fn read_everything(&mut self) {
        let failure = self.engine().failure();
        self.seen.failures += u64::from(failure.is_some());
        if failure.is_some_and(|cause| cause.contains("down")) {
            return;
        }
        // What is due is done first: afterwards history stands still while it is read.
        self.step();
        self.follow().await;
        let oldest = self.engine().oldest().await.expect("open");
        self.history_was_kept_long_enough(oldest);
        let mut feed = self.open_feed(oldest).await;
        let mut changes = Vec::new();
        while matches!(feed.take(7, &mut changes).expect("kept"), FeedStep::Changes) {}
        let expected: Vec<_> =
            self.history.iter().filter(|change| change.revision > oldest).cloned().collect();
        assert_eq!(changes, expected, "seed {}: history after {oldest}", self.seed);
        for _ in 0..8 {
            let span = self.last() + 1 - oldest.get();
            self.read_at(Some(Revision::from_log(oldest.get() + self.random.below(span)))).await;
        }
        self.read_at(Some(oldest)).await;
        self.read_at(None).await;
        for (key, (revision, value)) in &self.now {
            let found = self.engine().get(key).await.expect("open").expect("there");
            assert_eq!((found.revision.get(), &found.value), (*revision, value), "seed {}: {key}", self.seed);
        }
        self.seen.reads_after_failure += u64::from(self.engine().failure().is_some());
        self.seen.compacted += u64::from(oldest > Revision::FIRST);
    }

    async fn read_at(&self, at: Option<Revision>) {
        let (prefix, limit) = (Key::new("/"), 1 + self.random.below(9) as usize);
        let (mut start_after, mut found) = (None, BTreeMap::new());
        loop {
            let range = Range { prefix: prefix.clone(), start_after, limit, at };
            let page = self.engine().range(range).await.expect("kept");
            assert_eq!(page.revision.get(), at.map_or(self.last(), Revision::get), "seed {}", self.seed);
            start_after = page.items.last().map(|(key, _)| key.clone());
            found.extend(
                page.items.into_iter().map(|(key, found)| (key, (found.revision.get(), found.value))),
            );
            if !page.more {
                break;
            }
        }
        assert_eq!(found, self.state(at.map_or(u64::MAX, Revision::get)), "seed {}: at {at:?}", self.seed);
    }

    fn history_was_kept_long_enough(&self, oldest: Revision) {
        let kept_since = self.clock.unix_ms().saturating_sub(HISTORY_MS);
        let then = self.times.iter().take_while(|(at_ms, _)| *at_ms <= kept_since).last();
        let then = then.map_or(1, |(_, revision)| *revision);
        assert!(oldest.get() <= then, "seed {}: oldest {oldest} but {then} was current", self.seed);
    }

    /// The end of this life and the beginning of the next, on what `crash` leaves of the disk.
    pub async fn crash(&mut self, crash: Crash) {
        self.feed = None;
        let (engine, stepper) = self.store.take().expect("open");
        self.seen.defragmented += self.machine.renames();
        let before = self.machine.crash(crash);
        drop((engine, stepper));
        self.machine = before;
        if self.random.below(3) == 0 {
            self.crash_while_opening();
        }
        self.machine.set_faults(Faults::default());
        let opened = self.open();
        self.store = Some(opened.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed)));
        self.compare_with_what_was_told().await;
    }

    fn crash_while_opening(&mut self) {
        self.machine.set_faults(Faults { down_after: Some(self.random.below(12)), ..Faults::default() });
        // It may get through; what matters is what it leaves.
        drop(self.open());
        self.machine = self.machine.crash(Crash::TearUnsynced { seed: self.random.next_u64() });
    }

    async fn compare_with_what_was_told(&mut self) {
        self.step();
        let oldest = self.engine().oldest().await.expect("open");
        let revision = self.engine().barrier().await.expect("open");
        assert!(revision.get() >= self.last(), "seed {}: {revision} after {}", self.seed, self.last());
        self.history_was_kept_long_enough(oldest);
        let told = self.last();
        let mut feed = self.open_feed(oldest).await;
        let mut changes = Vec::new();
        while matches!(feed.take(100, &mut changes).expect("kept"), FeedStep::Changes) {}
        let (old, new): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.revision.get() <= told);
        let expected: Vec<_> =
            self.history.iter().filter(|change| change.revision > oldest).cloned().collect();
        assert_eq!(old, expected, "seed {}: what was told", self.seed);
        for change in new {
            let asked = self.unknown.iter().any(|txn| match &txn.op {
                Op::Put { value, .. } => txn.key == change.key && change.value.as_ref() == Some(value),
                Op::Delete => txn.key == change.key && change.value.is_none(),
            });
            // The store's own deletes are expiries.
            let expired = change.value.is_none() && self.now.contains_key(&change.key);
            assert!(asked || expired, "seed {}: nobody asked for {change:?}", self.seed);
            self.seen.survived_unacknowledged += u64::from(asked);
            self.seen.expired += u64::from(expired);
            self.happened(change);
        }
        self.unknown.clear();
        self.feed = Some(feed);
    }
}
