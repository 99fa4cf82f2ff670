//! The objects of a kind of another server, followed: listed, then watched, as metadata alone.
//!
//! In: what the reflector of `client` decides; the way to the server, as it is now. Out: notices. Whoever
//! asks for them drives it, so that what they have no room for stays in the connection; dropped, it ends.
//! Never: decides when to list, watch or wait; says that something is gone before a list is whole; holds more
//! than an object that is not whole, and of each one what [`HeardObjects`] has.

mod cut;
mod share;
#[cfg(test)]
mod tests;
mod way;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use forebay_api::{BoxFuture, FollowElsewhere, KindElsewhere, NoticeElsewhere, ObjectElsewhere};
use forebay_apimachinery::Revision;
use forebay_client::reflector::{Effect, Fault, Input, Reflector, Report};
use forebay_client::wire::{Frame, FrameKind, ObjectText, Part, decimal};
use forebay_client::{Ask, Collection};
use forebay_rt::{Alarm, Clock, Duration, Ear, Instant, Random};

use crate::heard::HeardObjects;
use crate::item;
use crate::limits::{FOLLOWED_ITEM_BYTES_MAX, FOLLOWED_OBJECTS_MAX, FOLLOWED_TURN};
use cut::{Cut, Cutting};
pub use share::{HeldBytes, HeldShare};
use way::{AskedElsewhere, Pieces};
pub use way::{OverProxy, WayElsewhere};

/// See the module's doc.
pub struct FollowedObjects<W> {
    way: W,
    clock: Clock,
    of: Arc<KindElsewhere>,
    collection: Collection,
    reflector: Reflector,
    // Since when the reflector's times are.
    began: Instant,
    wake_at: Option<Duration>,
    alarm: Alarm,
    // The alarm has rung, and what had come by then was looked at once.
    is_late: bool,
    has_begun: bool,
    under_way: UnderWay,
    // The object of the input that is being taken.
    current: Option<Current>,
    heard: HeardObjects,
    share: HeldShare,
    // What is to be told; of bounded length, as it is filled when it is empty.
    out: VecDeque<NoticeElsewhere>,
    // Hears that something else is known of other servers.
    ear: Ear,
}

enum Current {
    Put(ObjectElsewhere),
    Gone(Box<str>),
}

enum UnderWay {
    Nothing,
    Asking { request: BoxFuture<'static, AskedElsewhere>, is_watch: bool },
    Answer(Answer),
}

/// A body that comes in.
struct Answer {
    pieces: Box<dyn Pieces>,
    cut: Cut,
    // Bytes that came since something was whole.
    unfinished: usize,
    // It was not told yet that bytes came and nothing became whole with them.
    has_new_bytes: bool,
}

impl<W: WayElsewhere> FollowedObjects<W> {
    /// - `share`: what it may hold.
    pub fn new(
        way: W,
        (clock, random): (Clock, Arc<Random>),
        share: HeldShare,
        of: Arc<KindElsewhere>,
    ) -> FollowedObjects<W> {
        FollowedObjects {
            collection: Collection::all(&of.group, &of.version, &of.resource),
            reflector: Reflector::new(random),
            began: clock.now(),
            ear: way.ear(),
            way,
            clock,
            of,
            wake_at: None,
            alarm: Alarm::default(),
            is_late: false,
            has_begun: false,
            under_way: UnderWay::Nothing,
            current: None,
            heard: HeardObjects::default(),
            share,
            out: VecDeque::new(),
        }
    }

    /// Gives the reflector `input` and does what it says.
    fn step(&mut self, input: Input) {
        let now = self.clock.now().duration_since(self.began);
        for effect in self.reflector.step(input, now) {
            match effect {
                Effect::Ask(ask) => self.ask(&ask),
                Effect::HangUp => self.under_way = UnderWay::Nothing,
                Effect::NewConnection => self.way.renew(),
                Effect::WakeAt(at) => self.wake_at = Some(at),
                Effect::Take => match self.current.take() {
                    Some(Current::Put(object)) => self.out.extend(self.heard.put(object)),
                    Some(Current::Gone(uid)) => self.out.push_back(self.heard.gone(uid)),
                    None => {}
                },
                Effect::Skip => self.current = None,
                Effect::BeginState { .. } => self.heard.begin(),
                Effect::EndState { .. } => self.out.extend(self.heard.end()),
                Effect::LetGo => self.out.push_back(self.heard.let_go()),
                Effect::Progress(_) => {}
                Effect::Report(report) => self.report(&report),
            }
        }
        self.current = None;
    }

    fn report(&self, report: &Report) {
        let (group, resource) = (&self.of.group, &self.of.resource);
        match report {
            Report::Failing(why) => {
                tracing::info!(%group, %resource, ?why, "what another server keeps cannot be followed now");
            }
            report => tracing::debug!(%group, %resource, ?report, "what another server keeps"),
        }
    }

    fn ask(&mut self, ask: &Ask) {
        let request = self.way.ask(ask.target(&self.collection), ask.is_watch());
        self.under_way = UnderWay::Asking { request, is_watch: ask.is_watch() };
    }

    /// One thing that there is to be done now.
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.has_begun {
            self.has_begun = true;
            self.step(Input::Start { from: None });
            return Poll::Ready(());
        }
        if self.ear.poll_rung(cx).is_ready() {
            if self.way.is_there() {
                self.step(Input::ServerAnswers);
            }
            return Poll::Ready(());
        }
        if let Some(at) = self.wake_at
            && self.alarm.poll_rings(self.began + at, cx).is_ready()
        {
            // What came while nobody looked came in time.
            if !std::mem::replace(&mut self.is_late, true) && self.poll_answer(cx).is_ready() {
                return Poll::Ready(());
            }
            self.is_late = false;
            self.wake_at = None;
            self.step(Input::Timer);
            return Poll::Ready(());
        }
        let UnderWay::Asking { request, is_watch } = &mut self.under_way else { return self.poll_answer(cx) };
        let is_watch = *is_watch;
        let asked = ready!(request.as_mut().poll(cx));
        self.under_way = UnderWay::Nothing;
        match asked {
            AskedElsewhere::Answer(pieces) => {
                let cut = Cut::new(is_watch);
                self.under_way =
                    UnderWay::Answer(Answer { pieces, cut, unfinished: 0, has_new_bytes: false });
                self.step(Input::Opened);
            }
            AskedElsewhere::Refused(said) => self.step(Input::Refused(said)),
            AskedElsewhere::Failed(fault) => self.step(Input::Failed(fault)),
        }
        Poll::Ready(())
    }

    /// What the answer has next.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let UnderWay::Answer(answer) = &mut self.under_way else { return Poll::Pending };
        match answer.cut.next() {
            Ok(Some(next)) => {
                answer.unfinished = 0;
                self.cut(next);
                self.stay_within(0);
                return Poll::Ready(());
            }
            Ok(None) => {}
            Err(_) => {
                self.cut(Cutting::Over(Input::Garbled));
                return Poll::Ready(());
            }
        }
        if std::mem::take(&mut answer.has_new_bytes) && answer.cut.is_within() {
            self.step(Input::HalfFrame);
            return Poll::Ready(());
        }
        let input = match ready!(answer.pieces.poll_piece(cx)) {
            Ok(Some(piece)) if answer.unfinished + piece.len() <= FOLLOWED_ITEM_BYTES_MAX => {
                answer.cut.push(&piece);
                answer.has_new_bytes = true;
                answer.unfinished += piece.len();
                let unfinished = answer.unfinished;
                self.stay_within(unfinished);
                return Poll::Ready(());
            }
            Ok(Some(_)) => Input::Garbled,
            Ok(None) => answer.cut.ended(),
            Err(why) => {
                tracing::debug!(%why, resource = %self.of.resource, "an answer broke off");
                Input::Failed(Fault::CutShort)
            }
        };
        self.cut(Cutting::Over(input));
        Poll::Ready(())
    }

    fn cut(&mut self, next: Cutting) {
        let input = match next {
            Cutting::Frame(frame) => {
                if matches!(frame.kind, FrameKind::Modified | FrameKind::Deleted) {
                    self.step(Input::PastState);
                }
                self.frame(frame)
            }
            Cutting::Part(part) => match self.part(part) {
                Some(input) => input,
                None => return,
            },
            Cutting::Over(input) => {
                // The reflector hangs up by itself on what cannot be read.
                if !matches!(input, Input::Garbled) {
                    self.under_way = UnderWay::Nothing;
                }
                input
            }
        };
        if matches!(input, Input::Page { .. } | Input::Refused(_)) {
            self.under_way = UnderWay::Nothing;
        }
        self.step(input);
    }

    fn frame(&mut self, Frame { kind, object }: Frame) -> Input {
        if let FrameKind::Error(status) = kind {
            return Input::StreamError(status.refusal(None));
        }
        let Some(revision) = object.revision().and_then(Revision::new) else { return Input::Garbled };
        match kind {
            FrameKind::Bookmark { initial_end } => Input::Bookmark { revision, ends_state: initial_end },
            FrameKind::Deleted => {
                self.current = Some(Current::Gone((&*object.uid()).into()));
                Input::Event { revision }
            }
            _ => {
                self.current = self.read(&object);
                Input::Event { revision }
            }
        }
    }

    fn part(&mut self, part: Part) -> Option<Input> {
        let revision = |text: Option<&str>| text.and_then(decimal).and_then(Revision::new);
        match part {
            Part::Head(meta) => Some(Input::PageBegan { revision: revision(meta.revision.as_deref())? }),
            Part::Item(object) => {
                self.current = self.read(&object);
                Some(Input::Item)
            }
            Part::End(meta) => Some(match revision(meta.revision.as_deref()) {
                Some(revision) => Input::Page { revision, next: meta.next.filter(|next| !next.is_empty()) },
                None => Input::Garbled,
            }),
            Part::Status(status) => Some(Input::Refused(status.refusal(None))),
        }
    }

    /// `None`: it is left alone.
    fn read(&self, object: &ObjectText) -> Option<Current> {
        let read = item::read(object.bytes(), self.of.is_namespaced);
        let left_alone = |why: &String| {
            let (name, resource) = (object.name(), &self.of.resource);
            tracing::debug!(%name, %resource, why, "an object of another server is not followed");
        };
        read.inspect_err(left_alone).ok().map(Current::Put)
    }

    /// Lets go of everything where there is too much of it.
    ///
    /// - `unfinished`: bytes that have come of what is not whole.
    fn stay_within(&mut self, unfinished: usize) {
        let fits = self.share.takes(self.heard.bytes() + unfinished);
        if fits && self.heard.len() <= FOLLOWED_OBJECTS_MAX {
            return;
        }
        tracing::warn!(
            group = %self.of.group,
            resource = %self.of.resource,
            objects = self.heard.len(),
            "another server keeps more objects than are followed: none of them is collected"
        );
        self.step(Input::OverLimit);
        self.share.takes(self.heard.bytes());
    }
}

impl<W: WayElsewhere> FollowElsewhere for FollowedObjects<W> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<NoticeElsewhere> {
        for _ in 0..FOLLOWED_TURN {
            if let Some(notice) = self.out.pop_front() {
                return Poll::Ready(notice);
            }
            if self.poll_once(cx).is_pending() {
                return Poll::Pending;
            }
        }
        // There may be more; others have their turn first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
