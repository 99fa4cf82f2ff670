//! One WATCH: a cursor over the window, and the initial state before it if it was asked for.
//!
//! In: a cache, an interest, a place to begin. Out: [`WatchStep`]s, in order. Never: holds an event while it
//! waits. A slow watcher waits for its socket, and goes on from the window afterwards, or is told Expired.
//!
//! Owner: the connection that reads it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use forebay_apimachinery::{Key, Revision};
use forebay_object::{Object, Segments};
use forebay_revlog::{Cursor, Position, Step};
use forebay_rt::Instant;
use smallvec::SmallVec;

use crate::cacher::Cacher;
use crate::counters::Counters;
use crate::error::ReadError;
use crate::event::{Event, EventKind};
use crate::interest::{Interest, Reach};
use crate::limits;
use crate::snapshot::Snapshot;

/// What a watcher is to send next.
#[derive(Clone, Debug)]
pub enum WatchStep {
    /// An event. DELETED carries the last state that matched; `revision` is the event's, which a DELETED
    /// event shows.
    Event { kind: EventKind, object: Arc<Object>, revision: Revision },
    /// The initial state is complete, as of this revision.
    InitialEventsEnd(Revision),
    /// The next event is no longer in the window.
    Expired { asked: Revision, oldest: Revision },
    /// Something in reach was put that cannot be decrypted: the watcher cannot tell what, and ends.
    Undecrypted { key: Key, why: Arc<str> },
    /// The resource is no longer served, or the cache was filled anew.
    Closed,
}

/// One WATCH.
pub struct Watcher {
    cacher: Cacher,
    interest: Interest,
    // Every object of the resource is in its interest, so no object has to be looked at.
    is_for_all: bool,
    cursor: Cursor<Arc<Event>>,
    // Boxed, because most watchers are past their initial state.
    initial: Option<Box<Initial>>,
    // Pulled and not yet given out, at most WATCH_BATCH_MAX or INITIAL_BATCH_MAX. `None` when there is
    // nothing, as most of the time.
    pending: Option<Pending>,
    // Every event up to this revision was given out, or does not match.
    reached: Revision,
    // The size of the last event's object, by which it is estimated how many events there is room for.
    event_bytes: usize,
}

/// How much work a watcher may do in one turn of its task, for all steps that it is asked for.
#[derive(Debug)]
pub struct Budget {
    // How many more events may be looked at in this turn.
    looks: usize,
    // The last pull found fewer events than it asked for: there were no more.
    is_drained: bool,
}

impl Budget {
    /// - `looks`: how many may be made.
    pub fn new(looks: usize) -> Budget {
        Budget { looks, is_drained: false }
    }
}

/// Boxed, because a watcher that waits has none.
#[allow(clippy::box_collection, reason = "there is none most of the time")]
type Pending = Box<VecDeque<WatchStep>>;

/// What is left of the initial state.
struct Initial {
    snapshot: Arc<Snapshot>,
    after: Option<Key>,
    // The reader wants whole blocks: a pull ends where a block begins.
    in_blocks: bool,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if self.is_for_all {
            self.cacher.counters().watchers_of_all.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Watcher {
    pub(crate) fn new(
        cacher: Cacher,
        interest: Interest,
        cursor: Cursor<Arc<Event>>,
        initial: Option<Arc<Snapshot>>,
    ) -> Watcher {
        let reached = Revision::from_log(cursor.seen());
        let initial = initial.map(|snapshot| Box::new(Initial { snapshot, after: None, in_blocks: false }));
        let is_for_all = interest.is_all_below(&cacher.resource().prefix);
        if is_for_all {
            Counters::add(&cacher.counters().watchers_of_all, 1);
        }
        Watcher {
            cacher,
            interest,
            is_for_all,
            cursor,
            initial,
            pending: None,
            reached,
            event_bytes: limits::EVENT_BYTES_GUESS,
        }
    }

    /// The next step if there is one now; never waits.
    pub fn try_next(&mut self) -> Option<WatchStep> {
        let mut budget = Budget::new(usize::MAX);
        loop {
            if let Poll::Ready(step) = self.next_within(usize::MAX, &mut budget) {
                return step;
            }
        }
    }

    /// The next step for a reader that has room for about `room` bytes. No more than that is pulled ahead,
    /// because events that were pulled are neither sealed nor dropped.
    ///
    /// - `budget`: pays for the looks that are made. Pending when nothing is left of it. Nobody is woken
    ///   then: the caller has to ask again once other tasks have had their turn.
    pub fn next_within(&mut self, room: usize, budget: &mut Budget) -> Poll<Option<WatchStep>> {
        loop {
            if let Some(step) = self.pop() {
                return Poll::Ready(Some(step));
            }
            if budget.is_drained {
                return Poll::Ready(None);
            }
            if budget.looks == 0 {
                return Poll::Pending;
            }
            let most = self.objects_max(budget.looks);
            let more = if self.initial.is_some() {
                self.pull_initial(most)
            } else {
                let most = most.min(self.events_max(room));
                let more = self.pull_events(most);
                let is_short = matches!(more, Pulled::Some { objects, .. } if objects < most);
                budget.is_drained = is_short && !self.cursor.is_joining();
                more
            };
            match more {
                Pulled::Some { objects, first } => {
                    budget.looks = budget.looks.saturating_sub(self.looks(objects));
                    if first.is_some() {
                        return Poll::Ready(first);
                    }
                }
                Pulled::Nothing => return Poll::Ready(None),
                Pulled::End(step) => return Poll::Ready(Some(step)),
            }
        }
    }

    /// Whether there is initial state that may be given out in blocks.
    pub fn has_segments(&self) -> bool {
        self.initial.is_some() && self.interest.is_unfiltered()
    }

    /// The next objects of the initial state, if they are a whole block and all match. From the first call
    /// on, a pull ends where a block begins; so the caller has to ask for a block before each step.
    ///
    /// - `budget`: as for [`Watcher::next_within`], which the caller asks when there is no block.
    pub fn next_segment(&mut self, budget: &mut Budget) -> Option<Vec<Arc<Object>>> {
        let initial = self.initial.as_mut().filter(|_| self.interest.is_unfiltered())?;
        initial.in_blocks = true;
        if self.pending.is_some() || budget.looks == 0 {
            return None;
        }
        let mut rest = Segments::new(initial.snapshot.candidates(&self.interest, initial.after.as_ref()));
        let segment = rest.next_segment().filter(|segment| segment.deflated.is_some())?;
        let block: Vec<Arc<Object>> = segment.objects.iter().copied().cloned().collect();
        drop(rest);
        initial.after = block.last().map(|last| last.key().clone());
        budget.looks = budget.looks.saturating_sub(self.looks(block.len()));
        Counters::add(&self.cacher.counters().init_events, block.len());
        Some(block)
    }

    /// The position of a watcher that wants every event, is past its initial state, and has nothing pending.
    /// All watchers at the same position are sent the same next.
    pub fn position(&self) -> Option<Position> {
        let is_live = self.is_for_all && self.pending.is_none() && self.initial.is_none();
        if is_live { self.cursor.position() } else { None }
    }

    /// Skips the next event, the only one of its revision, because it was sent already as that of another
    /// watcher at `at`. Returns false when this watcher is elsewhere.
    ///
    /// - `bytes`: the event's size.
    pub fn pass(&mut self, at: Position, revision: Revision, bytes: usize) -> bool {
        let is_next = self.position() == Some(at) && self.cursor.step_over(at, revision.get());
        if is_next {
            self.reached = self.reached.max(revision);
            self.event_bytes = bytes.max(1);
        }
        is_next
    }

    /// Whether nothing is left to be given out now.
    pub fn is_at_end(&mut self) -> bool {
        self.pending.is_none() && self.initial.is_none() && self.cursor.is_at_end()
    }

    /// The revision up to which everything was given out, which a bookmark may have. `None` while only a part
    /// of a revision was.
    pub fn passed(&self) -> Option<Revision> {
        (self.pending.is_none() && self.initial.is_none()).then_some(self.reached)
    }

    /// Whether the watcher begins after a revision that the cache has not reached.
    pub fn is_ahead(&self) -> bool {
        self.cacher.snapshot().is_ok_and(|now| self.reached > now.revision())
    }

    /// Whether the initial state is still being given out.
    pub fn is_initial(&self) -> bool {
        self.initial.is_some()
    }

    /// Bytes of the objects in reach of the initial state, whether they match or not.
    pub fn state_bytes(&self) -> usize {
        match (&self.initial, &self.interest.reach) {
            (None, _) => 0,
            (Some(initial), Reach::One(key)) => {
                initial.snapshot.get(key).map_or(0, |object| object.body_len())
            }
            (Some(initial), reach) => initial.snapshot.plain_bytes(reach, None),
        }
    }

    /// Whether the watcher holds nothing but its place, and can go on from there: it is past its initial
    /// state, and the window still has the next event.
    pub fn has_place(&self) -> bool {
        self.initial.is_none() && !self.cursor.is_expired()
    }

    /// Ends the watcher although its client is still there. Counted when the client fell behind.
    pub fn give_up(self) {
        if self.cursor.is_expired() {
            Counters::add(&self.cacher.counters().terminated_watchers, 1);
        }
    }

    /// Waits until [`Watcher::try_next`] may have something. Cancel-safe.
    pub async fn ready(&mut self) {
        poll_fn(|cx| self.poll_ready(cx)).await;
    }

    /// [`Watcher::ready`] as a poll, for a task that waits for other things as well.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let has_some = self.pending.is_some() || self.initial.is_some();
        if !has_some && ready!(self.cursor.poll_ready(cx)) {
            Counters::add(&self.cacher.counters().watchers_woken, 1);
        }
        Poll::Ready(())
    }

    /// A bookmark as production code makes it: after [`Watcher::settled`], with what is known then.
    #[cfg(test)]
    pub(crate) async fn bookmark(&mut self, deadline: Instant) -> Option<Revision> {
        self.settled(deadline).await;
        loop {
            match self.bookmark_within(&mut Budget::new(Interest::LOOKS_MAX)) {
                Poll::Ready(revision) => return revision,
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
    }

    /// Waits until the current revision is known, at most until `deadline`, so that the bookmark of a quiet
    /// resource moves. Does not wait while something is still to be given out.
    pub fn settled(&self, deadline: Instant) -> impl Future<Output = ()> + use<> {
        let cacher = self.passed().is_some().then(|| self.cacher.clone());
        async move {
            if let Some(cacher) = cacher {
                // When the store does not answer, the bookmark says what is known.
                cacher.settle(deadline).await;
            }
        }
    }

    /// The revision for a bookmark now: everything up to it was given out. `None` while something is still to
    /// be given out. Pending when the budget is used up, as [`Watcher::next_within`].
    pub fn bookmark_within(&mut self, budget: &mut Budget) -> Poll<Option<Revision>> {
        if self.passed().is_none() {
            return Poll::Ready(None);
        }
        while budget.looks > 0 {
            match self.pull_events(1) {
                Pulled::Nothing => return Poll::Ready(Some(self.reached)),
                Pulled::Some { objects, first: None } => {
                    budget.looks = budget.looks.saturating_sub(self.looks(objects));
                }
                Pulled::Some { first: Some(step), .. } | Pulled::End(step) => {
                    self.pending.get_or_insert_default().push_front(step);
                    return Poll::Ready(None);
                }
            }
        }
        Poll::Pending
    }

    /// Looks at `most` objects at most.
    fn pull_initial(&mut self, most: usize) -> Pulled {
        let Some(initial) = &mut self.initial else { return Pulled::Nothing };
        let next = initial.snapshot.candidates(&self.interest, initial.after.as_ref());
        let ends_before =
            |object: &Object| initial.in_blocks && object.place().is_some_and(|(place, _)| place == 0);
        let objects: Vec<Arc<Object>> = next
            .take(most.min(limits::INITIAL_BATCH_MAX))
            .enumerate()
            .take_while(|(place, object)| *place == 0 || !ends_before(object))
            .map(|(_, object)| object.clone())
            .collect();
        match objects.last() {
            Some(last) => initial.after = Some(last.key().clone()),
            None => {
                let revision = initial.snapshot.revision();
                self.initial = None;
                return Pulled::Some { objects: 0, first: Some(WatchStep::InitialEventsEnd(revision)) };
            }
        }
        let looked_at = objects.len();
        let matching = objects.into_iter().filter(|object| self.interest.selects(object));
        let step = |object: Arc<Object>| {
            let revision = object.revision();
            WatchStep::Event { kind: EventKind::Added, object, revision }
        };
        let found: VecDeque<WatchStep> = matching.map(step).collect();
        Counters::add(&self.cacher.counters().init_events, found.len());
        self.pending = (!found.is_empty()).then(|| Box::new(found));
        Pulled::Some { objects: looked_at, first: None }
    }

    /// The next step of those that were pulled.
    fn pop(&mut self) -> Option<WatchStep> {
        let pending = self.pending.as_mut()?;
        let step = pending.pop_front();
        if pending.is_empty() {
            self.pending = None;
        }
        step
    }

    fn matches(&self, object: &Object) -> bool {
        self.is_for_all || self.interest.matches(object)
    }

    /// How many looks `objects` objects take.
    fn looks(&self, objects: usize) -> usize {
        if self.is_for_all { objects } else { objects * self.interest.looks() }
    }

    /// For how many objects `looks` are enough.
    fn objects_max(&self, looks: usize) -> usize {
        if self.is_for_all { looks.max(1) } else { self.interest.objects_max(looks) }
    }

    /// Puts a pulled step into `first` if that is empty, and keeps it for later otherwise.
    fn put(&mut self, step: WatchStep, first: &mut Option<WatchStep>) {
        match first {
            None => *first = Some(step),
            Some(_) => self.pending.get_or_insert_default().push_back(step),
        }
    }

    /// How many events there is room for.
    fn events_max(&self, room: usize) -> usize {
        (room / self.event_bytes).clamp(1, limits::WATCH_BATCH_MAX)
    }

    /// Looks at about `most` events at most.
    fn pull_events(&mut self, most: usize) -> Pulled {
        let asked = self.reached;
        // Not kept for the next pull: a watcher is idle most of the time, and this is cheap to allocate.
        let mut pulled = SmallVec::<[_; 1]>::new();
        match self.cursor.take(most, &mut pulled) {
            None if pulled.is_empty() => return Pulled::Nothing,
            None | Some(Step::Item(..)) => {}
            Some(Step::Progress(revision)) => {
                self.reached = self.reached.max(Revision::from_log(revision));
                return Pulled::Nothing;
            }
            Some(Step::Expired { oldest }) => {
                Counters::add(&self.cacher.counters().terminated_watchers, 1);
                return Pulled::End(WatchStep::Expired { asked, oldest: Revision::from_log(oldest) });
            }
            Some(Step::Closed) => return Pulled::End(WatchStep::Closed),
        }
        let (objects, mut first) = (pulled.len(), None);
        for (_, event) in pulled {
            let hidden = event.hidden.as_ref().filter(|hidden| self.interest.reach.contains(&hidden.key));
            if hidden.is_some() {
                Counters::add(&self.cacher.counters().terminated_watchers, 1);
                let end = self.end_at_hidden(asked, event.revision);
                self.put(end, &mut first);
                break;
            }
            if let Some((kind, object)) = event.seen_by(|object| self.matches(object)) {
                if event.is_of_hole {
                    Counters::add(&self.cacher.counters().terminated_watchers, 1);
                    let expired = WatchStep::Expired { asked, oldest: event.revision };
                    self.put(expired, &mut first);
                    break;
                }
                let object = object.clone();
                self.event_bytes = object.body_len().max(1);
                self.put(WatchStep::Event { kind, object, revision: event.revision }, &mut first);
            }
        }
        self.reached = self.reached.max(Revision::from_log(self.cursor.seen()));
        Pulled::Some { objects, first }
    }
}

impl Watcher {
    /// How it ends at an event that does not tell all: for what cannot be decrypted, or, where everything can
    /// be by now, so that its client reads that.
    fn end_at_hidden(&self, asked: Revision, at: Revision) -> WatchStep {
        let now = self.cacher.snapshot().and_then(|now| now.check_decrypted(&self.interest.reach));
        match now {
            Err(ReadError::Undecrypted { key, why }) => WatchStep::Undecrypted { key, why },
            _ => WatchStep::Expired { asked, oldest: at },
        }
    }
}

enum Pulled {
    /// So many objects or events were looked at. What comes next is given out at once; what follows it is
    /// pending.
    Some {
        objects: usize,
        first: Option<WatchStep>,
    },
    Nothing,
    End(WatchStep),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{World, labelled};

    /// How often `watcher` lets others work before it has what is next, and that.
    fn next(watcher: &mut Watcher, looks: usize) -> (usize, Option<WatchStep>) {
        let mut turns = 0;
        loop {
            match watcher.next_within(usize::MAX, &mut Budget::new(looks)) {
                Poll::Ready(step) => return (turns, step),
                Poll::Pending => turns += 1,
            }
        }
    }

    #[tokio::test]
    async fn what_does_not_match_is_passed_over_a_part_at_a_time() {
        let world = World::new().await;
        for number in 0..9 {
            world.put(&format!("a/{number}"), "").await;
        }
        world.put("a/last", "app=web").await;
        let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh");
        // A look at the object, and one for the requirement.
        let looks = 2 * 3;
        let mut watcher = world.cacher.watch_list(labelled("app=web"), snapshot).expect("held");
        let (turns, first) = next(&mut watcher, looks);
        assert!(matches!(first, Some(WatchStep::Event { object, .. }) if object.name() == "last"));
        assert_eq!(turns, 3);
        assert!(matches!(next(&mut watcher, looks), (0, Some(WatchStep::InitialEventsEnd(_)))));
        for number in 0..9 {
            world.put(&format!("a/{number}"), "app=db").await;
        }
        world.cacher.fresh(world.soon()).await.expect("fresh");
        assert!(matches!(next(&mut watcher, looks), (3, None)));
        assert!(watcher.try_next().is_none());
    }

    #[tokio::test]
    async fn an_object_is_looked_at_however_many_requirements_there_are() {
        let world = World::new().await;
        world.put("a/x", "").await;
        let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh");
        let mut watcher = world.cacher.watch_list(labelled("!a,!b,!c,d"), snapshot).expect("held");
        assert!(matches!(next(&mut watcher, 1), (1, Some(WatchStep::InitialEventsEnd(_)))));
    }
}
