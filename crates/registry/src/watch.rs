//! WATCH: a watcher of the cache, its bookmarks and its end.

use std::cell::LazyCell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Reason, Status};
use forebay_object::Scratch;
use forebay_rt::{Alarm, Clock, Instant};
use forebay_watchcache::{Budget, Interest, ReadError, WatchStep, Watcher};
use futures_util::future::BoxFuture;

use crate::catalog::Served;
use crate::errors;
use crate::frames::{FrameSink, Frames};
use crate::list::timestamp;
use crate::plan::{self, WatchPlan, WatchStart};
use crate::present::{Presenter, Shown};
use crate::registry::Registry;
use crate::request::Target;
use crate::store::Store;

/// A bookmark at least this often (reference §3.1), and one shortly before the end.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// How long a bookmark waits for the store to say what is current.
const BOOKMARK_PROOF: Duration = Duration::from_millis(500);
/// How soon a bookmark that events held up is tried again.
const BOOKMARK_RETRY: Duration = Duration::from_millis(100);

/// A WATCH's body: frames, as long as there are any.
pub struct WatchBody {
    // `None` when the stream is nothing but an error.
    watcher: Option<Watcher>,
    presenter: Presenter,
    frames: Arc<Frames>,
    // While it is in its initial state.
    scratch: Option<Box<Scratch>>,
    plan: WatchPlan,
    clock: Clock,
    alarm: Alarm,
    deadline: Instant,
    bookmark_at: Instant,
    // Until its resource has changed: then the deadline is when it is its turn to end.
    retiring: Option<BoxFuture<'static, Duration>>,
    // A bookmark is on its way.
    proof: Option<Proof>,
    state: State,
}

enum Proof {
    /// The store is asked what is current. Boxed, because it is large, and comes once a minute.
    Asked(BoxFuture<'static, ()>),
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

/// What a watch body has.
#[derive(Debug)]
pub enum Flow {
    /// Frames were appended.
    Frames,
    /// The last thing of the stream: an ERROR event with this status.
    Error(Status),
    /// The stream is at its end.
    End,
}

/// Starts what `plan` asks for.
///
/// # Errors
/// What is answered before the stream begins: 429 while the cache is not ready, or when a consistent start cannot be
/// proved (client-go retries an in-stream 504 without a pause). What kube-apiserver says inside the stream, a 410,
/// this says there too.
pub async fn watch(
    served: &Arc<Served>,
    store: &Store,
    plan: WatchPlan,
    interest: Interest,
    shown: Shown,
    frames: &Arc<Frames>,
    clock: &Clock,
) -> Result<WatchBody, Status> {
    let wait = clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    let cacher = &store.cacher;
    let fields = served.selected_fields(&interest);
    let started = match plan.start {
        WatchStart::After(revision) => match cacher.reach_back(revision).await {
            Ok(()) => cacher.watch(interest, revision),
            Err(error) => Err(error),
        },
        WatchStart::Now => match cacher.fresh(wait).await {
            Ok(snapshot) => cacher.watch(interest, snapshot.revision()),
            Err(error) => Err(error),
        },
        WatchStart::AnyNow => cacher.snapshot().and_then(|now| cacher.watch(interest, now.revision())),
        WatchStart::StateAny => cacher.snapshot().and_then(|now| cacher.watch_list(interest, now)),
        WatchStart::StateLatest => match cacher.fresh(wait).await {
            Ok(snapshot) => cacher.watch_list(interest, snapshot),
            Err(error) => Err(error),
        },
        WatchStart::StateAtLeast(revision) => match cacher.at_least(revision, wait).await {
            Ok(snapshot) => cacher.watch_list(interest, snapshot),
            Err(error) => Err(error),
        },
    };
    let (watcher, state) = match started {
        Ok(_) if plan.timeout.is_zero() => (None, State::Done),
        Ok(watcher) => (Some(watcher), State::Open),
        Err(error @ ReadError::Expired { .. }) => (None, State::Failing(Box::new(errors::cache(&error)))),
        Err(error @ ReadError::TooLarge { .. }) => {
            let status = errors::cache(&error);
            return Err(Status { reason: Reason::TooManyRequests, ..status }.retry_after(1));
        }
        Err(error) => return Err(errors::cache(&error)),
    };
    let now = clock.now();
    let presenter = Presenter::new(served.clone(), shown);
    Ok(WatchBody {
        watcher,
        retiring: presenter.retired(&fields),
        proof: None,
        presenter,
        frames: frames.clone(),
        scratch: None,
        deadline: now + plan.timeout,
        // A stream that is shorter than that has its end for a bookmark.
        bookmark_at: match plan.timeout.checked_sub(BOOKMARK_BEFORE_END) {
            _ if plan.prompt_bookmark => now,
            Some(before_end) if !before_end.is_zero() => now + BOOKMARK_PERIOD.min(before_end),
            _ => now + BOOKMARK_PERIOD,
        },
        plan,
        clock: clock.clone(),
        alarm: Alarm::default(),
        state,
    })
}

impl Registry {
    /// Whether a watch of these options begins with state, for which it holds a snapshot; not one that will be refused, or
    /// is over before it begins.
    pub fn begins_with_state(&self, target: &Target, options: &ListOptions, path_form: bool) -> bool {
        let Ok(store) = self.store_of(&target.served) else { return false };
        let timeout_min = self.config.min_request_timeout;
        let planned = plan::watch(target, &store, options, timeout_min, |_bound| 0, path_form);
        planned.is_ok_and(|(plan, _interest)| !plan.timeout.is_zero() && plan.start.is_of_state())
    }
}

impl WatchStart {
    /// Whether the state comes first.
    fn is_of_state(self) -> bool {
        match self {
            WatchStart::StateAny | WatchStart::StateLatest | WatchStart::StateAtLeast(_) => true,
            WatchStart::After(_) | WatchStart::Now | WatchStart::AnyNow => false,
        }
    }
}

impl WatchBody {
    /// Appends frames to `out`, about `chunk_bytes` of them, waiting until there is one. Cancel-safe: a frame that was
    /// appended stays in `out`, one that was not is not lost.
    pub async fn next(&mut self, chunk_bytes: usize, out: &mut impl FrameSink) -> Flow {
        loop {
            if let Some(flow) = self.now(chunk_bytes, out).await {
                return flow;
            }
            self.ready().await;
        }
    }

    /// What there is now, as [`WatchBody::next`] has it; waits for nothing but the proof of a bookmark that is due. While it
    /// passes over what does not match, it lets others work in between.
    pub async fn now(&mut self, chunk_bytes: usize, out: &mut impl FrameSink) -> Option<Flow> {
        poll_fn(|cx| self.poll_now(chunk_bytes, out, cx)).await
    }

    /// The same for who waits for other things as well. While it is pending nothing was appended.
    pub fn poll_now(
        &mut self,
        chunk_bytes: usize,
        out: &mut impl FrameSink,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Flow>> {
        let from = out.frame_bytes();
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Failing(status) => return Poll::Ready(Some(Flow::Error(*status))),
                State::Done => return Poll::Ready(Some(Flow::End)),
                open => self.state = open,
            }
            if self.proof.is_some() {
                ready!(self.poll_bookmark(out, cx));
                if out.frame_bytes() > from {
                    return Poll::Ready(Some(Flow::Frames));
                }
            }
            let now = self.clock.now();
            // One that is never out of events ends in time, too. A bookmark that is late comes before that.
            if now >= self.deadline {
                if self.is_bookmark_due(now) {
                    self.ask_for_bookmark(now);
                    continue;
                }
                self.state = State::Done;
                return Poll::Ready(Some(Flow::End));
            }
            if ready!(self.poll_fill(now, chunk_bytes, out, cx)) {
                return Poll::Ready(Some(Flow::Frames));
            }
            if matches!(self.state, State::Open | State::Closing) {
                if now < self.alarm_at() {
                    return Poll::Ready(None);
                }
                self.ask_for_bookmark(now);
            }
        }
    }

    /// Whether somebody who reads nothing has nothing to come back for: what was to come next is no longer held, its time
    /// is over, or it still is in its initial state, for which it would hold a snapshot.
    pub fn is_not_worth_waiting_for(&self) -> bool {
        let has_place = self.watcher.as_ref().is_some_and(Watcher::has_place);
        !has_place || !matches!(self.state, State::Open | State::Closing) || self.clock.now() >= self.deadline
    }

    /// Ends one that was not worth waiting for.
    pub fn give_up(self) {
        if let Some(watcher) = self.watcher {
            watcher.give_up();
        }
    }

    /// Whether it was asked for the state and for its end.
    pub fn is_watch_list(&self) -> bool {
        self.plan.end_bookmark && self.is_initial()
    }

    /// Whether its initial state may come in blocks, for a sink that takes them.
    pub fn has_blocks(&self) -> bool {
        self.presenter.shows_bodies() && self.watcher.as_ref().is_some_and(Watcher::has_blocks)
    }

    /// Whether there is initial state to be sent yet.
    pub fn is_initial(&self) -> bool {
        self.watcher.as_ref().is_some_and(Watcher::is_initial)
    }

    /// Appends the frames that there are now; whether there was one. Pending when there was none yet, and it has looked for
    /// one long enough: it goes on when others had their turn.
    fn poll_fill(
        &mut self,
        now: Instant,
        chunk_bytes: usize,
        out: &mut impl FrameSink,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        let mut bookmark_due = self.is_bookmark_due(now);
        let Some(watcher) = &mut self.watcher else { return Poll::Ready(false) };
        let (from, clock) = (out.frame_bytes(), &self.clock);
        let stamp = LazyCell::new(|| timestamp(clock));
        let (mut sent_bookmark, mut budget, mut is_through) = (false, Budget::new(Interest::LOOKS_MAX), true);
        while out.frame_bytes() < from + chunk_bytes {
            // Where events never cease, it is sent between them.
            if bookmark_due
                && out.frame_bytes() > from
                && let Some(revision) = watcher.passed()
            {
                out.own(|own| self.presenter.bookmark(revision, false, *stamp, own));
                bookmark_due = false;
                sent_bookmark = true;
            }
            if Frames::put_again(watcher, &self.presenter, out) {
                if watcher.is_at_end() {
                    break;
                }
                continue;
            }
            if out.takes_blocks()
                && let Some(objects) = watcher.next_block(&mut budget)
            {
                let scratch = self.scratch.get_or_insert_default();
                self.presenter.initial_block(&objects, scratch, || *stamp, out);
                continue;
            }
            let at = watcher.position();
            let room = (from + chunk_bytes).saturating_sub(out.frame_bytes());
            let Poll::Ready(step) = watcher.next_within(room, &mut budget) else {
                is_through = false;
                break;
            };
            match step {
                Some(WatchStep::Event { object, .. }) if watcher.is_initial() => {
                    if out.frame_bytes() == from {
                        // There are more, and the last one goes beyond.
                        out.reserve(chunk_bytes + chunk_bytes / 4);
                    }
                    let scratch = self.scratch.get_or_insert_default();
                    out.own(|own| self.presenter.initial(&object, scratch, || *stamp, own));
                }
                Some(WatchStep::Event { kind, object, revision }) => {
                    let frame =
                        self.frames.put(&mut self.presenter, (kind, &object, revision), || *stamp, out);
                    // A revision is pulled whole: it has no other event.
                    if let Some((at, frame)) = at.zip(frame)
                        && watcher.position() == Some(at.after())
                    {
                        Frames::keep(at, &self.presenter, revision, frame);
                    }
                }
                Some(WatchStep::InitialEventsEnd(revision)) => {
                    self.scratch = None;
                    if self.plan.end_bookmark {
                        out.own(|own| self.presenter.bookmark(revision, true, *stamp, own));
                    }
                }
                Some(WatchStep::Expired { asked, oldest }) => {
                    let status = errors::cache(&ReadError::Expired { asked, oldest });
                    self.state = State::Failing(Box::new(status));
                    break;
                }
                Some(WatchStep::Closed) => {
                    // There is nothing more, and the others' turn may be before this one's.
                    self.deadline = (self.clock.now() + self.presenter.turn()).min(self.deadline);
                    self.watcher = None;
                    break;
                }
                None => break,
            }
        }
        if sent_bookmark && matches!(self.state, State::Open) {
            self.schedule_bookmark();
        }
        match out.frame_bytes() > from {
            false if !is_through => let_others_work(cx),
            any => Poll::Ready(any),
        }
    }

    /// Waits for an event, for what moves the end, for a bookmark that is due, or for the end: until
    /// [`WatchBody::now`] may have something, which it makes only when it is asked. Cancel-safe.
    pub async fn ready(&mut self) {
        poll_fn(|cx| self.poll_ready(cx)).await;
    }

    /// The same for who waits for other things as well.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !matches!(self.state, State::Open | State::Closing) || self.proof.is_some() {
            return Poll::Ready(());
        }
        // On a busy resource of which nothing matches there is always something to look at.
        if let Some(watcher) = &mut self.watcher {
            if watcher.poll_ready(cx).is_ready() {
                return Poll::Ready(());
            }
            if let Some(retiring) = &mut self.retiring
                && let Poll::Ready(later) = retiring.as_mut().poll(cx)
            {
                self.retiring = None;
                self.deadline = (self.clock.now() + later).min(self.deadline);
                return Poll::Ready(());
            }
        }
        let alarm = self.alarm_at();
        self.alarm.poll_rings(alarm, cx)
    }

    fn is_bookmark_due(&self, now: Instant) -> bool {
        self.has_bookmarks() && now >= self.bookmark_at
    }

    /// Whether there is one to come yet.
    fn has_bookmarks(&self) -> bool {
        self.watcher.is_some() && self.plan.bookmarks && matches!(self.state, State::Open)
    }

    /// When there is something to do though nothing happens: the end, or a bookmark before it.
    fn alarm_at(&self) -> Instant {
        if self.has_bookmarks() { self.bookmark_at.min(self.deadline) } else { self.deadline }
    }

    /// Asks the store what is current, for a bookmark that is due.
    fn ask_for_bookmark(&mut self, now: Instant) {
        let deadline = (now + BOOKMARK_PROOF).min(self.deadline);
        self.proof = self.watcher.as_ref().map(|watcher| Proof::Asked(Box::pin(watcher.settled(deadline))));
    }

    /// Says how far it is, once that is proved, unless events come first.
    fn poll_bookmark(&mut self, out: &mut impl FrameSink, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(Proof::Asked(settled)) = &mut self.proof {
            ready!(settled.as_mut().poll(cx));
            self.proof = Some(Proof::Given);
        }
        let revision = match &mut self.watcher {
            Some(watcher) => watcher.bookmark_within(&mut Budget::new(Interest::LOOKS_MAX)),
            None => Poll::Ready(None),
        };
        let Poll::Ready(revision) = revision else { return let_others_work(cx) };
        self.proof = None;
        match revision {
            Some(revision) => {
                // One that begins in the future is silent until then.
                let is_early = self.plan.start == WatchStart::After(revision)
                    && self.watcher.as_ref().is_some_and(Watcher::is_ahead);
                if !is_early {
                    let now = timestamp(&self.clock);
                    out.own(|own| self.presenter.bookmark(revision, false, now, own));
                }
                self.schedule_bookmark();
            }
            // Events came first; they are sent, and then it is tried again.
            None => self.bookmark_at = self.clock.now() + BOOKMARK_RETRY,
        }
        Poll::Ready(())
    }

    fn schedule_bookmark(&mut self) {
        let now = self.clock.now();
        let last = self.deadline - BOOKMARK_BEFORE_END.min(self.plan.timeout);
        if now >= last {
            self.state = State::Closing;
        } else {
            self.bookmark_at = (now + BOOKMARK_PERIOD).min(last);
        }
    }
}

/// Pending until others had their turn.
fn let_others_work<T>(cx: &Context<'_>) -> Poll<T> {
    cx.waker().wake_by_ref();
    Poll::Pending
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::{CreateOptions, Query};
    use serde_json::json;

    use super::*;
    use crate::frames::Batch;
    use crate::present::As;
    use crate::request::{Body, Target};
    use crate::tests::config_maps;

    #[tokio::test]
    async fn it_is_known_before_whether_a_watch_begins_with_state() {
        let (registry, target) = config_maps(None).await;
        for (query, want) in [
            ("watch=1", true),
            ("watch=1&resourceVersion=0", true),
            ("watch=1&resourceVersion=1", false),
            ("watch=1&timeoutSeconds=-1", false),
            ("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", true),
            ("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", false),
            ("watch=1&resourceVersion=none", false),
        ] {
            let options = ListOptions::from_query(&Query::parse(query)).expect("options");
            assert_eq!(registry.begins_with_state(&target, &options, false), want, "{query}");
            if let Ok(body) = registry.watch(&target, &options, As::Object, false).await {
                assert_eq!(body.is_initial(), want, "{query}");
            }
        }
    }

    /// Of watchers at one place the first makes the frame, and those who are shown the same on the same thread are given it again.
    #[tokio::test]
    async fn watchers_at_one_place_are_sent_the_same_bytes() {
        let (registry, all) = config_maps(Some("default")).await;
        let make = async |name: &str, bytes: usize| {
            let body = json!({"metadata": {"name": name}, "data": {"text": "x".repeat(bytes)}});
            let made = registry.create(&all, &Body::Value(body), &CreateOptions::default()).await;
            made.expect("creates");
        };
        let everywhere = Target { namespace: None, ..all.clone() };
        let watch = async |shown, query: &str| {
            let options = ListOptions::from_query(&Query::parse(query)).expect("options");
            registry.watch(&everywhere, &options, shown, false).await.expect("watches")
        };
        let now = "watch=1&timeoutSeconds=600&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
        make("before", 4_000).await;
        let mut same =
            [watch(As::Object, now).await, watch(As::Object, now).await, watch(As::Object, now).await];
        let mut metadata = watch(As::PartialMetadata, now).await;
        let mut selected = watch(As::Object, &format!("{now}&labelSelector=!absent")).await;
        let mut none = watch(As::Object, &format!("{now}&labelSelector=absent")).await;
        let mut late = watch(As::Object, now).await;
        let (mut texts, mut late_text) = (Vec::new(), Vec::new());
        for body in &mut same {
            // They look for their place.
            assert!(body.now(1 << 20, &mut Batch::default()).await.is_none());
        }
        for (number, bytes) in [4_000, 100, 100_000, 5_000].into_iter().enumerate() {
            make(&format!("made-{number}"), bytes).await;
            let mut sent = Vec::new();
            for body in &mut same {
                let mut batch = Batch::default();
                assert!(matches!(body.next(1 << 20, &mut batch).await, Flow::Frames));
                sent.push(batch.whole());
                assert!(body.now(1 << 20, &mut Batch::default()).await.is_none(), "it is sent once");
            }
            assert!(sent.iter().all(|one| *one == sent[0]));
            assert_eq!(sent[1].as_ptr() == sent[0].as_ptr(), bytes >= 1_024, "shared from 1 KiB on");
            let mut others = [Vec::new(), Vec::new()];
            assert!(matches!(metadata.next(1, &mut others[0]).await, Flow::Frames));
            assert!(matches!(selected.next(1, &mut others[1]).await, Flow::Frames));
            assert!(others[0].len() < 1_000 && others[1] == sent[0]);
            assert!(none.now(1, &mut Vec::new()).await.is_none());
            texts.extend_from_slice(&sent[0]);
        }
        while late_text.len() < texts.len() {
            assert!(matches!(late.next(1, &mut late_text).await, Flow::Frames));
        }
        assert!(late_text == texts, "one that comes later is sent the same, in order");
    }
}
