//! A cache whose store pushes states and changes one after another: it is another API server, read by an
//! informer's reflector.
//!
//! The first state is put at rest as it comes. A later one is merged, key by key, into the objects that are
//! held: an object with the same revision stays as it is, another one takes its place, and an object that the
//! state did not have is removed at its end. Nothing of a later state is shown before its end; then the
//! differences are in the window as events.
//!
//! In: [`Told`]s. Out: a state, and its window. Never: holds two states, beyond what differs between them.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Change, FeedError, FeedStep, GiveWay, Rewrite, Tell, Told};
use forebay_object::Object;
use forebay_rt::Instant;

use super::bridge::Difference;
use super::part::next_part;
use super::{Fill, Ingest, Lost, State, check_order};
use crate::commands::{Order, Seen};
use crate::counters::Counters;
use crate::limits;
use crate::published::{Hole, Published, States};
use crate::room::Share;
use crate::seal::Resting;
use crate::snapshot::Snapshot;

/// The state of such a cache after its first state.
pub(super) struct Cache {
    pub(super) state: State,
    arriving: Option<Arriving>,
    // How all objects are to be rewritten once no state is arriving.
    rewrite: Option<Rewrite>,
}

/// The first state, while it comes.
pub(super) struct First {
    resting: Resting,
    // Objects of the page that are not in the state yet.
    page: Vec<Arc<Object>>,
    bytes: usize,
    // The room that the page has.
    pub(super) share: Option<Share>,
}

/// A later state, while it comes.
struct Arriving {
    // What is shown meanwhile.
    before: Snapshot,
    // Which of the objects in `before`, by number, the state has had so far.
    seen: Bits,
    // The keys that differ, so far.
    touched: BTreeMap<Key, Touched>,
    // How often a state was begun since the last one was complete.
    attempt: u32,
    may_go_back: bool,
}

struct Touched {
    // The object that was there before; none when the key is new.
    previous: Option<Arc<Object>>,
    // When it was told of last.
    attempt: u32,
}

/// A set of numbers.
struct Bits(Vec<u64>);

impl Bits {
    fn none_of(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The numbers below `len` that are not in it, ascending.
    fn missing(&self, len: usize) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != u64::MAX);
        words
            .flat_map(|(at, word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 0).map(move |bit| at * 64 + bit)
            })
            .take_while(move |place| *place < len)
    }
}

impl Ingest {
    /// Takes in what `tell` says, until it ends.
    pub(super) async fn follow_told(
        &self,
        mut fill: Fill,
        mut tell: Box<dyn Tell>,
        filled_at: &mut Option<Instant>,
    ) -> Result<std::convert::Infallible, Lost> {
        let (mut told, mut seen) = (Vec::new(), Seen::default());
        loop {
            let state = self.first_state(fill, &mut *tell, &mut told).await?;
            self.counters.initializations.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            *filled_at = Some(self.clock.now());
            let mut cache = Cache { state, arriving: None, rewrite: None };
            self.publish(&mut cache.state);
            loop {
                if let Err(lost) = self.take_told(&mut cache, &mut told).await {
                    cache.state.window.lose();
                    return Err(lost);
                }
                self.tidy(&mut cache.state);
                if self.is_to_let_go(&mut cache, &mut *tell).await {
                    break;
                }
                if cache.arriving.is_none() {
                    self.publish(&mut cache.state);
                }
                self.next_told(&mut cache, &mut seen, &mut *tell, &mut told).await?;
            }
            told.clear();
            fill.number = cache.state.snapshot.fill() + 1;
            self.let_go(cache);
        }
    }

    /// Holds less when the store says so. Returns whether all objects are to be dropped.
    async fn is_to_let_go(&self, cache: &mut Cache, tell: &mut dyn Tell) -> bool {
        loop {
            if cache.rewrite.is_none() {
                match tell.held(cache.state.held_at_rest_bytes()) {
                    Some(GiveWay::LetGo) => return true,
                    Some(GiveWay::Rewrite(rewrite)) => cache.rewrite = Some(rewrite),
                    Some(GiveWay::Spill { to, goal_bytes }) => {
                        self.spill(&mut cache.state, to, goal_bytes).await;
                        continue;
                    }
                    None => return false,
                }
            }
            // What arrives is held against what was there before.
            let Some(rewrite) = cache.rewrite.take_if(|_| cache.arriving.is_none()) else { return false };
            self.rewrite(&mut cache.state, &rewrite).await;
        }
    }

    /// The same of a first state, of which everything is in its place afterwards if it is to hold less.
    async fn is_to_let_go_first(&self, state: &mut State, first: &mut First, tell: &mut dyn Tell) -> bool {
        while let Some(way) = tell.held(state.held_at_rest_bytes()) {
            if matches!(way, GiveWay::LetGo) {
                return true;
            }
            self.put_at_rest(state, first, true).await;
            match way {
                GiveWay::Rewrite(rewrite) => self.rewrite(state, &rewrite).await,
                GiveWay::Spill { to, goal_bytes } => self.spill(state, to, goal_bytes).await,
                GiveWay::LetGo => {}
            }
        }
        false
    }

    /// Drops all objects, and shows nothing any more.
    fn let_go(&self, cache: Cache) {
        // Counted before anybody finds the window at its end: who follows it looks at this first.
        self.counters.let_gos.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        self.publish.send_replace(Published::Filling { since: self.clock.now() });
        cache.state.window.lose();
        self.recent.forget_from(Revision::FIRST);
        self.inflated.clear();
    }

    /// Waits for the next that is told, or something else to be done.
    async fn next_told(
        &self,
        cache: &mut Cache,
        seen: &mut Seen,
        tell: &mut dyn Tell,
        told: &mut Vec<Told>,
    ) -> Result<(), FeedError> {
        let state = &mut cache.state;
        let behind = state.sealing.is_behind(&state.window);
        let alarm = if behind { state.sweep_at.min(state.seal_at) } else { state.sweep_at };
        let may_hasten = state.may_hasten();
        tokio::select! {
            biased;
            order = self.commands.next(seen) => {
                // Nothing that is told is encrypted.
                if order == Order::TakeFound {
                    drop(self.commands.take_found());
                }
            }
            () = state.sealing.finished() => {}
            () = self.resource.room.short(), if may_hasten => {}
            next = poll_fn(|context| tell.poll_told(context, told)) => next?,
            () = self.clock.sleep_until(alarm) => {}
        }
        Ok(())
    }

    /// Takes in the first state. What the store says after it is left in `told`.
    async fn first_state(
        &self,
        fill: Fill,
        tell: &mut dyn Tell,
        told: &mut Vec<Told>,
    ) -> Result<State, FeedError> {
        let mut state = self.state(Revision::FIRST, fill.number);
        let mut first = self.first();
        loop {
            poll_fn(|context| tell.poll_told(context, told)).await?;
            let mut next = std::mem::take(told).into_iter();
            while let Some(one) = next.next() {
                match one {
                    Told::StateBegins { .. } => {
                        state = self.state(Revision::FIRST, fill.number);
                        first = self.first();
                    }
                    Told::Change(change) => self.take_first(&mut state, &mut first, change).await,
                    Told::Packed(packed) => {
                        self.take_first_packed(&mut state, &mut first, &packed).await;
                    }
                    Told::Progress(_) => {}
                    Told::StateEnds(revision) => {
                        self.put_at_rest(&mut state, &mut first, true).await;
                        if self.is_to_let_go_first(&mut state, &mut first, tell).await {
                            next = Vec::new().into_iter();
                            (state, first) = (self.state(Revision::FIRST, fill.number), self.first());
                            continue;
                        }
                        *told = next.collect();
                        self.begin_at(&mut state, revision, None).await?;
                        return Ok(state);
                    }
                }
            }
            if self.is_to_let_go_first(&mut state, &mut first, tell).await {
                (state, first) = (self.state(Revision::FIRST, fill.number), self.first());
            }
        }
    }

    fn first(&self) -> First {
        let (page, bytes, share) = (Vec::new(), 0, None);
        First { resting: Resting::new(self.inflated.clone()), page, bytes, share }
    }

    async fn take_first(&self, state: &mut State, first: &mut First, change: Change) {
        let Some(value) = change.value else {
            // Whatever of it is on its way is in its place before it goes.
            self.put_at_rest(state, first, true).await;
            state.snapshot.remove(&change.key);
            return;
        };
        if first.page.is_empty() {
            first.share = self.room_for(limits::FILL_BYTES).await;
        }
        if let Some(object) = self.decode(state, change.key, change.revision, &value) {
            self.add_first(state, first, object).await;
        }
    }

    /// Adds an object to the page, for which there is room.
    pub(super) async fn add_first(&self, state: &mut State, first: &mut First, object: Arc<Object>) {
        first.bytes += object.body_len();
        first.page.push(object);
        if first.bytes >= limits::FILL_BYTES || first.page.len() >= limits::FILL_PAGE {
            self.put_at_rest(state, first, false).await;
        }
    }

    /// Begins to put the page at rest.
    ///
    /// - `all`: waits until all pages are at rest and in the state.
    async fn put_at_rest(&self, state: &mut State, first: &mut First, all: bool) {
        let mut page = std::mem::take(&mut first.page);
        first.bytes = 0;
        if !page.is_empty() {
            page.sort_by(|a, b| (a.key(), a.revision()).cmp(&(b.key(), b.revision())));
            place(state, first.resting.put(page, first.share.take()).await);
        }
        while all && let Some(page) = first.resting.next().await {
            place(state, page);
        }
    }

    /// Lets `state` begin at `revision`, with a window of its own.
    async fn begin_at(
        &self,
        state: &mut State,
        revision: Revision,
        differences: Option<usize>,
    ) -> Result<(), FeedError> {
        let number = state.snapshot.fill() + u64::from(differences.is_some());
        let mut begun = self.state(revision, number);
        std::mem::swap(&mut begun.share, &mut state.share);
        std::mem::swap(&mut begun.snapshot, &mut state.snapshot);
        let placed = begun.snapshot.begun_at(revision, number);
        let indexed = forebay_rt::blocking(move || placed.with_indexes()).await;
        begun.snapshot = indexed.map_err(|error| FeedError::Failed { cause: error.to_string() })?;
        let differences = differences.unwrap_or(begun.snapshot.len());
        begun.states = States { told: state.states.told + 1, differences, revision: Some(revision) };
        begun.renewed = true;
        let before = std::mem::replace(state, begun);
        // Who follows the window of before finds the new one once that is at its end.
        self.publish(state);
        before.window.lose();
        Ok(())
    }

    /// Takes in everything in `told`.
    async fn take_told(&self, cache: &mut Cache, told: &mut Vec<Told>) -> Result<(), Lost> {
        let mut changes = Vec::new();
        for one in std::mem::take(told) {
            if !matches!(one, Told::Change(_)) {
                self.take_changes(cache, &mut changes).await?;
            }
            match one {
                Told::Change(change) => changes.push(change),
                Told::Packed(packed) => {
                    assert!(cache.arriving.is_some(), "what is packed is told within a state");
                    self.merge_packed(cache, &packed).await;
                }
                Told::Progress(revision) if cache.arriving.is_none() => {
                    if revision > cache.state.snapshot.revision() {
                        let step = FeedStep::Progress(revision);
                        self.drain(&step, &mut cache.state, &mut Vec::new(), None).await;
                    }
                }
                Told::Progress(_) => {}
                Told::StateBegins { may_go_back } => cache.begin(may_go_back),
                Told::StateEnds(revision) => self.end(cache, revision).await?,
            }
        }
        self.take_changes(cache, &mut changes).await
    }

    async fn take_changes(&self, cache: &mut Cache, changes: &mut Vec<Change>) -> Result<(), Lost> {
        if changes.is_empty() {
            return Ok(());
        }
        if cache.arriving.is_none() {
            check_order(cache.state.snapshot.revision(), &FeedStep::Changes, changes)?;
            let shown_from = Some(Revision::FIRST);
            self.drain(&FeedStep::Changes, &mut cache.state, changes, shown_from).await;
            return Ok(());
        }
        while let Some((part, bytes)) = next_part(changes) {
            self.make_room(&mut cache.state, bytes, None).await;
            for Change { key, revision, value } in part {
                let make = value.map(|value| {
                    let key = key.clone();
                    move |state: &mut State| self.decode(state, key, revision, &value)
                });
                self.merge(cache, key, revision, make);
            }
            self.settle(&mut cache.state);
            self.go_on_in_haste(&mut cache.state);
        }
        Ok(())
    }

    /// Takes one object of a state that arrives, or a change on top of it.
    ///
    /// - `make`: the object, unless it is gone.
    pub(super) fn merge(
        &self,
        cache: &mut Cache,
        key: Key,
        revision: Revision,
        make: Option<impl FnOnce(&mut State) -> Option<Arc<Object>>>,
    ) {
        let Cache { state, arriving: Some(arriving), .. } = cache else { return };
        if let Some(place) = arriving.before.place_of(&key) {
            arriving.seen.add(place);
        }
        let held = state.snapshot.get(&key).cloned();
        let stays = |held: &Arc<Object>| match arriving.may_go_back {
            true => held.revision() == revision,
            false => held.revision() >= revision,
        };
        if make.is_some() && held.as_ref().is_some_and(stays) {
            if let Some(touched) = arriving.touched.get_mut(&key) {
                touched.attempt = arriving.attempt;
            }
            return;
        }
        let current = make.and_then(|make| make(state));
        match current {
            Some(object) => drop(state.snapshot.put(object)),
            None => drop(state.snapshot.remove(&key)),
        }
        let attempt = arriving.attempt;
        arriving.touched.entry(key).or_insert(Touched { previous: held, attempt }).attempt = attempt;
    }

    /// Completes a later state: removes what it did not have, and shows the differences.
    async fn end(&self, cache: &mut Cache, revision: Revision) -> Result<(), FeedError> {
        let Some(mut arriving) = cache.arriving.take() else { return Ok(()) };
        let state = &mut cache.state;
        arriving.drop_what_was_not_told(state);
        let before = arriving.before.revision();
        let differences = arriving.differences(&state.snapshot, revision);
        tracing::debug!(
            resource = self.resource.name, %before, after = %revision, objects = differences.len(),
            "the state was told anew"
        );
        if revision < before || revision == before && !differences.is_empty() {
            // Revisions of before are of another history.
            Counters::add(&self.counters.went_back, 1);
            return self.begin_at(state, revision, Some(differences.len())).await;
        }
        Counters::add(&self.counters.holes_bridged, 1);
        let states =
            States { told: state.states.told + 1, differences: differences.len(), revision: Some(revision) };
        state.append_differences(differences, self.clock.unix_ms());
        state.window.announce(revision.get());
        state.snapshot.set_revision(revision);
        state.note_hole(Hole { before, after: revision });
        state.states = states;
        state.renewed = true;
        self.note_pressure(state);
        Ok(())
    }
}

impl First {
    /// Whether there is no page that has room.
    pub(super) fn is_empty(&self) -> bool {
        self.page.is_empty()
    }
}

/// Puts objects in their places, but for one that was changed since.
fn place(state: &mut State, page: Vec<Arc<Object>>) {
    for object in page {
        let is_newer = |held: &Arc<Object>| held.revision() > object.revision();
        if !state.snapshot.get(object.key()).is_some_and(is_newer) {
            state.snapshot.place(object);
        }
    }
}

impl Cache {
    fn begin(&mut self, may_go_back: bool) {
        match &mut self.arriving {
            Some(arriving) => {
                arriving.attempt += 1;
                arriving.may_go_back |= may_go_back;
                arriving.seen.clear();
            }
            None => {
                let before = self.state.snapshot.clone();
                let seen = Bits::none_of(before.len());
                self.state.snapshot.forget_unreadable();
                let touched = BTreeMap::new();
                self.arriving = Some(Arriving { before, seen, touched, attempt: 0, may_go_back });
            }
        }
    }
}

impl Arriving {
    /// Removes the objects that the state did not have.
    fn drop_what_was_not_told(&mut self, state: &mut State) {
        let attempt = self.attempt;
        for (key, touched) in &self.touched {
            if touched.attempt != attempt {
                state.snapshot.remove(key);
            }
        }
        for place in self.seen.missing(self.before.len()) {
            let Some(gone) = self.before.at_place(place) else { break };
            state.snapshot.remove(gone.key());
            let touched = Touched { previous: Some(gone.clone()), attempt };
            self.touched.entry(gone.key().clone()).or_insert(touched);
        }
    }

    /// The differences, by revision; removed objects come at the end.
    fn differences(self, now: &Snapshot, end: Revision) -> Vec<Difference> {
        let before = self.before.revision();
        let mut differences = Vec::new();
        for (key, Touched { previous, .. }) in self.touched {
            let current = now.get(&key).cloned();
            let is_same = match (&previous, &current) {
                (Some(previous), Some(current)) => previous.revision() == current.revision(),
                (None, None) => true,
                _ => false,
            };
            if is_same {
                continue;
            }
            let put = current.as_ref().map(|current| current.revision());
            let revision = put.filter(|put| *put > before && *put <= end).unwrap_or(end);
            differences.push(Difference { revision, previous, current, hidden: None });
        }
        differences.sort_by_key(|difference| difference.revision);
        differences
    }
}
