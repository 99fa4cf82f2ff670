//! One WATCH as a machine: what is sent next, and what it waits for when there is nothing.
//!
//! In: the time, room for so many bytes, and a [`FrameSink`]. Out: frames in that, and a [`Step`]. It pulls
//! from its watcher, which is a place in the cache's memory. Never: IO, a task, a clock of its own, or a
//! wait: whoever drives it does those, the server and the simulation alike.

use std::cell::OnceCell;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::errors;
use forebay_object::Scratch;
use forebay_rt::{Clock, Instant};
use forebay_watchcache::{Budget, Interest, ReadError, WatchStep, Watcher};
use jiff::Timestamp;

use crate::frames::{EventFrames, FrameSink, Frames};
use crate::limits::{BOOKMARK_BEFORE_END, BOOKMARK_PERIOD, BOOKMARK_PROOF_WAIT, BOOKMARK_RETRY_PAUSE};
use crate::plan::{WatchPlan, WatchStart};
use crate::wall_time::timestamp;

/// One WATCH, from its first frame to its last.
pub struct WatchSession {
    // `None` when the stream is nothing but an error.
    watcher: Option<Watcher>,
    events: EventFrames,
    shared: Arc<Frames>,
    // While it is in its initial state.
    scratch: Option<Box<Scratch>>,
    plan: WatchPlan,
    deadline: Instant,
    bookmark_at: Instant,
    proof: Proof,
    state: State,
    // Said at its end.
    failure: Option<Reason>,
}

/// Whether a bookmark is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    None,
    /// The store is to be asked what is current.
    Wanted {
        deadline: Instant,
    },
    /// It is seen whether events come first.
    Given,
}

enum State {
    Open,
    /// The bookmark before the end was sent.
    Closing,
    /// One more thing to say.
    Failing(Box<Status>),
    Done,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Frames were appended.
    Frames,
    /// Nothing was, and nothing will be before this.
    Wait(Wait),
    /// The stream is at its end. An ERROR event was appended, or nothing.
    End,
}

/// What a session waits for. To step sooner does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Others' turn: it has looked at as much as it may in one go.
    Turn,
    /// [`WatchSession::settled`], after which [`WatchSession::prove`] is to be said, for a bookmark that is
    /// due.
    Proof { deadline: Instant },
    /// An event ([`WatchSession::poll_event`]), or this time.
    Event { until: Instant },
}

/// The time of a step. The wall's is read once, and only if it is shown.
pub struct Now<'c> {
    pub at: Instant,
    clock: &'c Clock,
    wall: OnceCell<Timestamp>,
}

/// What of a step's looking for frames came.
enum Filled {
    Frames,
    Nothing,
    /// Nothing yet, and it has looked long enough.
    Turn,
}

impl<'c> Now<'c> {
    pub fn of(clock: &'c Clock) -> Now<'c> {
        Now { at: clock.now(), clock, wall: OnceCell::new() }
    }

    fn wall(&self) -> Timestamp {
        *self.wall.get_or_init(|| timestamp(self.clock))
    }
}

impl WatchSession {
    /// - `began`: its place in the cache, or what its stream says instead.
    pub(crate) fn new(
        plan: WatchPlan,
        began: Result<Watcher, Status>,
        events: EventFrames,
        shared: Arc<Frames>,
        now: Instant,
    ) -> WatchSession {
        let (watcher, state) = match began {
            Ok(_) if plan.timeout.is_zero() => (None, State::Done),
            Ok(watcher) => (Some(watcher), State::Open),
            Err(status) => (None, State::Failing(Box::new(status))),
        };
        WatchSession {
            watcher,
            events,
            shared,
            scratch: None,
            deadline: now + plan.timeout,
            // A stream that is shorter than that has its end for a bookmark.
            bookmark_at: match plan.timeout.checked_sub(BOOKMARK_BEFORE_END) {
                _ if plan.prompt_bookmark => now,
                Some(before_end) if !before_end.is_zero() => now + BOOKMARK_PERIOD.min(before_end),
                _ => now + BOOKMARK_PERIOD,
            },
            plan,
            proof: Proof::None,
            state,
            failure: None,
        }
    }

    /// Appends frames to `out`, about `room` bytes of them, if there are any now.
    pub fn step(&mut self, now: &Now<'_>, room: usize, out: &mut impl FrameSink) -> Step {
        let from = out.frame_bytes();
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Failing(status) => {
                    self.failure = Some(status.reason);
                    out.own(|own| self.events.error(&status, own));
                    return Step::End;
                }
                State::Done => return Step::End,
                open => self.state = open,
            }
            match self.proof {
                Proof::None => {}
                Proof::Wanted { deadline } => return Step::Wait(Wait::Proof { deadline }),
                Proof::Given => {
                    if self.bookmark(now, out).is_pending() {
                        return Step::Wait(Wait::Turn);
                    }
                    if out.frame_bytes() > from {
                        return Step::Frames;
                    }
                }
            }
            // One that is never out of events ends in time, too. A bookmark that is late comes before that.
            if now.at >= self.deadline {
                if self.is_bookmark_due(now.at) {
                    self.ask_for_bookmark(now.at);
                    continue;
                }
                self.state = State::Done;
                return Step::End;
            }
            match self.fill(now, room, out) {
                Filled::Frames => return Step::Frames,
                Filled::Turn => return Step::Wait(Wait::Turn),
                Filled::Nothing => {}
            }
            if matches!(self.state, State::Open | State::Closing) {
                if now.at < self.alarm_at() {
                    return Step::Wait(Wait::Event { until: self.alarm_at() });
                }
                self.ask_for_bookmark(now.at);
            }
        }
    }

    /// Waits until it is known what is current in the store, at most until `deadline`. Holds nothing of the
    /// session.
    pub fn settled(&self, deadline: Instant) -> impl Future<Output = ()> + Send + use<> {
        let settled = self.watcher.as_ref().map(|watcher| watcher.settled(deadline));
        async move {
            if let Some(settled) = settled {
                settled.await;
            }
        }
    }

    /// What is current is known now.
    pub fn prove(&mut self) {
        if matches!(self.proof, Proof::Wanted { .. }) {
            self.proof = Proof::Given;
        }
    }

    /// It says this, and ends.
    pub(super) fn fail(&mut self, status: Box<Status>) {
        self.watcher = None;
        self.proof = Proof::None;
        self.state = State::Failing(status);
    }

    /// It is to end so much later than `now`, unless it would sooner.
    pub fn end_by(&mut self, deadline: Instant) {
        self.deadline = deadline.min(self.deadline);
    }

    /// Its client is to come back elsewhere: it says where it is, and ends, if it may say so. One that sends
    /// its initial state, or takes no bookmarks, goes on: to begin again would cost its client more.
    pub fn leave(&mut self, now: Instant) {
        if self.has_bookmarks() && !self.is_initial() {
            self.end_by(now + BOOKMARK_BEFORE_END);
            self.bookmark_at = now;
        }
    }

    /// Ready when the next step does more than wait: there may be an event, or no event is waited for.
    /// Registers who is woken for that.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !matches!(self.state, State::Open | State::Closing) || self.proof != Proof::None {
            return Poll::Ready(());
        }
        match &mut self.watcher {
            // On a busy resource of which nothing matches there is always something to look at.
            Some(watcher) => watcher.poll_ready(cx),
            None => Poll::Pending,
        }
    }

    /// When there is something to do though nothing happens: the end, or a bookmark before it.
    pub fn alarm_at(&self) -> Instant {
        if self.has_bookmarks() { self.bookmark_at.min(self.deadline) } else { self.deadline }
    }

    /// Whether it follows a resource yet, which may be no more.
    pub(crate) fn is_following(&self) -> bool {
        self.watcher.is_some()
    }

    /// Whether somebody who reads nothing has nothing to come back for: what was to come next is no longer
    /// held, its time is over, or it still is in its initial state, for which it would hold a snapshot.
    pub fn is_not_worth_waiting_for(&self, now: Instant) -> bool {
        let has_place = self.watcher.as_ref().is_some_and(Watcher::has_place);
        !has_place || !matches!(self.state, State::Open | State::Closing) || now >= self.deadline
    }

    /// Ends one that was not worth waiting for.
    pub fn give_up(self) {
        if let Some(watcher) = self.watcher {
            watcher.give_up();
        }
    }

    /// What the error was that it ended with.
    pub fn failure(&self) -> Option<Reason> {
        self.failure
    }

    /// Whether it was asked for the state and for its end.
    pub fn is_watch_list(&self) -> bool {
        self.plan.end_bookmark && self.is_initial()
    }

    /// Whether its initial state may come in blocks, for a sink that takes them.
    pub fn has_segments(&self) -> bool {
        self.events.shows_bodies() && self.watcher.as_ref().is_some_and(Watcher::has_segments)
    }

    /// Whether there is initial state to be sent yet.
    pub fn is_initial(&self) -> bool {
        self.watcher.as_ref().is_some_and(Watcher::is_initial)
    }

    /// Bytes of the objects of its initial state, whether they are selected or not.
    pub fn state_bytes(&self) -> usize {
        self.watcher.as_ref().map_or(0, Watcher::state_bytes)
    }

    /// Appends the frames that there are now.
    fn fill(&mut self, now: &Now<'_>, room: usize, out: &mut impl FrameSink) -> Filled {
        let mut bookmark_due = self.is_bookmark_due(now.at);
        let Some(watcher) = &mut self.watcher else { return Filled::Nothing };
        let from = out.frame_bytes();
        let (mut sent_bookmark, mut budget, mut is_through) = (false, Budget::new(Interest::LOOKS_MAX), true);
        while out.frame_bytes() < from + room {
            // Where events never cease, it is sent between them.
            if bookmark_due
                && out.frame_bytes() > from
                && let Some(revision) = watcher.passed()
            {
                out.own(|own| self.events.writer.bookmark(revision, false, now.wall(), own));
                bookmark_due = false;
                sent_bookmark = true;
            }
            if self.events.put_again(watcher, out) {
                if watcher.is_at_end() {
                    break;
                }
                continue;
            }
            if out.takes_segments()
                && let Some(objects) = watcher.next_segment(&mut budget)
            {
                let scratch = self.scratch.get_or_insert_default();
                self.events.initial_segment(&objects, scratch, &|| now.wall(), out);
                continue;
            }
            let at = watcher.position();
            let left = (from + room).saturating_sub(out.frame_bytes());
            let Poll::Ready(step) = watcher.next_within(left, &mut budget) else {
                is_through = false;
                break;
            };
            match step {
                Some(WatchStep::Event { object, .. }) if watcher.is_initial() => {
                    if out.frame_bytes() == from {
                        // There are more, and the last one goes beyond.
                        out.reserve(room + room / 4);
                    }
                    let scratch = self.scratch.get_or_insert_default();
                    out.own(|own| self.events.writer.initial(&object, scratch, &|| now.wall(), own));
                }
                Some(WatchStep::Event { kind, object, revision }) => {
                    let event = (kind, &object, revision);
                    let frame = self.events.put(&self.shared, event, || now.wall(), out);
                    // A revision is pulled whole: it has no other event.
                    if let Some((at, frame)) = at.zip(frame)
                        && watcher.position() == Some(at.after())
                    {
                        self.events.keep(at, revision, frame);
                    }
                }
                Some(WatchStep::InitialEventsEnd(revision)) => {
                    self.scratch = None;
                    if self.plan.end_bookmark {
                        out.own(|own| self.events.writer.bookmark(revision, true, now.wall(), own));
                    }
                }
                Some(WatchStep::Expired { asked, oldest }) => {
                    let status = errors::cache(&ReadError::Expired { asked, oldest });
                    self.state = State::Failing(Box::new(status));
                    break;
                }
                Some(WatchStep::Undecrypted { key, why }) => {
                    let status = errors::cache(&ReadError::Undecrypted { key, why });
                    self.state = State::Failing(Box::new(status));
                    break;
                }
                Some(WatchStep::Closed) => {
                    // There is nothing more, and the others' turn may be before this one's.
                    self.deadline = (now.at + self.events.turn()).min(self.deadline);
                    self.watcher = None;
                    break;
                }
                None => break,
            }
        }
        if sent_bookmark && matches!(self.state, State::Open) {
            self.schedule_bookmark(now.at);
        }
        match out.frame_bytes() > from {
            true => Filled::Frames,
            false if is_through => Filled::Nothing,
            false => Filled::Turn,
        }
    }

    fn is_bookmark_due(&self, now: Instant) -> bool {
        self.has_bookmarks() && now >= self.bookmark_at
    }

    /// Whether there is one to come yet.
    fn has_bookmarks(&self) -> bool {
        self.watcher.is_some() && self.plan.bookmarks && matches!(self.state, State::Open)
    }

    /// Wants the store to be asked what is current, for a bookmark that is due.
    fn ask_for_bookmark(&mut self, now: Instant) {
        if self.watcher.is_some() {
            self.proof = Proof::Wanted { deadline: (now + BOOKMARK_PROOF_WAIT).min(self.deadline) };
        }
    }

    /// Says how far it is, which is proved now, unless events come first. Pending when it has looked long
    /// enough for these.
    fn bookmark(&mut self, now: &Now<'_>, out: &mut impl FrameSink) -> Poll<()> {
        let revision = match &mut self.watcher {
            Some(watcher) => watcher.bookmark_within(&mut Budget::new(Interest::LOOKS_MAX)),
            None => Poll::Ready(None),
        };
        let Poll::Ready(revision) = revision else { return Poll::Pending };
        self.proof = Proof::None;
        match revision {
            Some(revision) => {
                // One that begins in the future is silent until then.
                let is_early = self.plan.start == WatchStart::After(revision)
                    && self.watcher.as_ref().is_some_and(Watcher::is_ahead);
                if !is_early {
                    out.own(|own| self.events.writer.bookmark(revision, false, now.wall(), own));
                }
                self.schedule_bookmark(now.at);
            }
            // Events came first; they are sent, and then it is tried again.
            None => self.bookmark_at = now.at + BOOKMARK_RETRY_PAUSE,
        }
        Poll::Ready(())
    }

    fn schedule_bookmark(&mut self, now: Instant) {
        let last = self.deadline - BOOKMARK_BEFORE_END.min(self.plan.timeout);
        if now >= last {
            self.state = State::Closing;
        } else {
            self.bookmark_at = (now + BOOKMARK_PERIOD).min(last);
        }
    }
}
