//! A follower of a cache: it is told all objects and then every change of them, and is never told to begin
//! anew.
//!
//! A follower knows the state that it has told: a snapshot, and by key what it told since. Where the window
//! no longer has the next event, or has another history, it goes on with the differences between that state
//! and the current one. So a slow follower is told less, each key at most once. It holds at most the keys,
//! and the objects that were replaced since; nobody waits for it.
//!
//! In: a cache, and an interest. Out: [`Followed`], in order, each once a read of the cache shows it. Never:
//! loses or repeats a change. Owner: whoever handles them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;
use forebay_revlog::{Cursor, Step};
use forebay_rt::{Alarm, Duration, Instant};
use smallvec::SmallVec;

use crate::cacher::Cacher;
use crate::error::ReadError;
use crate::event::Event;
use crate::interest::{Interest, Reach};
use crate::limits;
use crate::published::{States, Window};
use crate::snapshot::Snapshot;

/// What a follower tells its owner.
#[derive(Clone, Debug)]
pub enum Followed {
    /// An object that matches was made, changed, or is gone. At least one of its two states is there.
    Change(Changed),
    /// Every object was told that was there when the follower began. This is told once.
    Synced(Revision),
    /// The cache was filled anew, and all differences from what was told before were told.
    Relisted(States),
    /// The cache dropped all of its objects, and this follower did, too: what was told before no longer
    /// counts. Once the cache is filled again its objects are told as at the beginning.
    LetGo,
    /// The cache has ended. Nothing is told after this.
    Ended,
}

/// An object before and after a change.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The object as it was told last.
    pub previous: Option<Arc<Object>>,
    /// `None` when it is gone, or matches no more.
    pub current: Option<Arc<Object>>,
    /// The revision of the change, or of the state that shows it.
    pub revision: Revision,
    /// Whether this may be several changes in one. Then the current object may have been made anew under the
    /// same name.
    pub is_sum: bool,
}

/// See the module's doc.
pub struct Follower {
    cacher: Cacher,
    interest: Interest,
    at: At,
    // What was told: this state, and on top of it the changes in `since`. None when nothing was told.
    base: Option<Arc<Snapshot>>,
    since: BTreeMap<Key, Option<Arc<Object>>>,
    // Read, and not told yet; at most a batch.
    pending: VecDeque<Followed>,
    // The filling that it follows, and how many of the cache's states it has told of.
    fill: Option<u64>,
    states: u64,
    // How often the cache had shown objects without an event when that was last told.
    revealed: u64,
    has_synced: bool,
    // There is more to compare, once other tasks have had their turn.
    is_halfway: bool,
    // When to look for a newer form of the told state: a state that was put at rest is published without an
    // event.
    rebase_at: Instant,
    alarm: Alarm,
    // How often the cache had dropped all of its objects when that was last told.
    let_gos: u64,
    conflated: u64,
    gaps: u64,
}

enum At {
    /// It has to begin: for the first time, or because the history was lost.
    Nowhere,
    /// The window of this filling has ended, and the cache was not filled anew yet.
    Closed(u64),
    /// It tells the differences from a state.
    Differences {
        to: Arc<Snapshot>,
        after: Option<Key>,
        then: Cursor<Arc<Event>>,
    },
    Events(Cursor<Arc<Event>>),
    Ended,
}

/// How long one wait for a snapshot lasts. After it the follower waits again.
const SHOWN_WAIT: Duration = Duration::from_secs(60);

impl Cacher {
    /// A follower that begins with all objects that match.
    pub fn follow(&self, interest: Interest) -> Follower {
        Follower {
            cacher: self.clone(),
            interest,
            at: At::Nowhere,
            base: None,
            since: BTreeMap::new(),
            pending: VecDeque::new(),
            fill: None,
            states: 0,
            revealed: 0,
            has_synced: false,
            is_halfway: false,
            rebase_at: self.clock().now(),
            alarm: Alarm::default(),
            let_gos: self.counters().let_gos.load(Ordering::Acquire),
            conflated: 0,
            gaps: 0,
        }
    }
}

impl Follower {
    /// The next thing to be told; waits for it. Cancel-safe.
    pub async fn next(&mut self) -> Followed {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.ready().await;
        }
    }

    /// The next thing to be told, if it is there now; never waits.
    pub fn try_next(&mut self) -> Option<Followed> {
        self.let_go();
        self.leave_other_history();
        self.is_halfway = false;
        loop {
            if let Some(next) = self.pending.front() {
                return if self.is_shown(next) { self.pop() } else { None };
            }
            let goes_on = match &mut self.at {
                At::Nowhere => self.begin(),
                At::Closed(fill) => {
                    let fill = *fill;
                    self.leave_closed(fill)
                }
                At::Differences { .. } => self.pull_differences(),
                At::Events(_) => self.pull_events(),
                At::Ended => false,
            };
            if !goes_on {
                return None;
            }
        }
    }

    /// Waits until [`Follower::try_next`] may have something; for ever after the end. Cancel-safe.
    pub async fn ready(&mut self) {
        if self.is_halfway {
            return tokio::task::yield_now().await;
        }
        if let Some(Followed::Change(early)) = self.pending.front() {
            // Whether early history came or not is seen by looking again.
            let (revision, deadline) = (early.revision, self.cacher.clock().now() + SHOWN_WAIT);
            let _shown = self.cacher.at_least(revision, deadline).await;
            return;
        }
        match &mut self.at {
            At::Nowhere => self.cacher.wait_ready().await,
            At::Closed(fill) => self.cacher.filled_again(*fill).await,
            At::Differences { .. } => {}
            At::Events(cursor) => {
                let rebase = self.alarm.rings(self.rebase_at);
                tokio::select! {
                    biased;
                    _woken = std::future::poll_fn(|cx| cursor.poll_ready(cx)) => {}
                    () = rebase => {}
                }
            }
            At::Ended => std::future::pending().await,
        }
    }

    /// The revision up to which everything was told; none before it has synced.
    pub fn revision(&self) -> Option<Revision> {
        match &self.at {
            At::Events(cursor) if self.pending.is_empty() => Some(Revision::from_log(cursor.seen().max(1))),
            _ => self.base.as_ref().map(|base| base.revision()),
        }
    }

    /// The objects that match, as they were told last, in key order.
    pub fn told(&self) -> std::vec::IntoIter<Arc<Object>> {
        let told = Told { base: self.base.as_deref(), since: &self.since };
        let matching = told.after(&self.interest.reach, None).filter(|object| self.interest.selects(object));
        matching.cloned().collect::<Vec<_>>().into_iter()
    }

    /// The object of `key` as it was told last, if it was told and is there. O(log n).
    pub fn told_of(&self, key: &Key) -> Option<&Arc<Object>> {
        match self.since.get(key) {
            Some(since) => since.as_ref(),
            None => self.base.as_ref()?.get(key).filter(|object| self.interest.matches(object)),
        }
    }

    /// How many changes were told as the sum of several, because the window no longer had these.
    pub fn conflated(&self) -> u64 {
        self.conflated
    }

    /// How often the follower went on after a gap with the differences. An object that came and went within a
    /// gap was not told.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Whether a read of the cache shows what `next` tells.
    fn is_shown(&self, next: &Followed) -> bool {
        let Followed::Change(change) = next else { return true };
        // A cache that shows nothing now begins anew.
        self.cacher.snapshot().map_or(true, |shown| shown.revision() >= change.revision)
    }

    /// Drops what the cache has dropped.
    fn let_go(&mut self) {
        let let_gos = self.cacher.counters().let_gos.load(Ordering::Acquire);
        if let_gos == self.let_gos || matches!(self.at, At::Ended) {
            return;
        }
        self.let_gos = let_gos;
        let has_told = self.base.is_some() || !self.since.is_empty();
        (self.at, self.base, self.since, self.fill) = (At::Nowhere, None, BTreeMap::new(), None);
        self.has_synced = false;
        // Earlier changes that were not told yet are not told any more. Dropping twice in a row is told once.
        let untold = self.pending.iter().any(|next| matches!(next, Followed::LetGo));
        self.pending.clear();
        if has_told || untold {
            self.pending.push_back(Followed::LetGo);
        }
    }

    /// Drops changes that were read from a history that is no longer shown, or that is not all of it any
    /// more, and were not told yet: the differences have them.
    fn leave_other_history(&mut self) {
        let other = |(shown, window): (Arc<Snapshot>, Window)| {
            self.fill.is_some_and(|fill| fill != shown.fill() || self.revealed != window.revealed)
        };
        if self.cacher.ready().is_ok_and(other) && !matches!(self.at, At::Ended) {
            self.pending.retain(|next| matches!(next, Followed::Synced(_) | Followed::LetGo));
            self.at = At::Nowhere;
        }
    }

    fn pop(&mut self) -> Option<Followed> {
        let next = self.pending.pop_front()?;
        if let Followed::Change(Changed { previous, current, .. }) = &next
            && let Some(object) = current.as_ref().or(previous.as_ref())
        {
            self.since.insert(object.key().clone(), current.clone());
        }
        Some(next)
    }

    /// Begins with the differences from the current state. Returns whether there is something to go on with.
    fn begin(&mut self) -> bool {
        let begun = self.cacher.ready().and_then(|(snapshot, window)| {
            let cursor = self.cacher.cursor(&window, &self.interest, snapshot.revision())?;
            Ok((snapshot, window, cursor))
        });
        match begun {
            Ok((snapshot, Window { states, revealed, .. }, then)) => {
                if !self.has_synced {
                    self.states = states.told;
                } else if self.fill != Some(snapshot.fill()) {
                    // That its state was told is to be told, however many of them there were.
                    self.states = states.told.saturating_sub(1);
                }
                self.gaps += u64::from(self.has_synced);
                self.fill = Some(snapshot.fill());
                self.revealed = revealed;
                self.at = At::Differences { to: snapshot, after: None, then };
                true
            }
            Err(ReadError::Closed) => self.end(),
            Err(_) if self.cacher.is_stopped() => self.end(),
            // Filled again, or so far behind between two looks that the next finds it.
            Err(_) => false,
        }
    }

    fn leave_closed(&mut self, fill: u64) -> bool {
        match self.cacher.snapshot() {
            _ if self.cacher.is_stopped() => self.end(),
            Ok(shown) if shown.fill() != fill => {
                self.at = At::Nowhere;
                true
            }
            Err(ReadError::Closed) => self.end(),
            _ => false,
        }
    }

    fn end(&mut self) -> bool {
        self.at = At::Ended;
        self.pending.push_back(Followed::Ended);
        true
    }

    fn pull_differences(&mut self) -> bool {
        let At::Differences { to, after, .. } = &self.at else { return false };
        let told = Told { base: self.base.as_deref(), since: &self.since };
        let (found, last) = told.differences(to, &self.interest, after.as_ref());
        if self.has_synced {
            self.conflated += found.len() as u64;
        }
        // What was found is told before the state counts as told: it may be left in between for one of
        // another history.
        let last_found = found.last().and_then(|found| found.current.as_ref().or(found.previous.as_ref()));
        let last = last.or_else(|| last_found.map(|object| object.key().clone()));
        self.pending.extend(found.into_iter().map(Followed::Change));
        let At::Differences { to, after, .. } = &mut self.at else { return false };
        if last.is_some() {
            *after = last;
            self.is_halfway = self.pending.is_empty();
            return !self.is_halfway;
        }
        let revision = to.revision();
        let At::Differences { to, then, .. } = std::mem::replace(&mut self.at, At::Nowhere) else {
            return false;
        };
        self.at = At::Events(then);
        (self.base, self.since) = (Some(to), BTreeMap::new());
        if !std::mem::replace(&mut self.has_synced, true) {
            self.pending.push_back(Followed::Synced(revision));
        }
        true
    }

    fn pull_events(&mut self) -> bool {
        // Before the look at the window: what this shows is in it.
        let shown = self.cacher.ready();
        let At::Events(cursor) = &mut self.at else { return false };
        let mut pulled = SmallVec::<[_; limits::WATCH_BATCH_MAX]>::new();
        match cursor.take(limits::WATCH_BATCH_MAX, &mut pulled) {
            Some(Step::Expired { .. }) => {
                self.at = At::Nowhere;
                return true;
            }
            Some(Step::Closed) => {
                self.at = self.fill.map_or(At::Nowhere, At::Closed);
                return true;
            }
            None | Some(Step::Item(..) | Step::Progress(_)) => {}
        }
        if pulled.is_empty() {
            if let Ok((shown, window)) = shown {
                if window.revealed != self.revealed {
                    self.at = At::Nowhere;
                    return true;
                }
                return self.is_at_tail(shown, window.states);
            }
            return false;
        }
        for (_, event) in pulled {
            let matches = |object: &&Arc<Object>| self.interest.matches(object);
            let (previous, current) =
                (event.previous.as_ref().filter(matches), event.current.as_ref().filter(matches));
            if previous.is_some() || current.is_some() {
                let (previous, current) = (previous.cloned(), current.cloned());
                let (revision, is_sum) = (event.revision, event.is_of_hole);
                let change = Changed { previous, current, revision, is_sum };
                self.pending.push_back(Followed::Change(change));
            }
        }
        true
    }

    /// Everything in `shown` was told: it becomes the told state, and the follower holds no older object.
    fn is_at_tail(&mut self, shown: Arc<Snapshot>, states: States) -> bool {
        if self.fill != Some(shown.fill()) {
            return false;
        }
        self.rebase_at = self.cacher.clock().now() + limits::REBASE_PERIOD;
        if !self.since.is_empty() || self.base.as_ref().is_none_or(|base| !Arc::ptr_eq(base, &shown)) {
            (self.base, self.since) = (Some(shown), BTreeMap::new());
        }
        let is_new = states.told > self.states;
        if is_new {
            self.states = states.told;
            self.pending.push_back(Followed::Relisted(states));
        }
        is_new
    }
}

/// What was told.
struct Told<'a> {
    base: Option<&'a Snapshot>,
    since: &'a BTreeMap<Key, Option<Arc<Object>>>,
}

impl Told<'_> {
    /// A batch of the differences of `to` behind key `after`, in key order; and the last key that was looked
    /// at, or `None` at the end.
    fn differences(
        &self,
        to: &Snapshot,
        interest: &Interest,
        after: Option<&Key>,
    ) -> (Vec<Changed>, Option<Key>) {
        let mut found = Vec::new();
        let mut told = self.after(&interest.reach, after).peekable();
        let mut now = to.candidates(interest, after).filter(|object| interest.selects(object)).peekable();
        let mut looked_at = None;
        for _ in 0..Interest::LOOKS_MAX {
            let (before, current) = match (told.peek(), now.peek()) {
                (None, None) => return (found, None),
                (Some(_), None) => (told.next(), None),
                (None, Some(_)) => (None, now.next()),
                (Some(before), Some(current)) => match before.key().cmp(current.key()) {
                    std::cmp::Ordering::Less => (told.next(), None),
                    std::cmp::Ordering::Equal => (told.next(), now.next()),
                    std::cmp::Ordering::Greater => (None, now.next()),
                },
            };
            looked_at = before.or(current).map(|object| object.key().clone());
            let before = before.filter(|object| interest.selects(object));
            let is_same = match (before, current) {
                (Some(before), Some(current)) => before.revision() == current.revision(),
                (before, current) => before.is_none() && current.is_none(),
            };
            if !is_same {
                let revision = current.map_or(to.revision(), |current| current.revision());
                let (previous, current) = (before.cloned(), current.cloned());
                found.push(Changed { previous, current, revision, is_sum: true });
            }
            if found.len() >= limits::INITIAL_BATCH_MAX {
                return (found, looked_at);
            }
        }
        (found, looked_at)
    }

    /// The told objects behind key `after`, in key order.
    fn after(&self, reach: &Reach, after: Option<&Key>) -> impl Iterator<Item = &Arc<Object>> {
        let mut base = self.base.into_iter().flat_map(move |base| base.range(reach, after)).peekable();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut since = self.since.range::<Key, _>((from, Bound::Unbounded)).peekable();
        std::iter::from_fn(move || {
            loop {
                let since_is_next = match (base.peek(), since.peek()) {
                    (_, None) => return base.next(),
                    (None, Some(_)) => true,
                    (Some(object), Some((key, _))) => {
                        if object.key() == *key {
                            base.next();
                        } else if object.key() < *key {
                            return base.next();
                        }
                        true
                    }
                };
                if since_is_next && let Some((_, Some(object))) = since.next() {
                    return Some(object);
                }
            }
        })
    }
}
