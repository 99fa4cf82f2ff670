//! Does what the reflector decides: makes its requests, cuts their answers into objects, and tells the cache.
//!
//! In: a collection, a client. Out: [`Told`]s, in order; what became of it in [`Progress`]. Owner: the
//! cache's task, which polls it, so that what the cache has no room for stays in the connection. Never:
//! decides what to ask for, holds more than one object that is not whole and what was cut of one piece.

mod answer;
mod give_way;
mod packed;

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use forebay_apimachinery::Revision;
use forebay_backend::{BoxFuture, Change, FeedError, GiveWay, Tell, Told};
use forebay_client::reflector::{Effect, Fault, Input, Reflector, Refusal};
use forebay_client::wire::{Frame, FrameKind, Inflate, Part, Runs, TypeMeta, decimal};
use forebay_client::{Ask, Collection};
use forebay_connector::{Rank, WaitedFor, fault_of};
use forebay_rt::{Alarm, Duration, Ear, Instant, Random};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, USER_AGENT};
use http::{Request, Response};
use kube::client::Body;

use crate::ceiling::Share;
use crate::change::{Of, Stored};
use crate::encoding::{Came, Frames, Items, Object, Spoken};
use crate::limits::{self, WOKEN_SPREAD};
use crate::progress::Progress;
use crate::refusal::refusal;
use crate::saved::{Loaded, Place};
use crate::spans::Spans;
use crate::way::Way;
use answer::{Answer, Cut, Cutting};
use tokio::sync::mpsc;

/// See the module's doc.
pub(crate) struct Driver {
    way: Way,
    collection: Collection,
    progress: Arc<Progress>,
    reflector: Reflector,
    // Since when the reflector's times are.
    began: Instant,
    saved: Saved,
    wake_at: Option<Duration>,
    alarm: Alarm,
    // The alarm has rung, and what had come by then was looked at once.
    is_late: bool,
    under_way: UnderWay,
    // The object of the input that is being taken.
    current: Option<Change>,
    stored: Stored,
    of: Of,
    // What it may hold, where there is a limit.
    share: Option<Share>,
    spans: Spans,
    // Hears that the server answers somebody after it was gone.
    ear: Ear,
    // Whether a state has begun and not ended.
    is_in_state: bool,
    // Known to no server.
    mark: u64,
    // The type of a list's items, which do not say it themselves.
    items: TypeMeta,
    spoken: Spoken,
}

/// Who says what type an object is of.
enum Said {
    ByItself,
    ByTheList,
}

/// What there is to begin with.
enum Saved {
    /// It may be on disk.
    At(Option<Arc<Place>>),
    Loading(mpsc::Receiver<Loaded>),
    /// It has begun.
    Past,
}

enum UnderWay {
    Nothing,
    Asking { request: BoxFuture<'static, Asked>, ask: Ask },
    Answer(Box<Answer>),
}

/// The head of an answer, or what it is instead.
enum Asked {
    Answer(Response<Body>),
    Refused(Refusal),
    Failed(Fault),
}

impl Driver {
    /// - `saved`: where a state may be to begin with.
    pub(crate) fn new(
        way: Way,
        collection: Collection,
        progress: Arc<Progress>,
        random: Random,
        saved: Option<Arc<Place>>,
        stored: Stored,
        share: Option<Share>,
    ) -> Driver {
        Driver {
            // What was too much before the cache had to begin anew is so afterwards.
            of: if progress.is_partial() { Of::Part } else { Of::Whole },
            spans: Spans::new(&collection, progress.clone(), way.clock.clone()),
            ear: way.reach.ear(),
            began: way.clock.now(),
            spoken: Spoken::new(way.encoding, &collection),
            way,
            collection,
            progress,
            mark: random.next_u64(),
            reflector: Reflector::new(Arc::new(random)),
            saved: Saved::At(saved),
            wake_at: None,
            alarm: Alarm::default(),
            is_late: false,
            under_way: UnderWay::Nothing,
            current: None,
            is_in_state: false,
            items: TypeMeta::default(),
            stored,
            share,
        }
    }

    fn now(&self) -> Duration {
        self.way.clock.now().duration_since(self.began)
    }

    /// Gives the reflector `input` and does what it says.
    fn step(&mut self, input: Input, told: &mut Vec<Told>) {
        let now = self.now();
        self.spans.comes(&input);
        let ends_answer = ends_answer(&input);
        // Others have the same cause to ask now.
        let ask_within = if let Input::ServerAnswers = input { WOKEN_SPREAD } else { Duration::ZERO };
        for effect in self.reflector.step(input, now) {
            match effect {
                Effect::Ask(ask) => self.ask(ask, ask_within),
                Effect::HangUp => {
                    self.spans.over("left");
                    self.under_way = UnderWay::Nothing;
                }
                Effect::NewConnection => {
                    if let Some(pool) = &self.way.pool {
                        pool.renew();
                    }
                }
                Effect::WakeAt(at) => self.wake_at = Some(at),
                Effect::Take => {
                    self.progress.took(self.current.as_ref());
                    told.extend(self.current.take().map(Told::Change));
                }
                Effect::Skip => self.current = None,
                Effect::BeginState { why, may_go_back } => {
                    self.is_in_state = true;
                    self.spans.state_begins(why);
                    told.push(Told::StateBegins { may_go_back });
                }
                // It is the answer to what was said of what is held.
                Effect::LetGo => {
                    self.is_in_state = false;
                    self.note_let_go();
                }
                Effect::EndState { revision } => {
                    self.is_in_state = false;
                    self.progress.refuses(None);
                    self.spans.state_ends(!ends_answer);
                    told.push(Told::StateEnds(revision));
                }
                Effect::Progress(revision) => told.push(Told::Progress(revision)),
                Effect::Report(report) => {
                    self.spans.life().in_scope(|| self.progress.report(&self.collection, report));
                }
            }
        }
        if ends_answer && matches!(self.under_way, UnderWay::Nothing) {
            self.spans.over("left");
        }
        self.current = None;
        self.progress.fares(self.reflector.health(), self.began);
    }

    fn ask(&mut self, ask: Ask, within: Duration) {
        self.progress.asked(&ask);
        self.spans.asked(&ask);
        let request = Request::get(ask.target(&self.collection));
        let request = self
            .spoken
            .headers()
            .fold(request, |request, (name, value)| request.header(name, value))
            .header(ACCEPT_ENCODING, "gzip")
            .header(USER_AGENT, &*self.way.user_agent)
            .body(Body::empty());
        let way = self.way.clone();
        let (progress, is_state) = (self.progress.clone(), !matches!(ask, Ask::Watch { .. }));
        let rank = move || Rank {
            waited_for: if progress.is_awaited() { WaitedFor::Yes } else { WaitedFor::No },
            is_state,
            bytes: progress.held_bytes(),
        };
        let request: BoxFuture<'static, Asked> = Box::pin(async move {
            let Ok(request) = request else { return Asked::Failed(Fault::Other) };
            way.throttle.acquire_within(within, rank).await;
            match way.client.send(request).await {
                Ok(answer) if answer.status().is_success() => Asked::Answer(answer),
                Ok(refused) => Asked::Refused(refusal(refused, &way).await),
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "a request failed");
                    Asked::Failed(fault_of(&error))
                }
            }
        });
        self.under_way = UnderWay::Asking { request, ask };
    }

    /// Asks for the same in another form. The reflector need not know.
    fn ask_again(&mut self, ask: Ask) {
        self.spans.over("in another form");
        self.ask(ask, Duration::ZERO);
    }

    fn opened(&mut self, answer: Response<Body>, ask: Ask, told: &mut Vec<Told>) {
        let (head, body) = answer.into_parts();
        let is_gzip = head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
        let is_protobuf = match self.spoken.came(&head.headers) {
            Came::Unknown => return self.ask_again(ask),
            came => came == Came::Protobuf,
        };
        self.progress.answered(is_protobuf);
        let cut = match ask.is_watch() {
            true => Cut::Watch(Box::new(Frames::new(is_protobuf))),
            false => Cut::List { items: Box::new(Items::new(is_protobuf)), is_paged: false },
        };
        // Where nobody waits for the next event, the whole of a run may be waited for.
        let is_in_runs = is_gzip && !is_protobuf && matches!(ask, Ask::WatchList { .. });
        let runs = is_in_runs.then(|| Box::new(Runs::new(self.mark)));
        let inflate = (is_gzip && !is_in_runs).then(Inflate::new);
        let answer = Answer { body, runs, inflate, cut, has_new_bytes: false, is_at_end: false };
        self.under_way = UnderWay::Answer(Box::new(answer));
        self.step(Input::Opened, told);
    }

    /// What the answer has next, and whether there was something.
    fn poll_answer(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<()> {
        let UnderWay::Answer(answer) = &mut self.under_way else { return Poll::Pending };
        let input = match ready!(answer.poll_cut(context, &self.progress)) {
            Cutting::Frame(frame) => {
                self.take_frame(frame, told);
                return Poll::Ready(());
            }
            Cutting::Framed(framed) => {
                self.take_framed(framed, told);
                return Poll::Ready(());
            }
            Cutting::Part(part) => match self.part(part) {
                Some(input) => input,
                None => return Poll::Ready(()),
            },
            Cutting::Half => Input::HalfFrame,
            Cutting::Over(input) => {
                self.under_way = UnderWay::Nothing;
                input
            }
        };
        if matches!(input, Input::Page { .. }) {
            self.under_way = UnderWay::Nothing;
        }
        self.step(input, told);
        Poll::Ready(())
    }

    fn take_frame(&mut self, frame: Frame<Object>, told: &mut Vec<Told>) {
        match (&frame.kind, &mut self.under_way) {
            (FrameKind::Modified | FrameKind::Deleted, _) => self.step(Input::PastState, told),
            // Events come one by one from now on.
            (FrameKind::Bookmark { initial_end: true }, UnderWay::Answer(answer)) => answer.go_on(),
            _ => {}
        }
        let input = self.frame(frame);
        self.step(input, told);
    }

    fn frame(&mut self, Frame { kind, object }: Frame<Object>) -> Input {
        let Some(revision) = object.revision() else {
            return match kind {
                FrameKind::Error(status) => Input::StreamError(status.refusal(None)),
                _ => Input::Garbled,
            };
        };
        match kind {
            FrameKind::Bookmark { initial_end } => Input::Bookmark { revision, ends_state: initial_end },
            FrameKind::Error(status) => Input::StreamError(status.refusal(None)),
            FrameKind::Deleted => {
                self.current = Some(Change { key: object.key(), revision, value: None });
                Input::Event { revision }
            }
            FrameKind::Added | FrameKind::Modified => {
                self.current = self.change(object, revision, Said::ByItself);
                self.input(Input::Event { revision })
            }
        }
    }

    /// Nothing when it cannot be read.
    fn change(&mut self, object: Object, revision: Revision, said: Said) -> Option<Change> {
        let projection = match self.of {
            Of::Whole => &self.stored.whole,
            Of::Part => &self.stored.part,
        };
        let none = TypeMeta::default();
        let of = match said {
            Said::ByItself => &none,
            Said::ByTheList => &self.items,
        };
        self.spoken.change(object, revision, of, projection, self.of)
    }

    /// `input` if its object could be read.
    fn input(&self, input: Input) -> Input {
        if self.current.is_some() { input } else { Input::Garbled }
    }

    fn part(&mut self, part: Part<Object>) -> Option<Input> {
        match part {
            Part::Head(meta) => {
                let kind = meta.kind.strip_suffix("List").unwrap_or(&meta.kind).to_owned();
                self.items = TypeMeta { kind, api_version: meta.api_version };
                let revision = meta.revision.as_deref().and_then(decimal).and_then(Revision::new)?;
                Some(Input::PageBegan { revision })
            }
            Part::Item(object) => {
                let Some(revision) = object.revision() else {
                    return Some(Input::Garbled);
                };
                self.current = self.change(object, revision, Said::ByTheList);
                Some(self.input(Input::Item))
            }
            Part::End(meta) => {
                let revision = meta.revision.as_deref().and_then(decimal).and_then(Revision::new);
                Some(match revision {
                    Some(revision) => {
                        Input::Page { revision, next: meta.next.filter(|next| !next.is_empty()) }
                    }
                    None => Input::Garbled,
                })
            }
            Part::Status(status) => Some(Input::Refused(status.refusal(None))),
        }
    }

    /// Begins: from what is on disk, or from nothing.
    fn poll_saved(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<()> {
        let from = match &mut self.saved {
            Saved::At(Some(place)) => {
                self.saved = Saved::Loading(place.load());
                told.push(Told::StateBegins { may_go_back: false });
                return Poll::Ready(());
            }
            Saved::Loading(loaded) => match ready!(loaded.poll_recv(context)) {
                Some(Loaded::Told(saved)) => {
                    told.extend(saved);
                    return Poll::Ready(());
                }
                Some(Loaded::End(revision)) => {
                    told.push(Told::StateEnds(revision));
                    Some(revision)
                }
                // A state that had begun is given up by the next.
                None => None,
            },
            Saved::At(None) | Saved::Past => None,
        };
        self.saved = Saved::Past;
        self.step(Input::Start { from }, told);
        Poll::Ready(())
    }

    /// One thing that there is to be done now.
    fn poll_once(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<()> {
        if !matches!(self.saved, Saved::Past) {
            return self.poll_saved(context, told);
        }
        if let Poll::Ready(true) = self.ear.poll_rung(context) {
            self.step(Input::ServerAnswers, told);
            return Poll::Ready(());
        }
        if let Some(at) = self.wake_at
            && self.alarm.poll_rings(self.began + at, context).is_ready()
        {
            // What came while nobody looked, because the cache had no room for more, came in time.
            if !std::mem::replace(&mut self.is_late, true) && self.poll_answer(context, told).is_ready() {
                return Poll::Ready(());
            }
            self.is_late = false;
            self.wake_at = None;
            self.step(Input::Timer, told);
            return Poll::Ready(());
        }
        let UnderWay::Asking { request, ask } = &mut self.under_way else {
            return self.poll_answer(context, told);
        };
        match ready!(request.as_mut().poll(context)) {
            Asked::Answer(answer) => {
                let ask = ask.clone();
                self.way.reach.answered();
                self.opened(answer, ask, told);
            }
            Asked::Refused(said) if self.spoken.is_refused(said.code) => {
                let again = ask.clone();
                self.ask_again(again);
            }
            Asked::Refused(said) => {
                self.under_way = UnderWay::Nothing;
                self.step(Input::Refused(said), told);
            }
            Asked::Failed(fault) => {
                self.under_way = UnderWay::Nothing;
                self.progress.failed(fault);
                self.way.reach.failed();
                self.step(Input::Failed(fault), told);
            }
        }
        Poll::Ready(())
    }
}

impl Tell for Driver {
    fn poll_told(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<Result<(), FeedError>> {
        let (mut bytes, mut seen) = (0, told.len());
        if self.poll_lost(context) {
            return Poll::Ready(Ok(()));
        }
        loop {
            if self.poll_once(context, told).is_pending() {
                return if told.is_empty() { Poll::Pending } else { Poll::Ready(Ok(())) };
            }
            bytes += told[seen..].iter().map(cost).sum::<usize>();
            seen = told.len();
            if bytes >= limits::TOLD_BYTES_MAX {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn held(&mut self, bytes: usize) -> Option<GiveWay> {
        self.note_held(bytes)
    }
}

/// Whether nothing more of the request is told.
fn ends_answer(input: &Input) -> bool {
    matches!(input, Input::Refused(_) | Input::Failed(_) | Input::Ended | Input::Page { .. })
}

/// What `told` holds.
fn cost(told: &Told) -> usize {
    match told {
        Told::Change(Change { value: Some(value), .. }) => value.len(),
        Told::Packed(packed) => packed.plain_len(),
        _ => 0,
    }
}
