//! The body of a WATCH: its session, and what that waits for.
//!
//! In: room for frames. Out: frames, once there are any. Owns the waits: the alarm, the question to the store
//! that a bookmark waits for, and the word that the resource is no more. Never: decides what is sent.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use forebay_apimachinery::Status;
use forebay_rt::{Alarm, Clock};
use futures_util::future::BoxFuture;

use super::session::{Now, Step, Wait, WatchSession};
use crate::frames::FrameSink;

/// A WATCH's body: frames, as long as there are any.
pub struct WatchBody {
    session: WatchSession,
    clock: Clock,
    alarm: Alarm,
    // What its session waits for. Boxed, because it is large, and comes once a minute.
    settling: Option<BoxFuture<'static, ()>>,
    // Until there is something that it ends for.
    parting: Option<BoxFuture<'static, Parting>>,
}

/// What a watch ends for though nobody ends it.
pub(super) enum Parting {
    /// Its resource has changed: so much later it is its turn to end.
    Retired(Duration),
    /// What it is to send next cannot be made.
    Failed(Box<Status>),
}

impl WatchBody {
    /// - `parting`: see the field.
    pub(super) fn new(
        session: WatchSession,
        parting: Option<BoxFuture<'static, Parting>>,
        clock: Clock,
    ) -> WatchBody {
        WatchBody { session, clock, alarm: Alarm::default(), settling: None, parting }
    }

    /// The machine that it drives.
    pub fn session(&self) -> &WatchSession {
        &self.session
    }

    /// The machine, for who drives it otherwise.
    pub fn into_session(self) -> WatchSession {
        self.session
    }

    /// Appends frames to `out`, about `room` bytes of them, waiting until there is one, or the end.
    /// Cancel-safe: a frame that was appended stays in `out`, one that was not is not lost.
    pub async fn next(&mut self, room: usize, out: &mut impl FrameSink) -> Step {
        loop {
            match self.now(room, out).await {
                Step::Wait(_) => self.ready().await,
                step => return step,
            }
        }
    }

    /// What there is now, as [`WatchBody::next`] has it; waits for nothing but the proof of a bookmark that
    /// is due. While it passes over what does not match, it lets others work in between.
    pub async fn now(&mut self, room: usize, out: &mut impl FrameSink) -> Step {
        poll_fn(|cx| self.poll_now(room, out, cx)).await
    }

    /// The same for who waits for other things as well. While it is pending nothing was appended.
    pub fn poll_now(&mut self, room: usize, out: &mut impl FrameSink, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            if let Some(settling) = &mut self.settling {
                ready!(settling.as_mut().poll(cx));
                self.settling = None;
                self.session.prove();
            }
            match self.session.step(&Now::of(&self.clock), room, out) {
                Step::Wait(Wait::Proof { deadline }) => {
                    self.settling = Some(Box::pin(self.session.settled(deadline)));
                }
                Step::Wait(Wait::Turn) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                step => return Poll::Ready(step),
            }
        }
    }

    /// Waits for an event, for what moves the end, for a bookmark that is due, or for the end: until
    /// [`WatchBody::now`] may have something, which it makes only when it is asked. Cancel-safe.
    pub async fn ready(&mut self) {
        poll_fn(|cx| self.poll_ready(cx)).await;
    }

    /// The same for who waits for other things as well.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.session.poll_event(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.session.is_following()
            && let Some(parting) = &mut self.parting
            && let Poll::Ready(parting) = parting.as_mut().poll(cx)
        {
            self.parting = None;
            match parting {
                Parting::Retired(later) => self.session.end_by(self.clock.now() + later),
                Parting::Failed(status) => self.session.fail(status),
            }
            return Poll::Ready(());
        }
        let alarm = self.session.alarm_at();
        self.alarm.poll_rings(alarm, cx)
    }

    /// Ends it soon, with a bookmark, if it may end: see [`WatchSession::leave`].
    pub fn leave(&mut self) {
        self.session.leave(self.clock.now());
    }

    /// Whether somebody who reads nothing has nothing to come back for.
    pub fn is_not_worth_waiting_for(&self) -> bool {
        self.session.is_not_worth_waiting_for(self.clock.now())
    }

    /// Ends one that was not worth waiting for.
    pub fn give_up(self) {
        self.session.give_up();
    }

    /// Whether there is initial state to be sent yet.
    pub fn is_initial(&self) -> bool {
        self.session.is_initial()
    }
}
