//! Does what the reflector decides: makes its requests, cuts their answers into objects, and tells the cache.
//!
//! In: a collection, a client. Out: [`Told`]s, in order; what became of it in [`Progress`]. Owner: the cache's task, which polls it,
//! so that what the cache has no room for stays in the connection. Never: decides what to ask for, holds more than one object that is
//! not whole and what was cut of one piece.

mod packed;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_apimachinery::object::Form;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{BoxFuture, Change, FeedError, Tell, Told};
use forebay_client::reflector::{Effect, Fault, Input, Reflector, Refusal};
use forebay_client::wire::{
    Frame, FrameAt, FrameKind, Inflate, ListItems, Next, ObjectText, Part, Projection, Runs, StatusFrame,
    TypeMeta, WatchFrames, WireError, decimal,
};
use forebay_client::{Ask, Collection};
use forebay_connector::{Pool, Throttle, fault_of};
use forebay_rt::{Alarm, Clock, Duration, Instant, Random};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, Response};
use http_body::Body as _;
use kube::client::Body;

use crate::limits;
use crate::progress::Progress;
use crate::saved::{Loaded, Place};
use packed::Framed;
use tokio::sync::mpsc;

/// How a collection is reached.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) client: kube::Client,
    /// That of the client, where it is one of ours.
    pub(crate) pool: Option<Pool>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) user_agent: Arc<str>,
    pub(crate) clock: Clock,
}

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
    under_way: UnderWay,
    // The object of the input that is being taken.
    current: Option<Change>,
    // Whether a state has begun and not ended.
    is_in_state: bool,
    // Known to no server.
    mark: u64,
    projection: Arc<Projection>,
    // The type of a list's items, which do not say it themselves.
    items: TypeMeta,
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

/// A body that comes in.
struct Answer {
    body: Body,
    // While a state comes in gzip, and it comes in runs.
    runs: Option<Box<Runs>>,
    inflate: Option<Inflate>,
    cut: Cut,
    is_at_end: bool,
}

enum Cut {
    Watch(Box<WatchFrames>),
    List { items: Box<ListItems>, is_paged: bool },
}

impl Driver {
    /// - `saved`: where a state may be to begin with.
    /// - `projection`: what is stored of an object.
    pub(crate) fn new(
        way: Way,
        collection: Collection,
        progress: Arc<Progress>,
        random: Random,
        saved: Option<Arc<Place>>,
        projection: Arc<Projection>,
    ) -> Driver {
        Driver {
            began: way.clock.now(),
            way,
            collection,
            progress,
            mark: random.next_u64(),
            reflector: Reflector::new(Arc::new(random)),
            saved: Saved::At(saved),
            wake_at: None,
            alarm: Alarm::default(),
            under_way: UnderWay::Nothing,
            current: None,
            is_in_state: false,
            items: TypeMeta::default(),
            projection,
        }
    }

    fn now(&self) -> Duration {
        self.way.clock.now().duration_since(self.began)
    }

    /// Gives the reflector `input` and does what it says.
    fn step(&mut self, input: Input, told: &mut Vec<Told>) {
        let now = self.now();
        for effect in self.reflector.step(input, now) {
            match effect {
                Effect::Ask(ask) => self.ask(&ask),
                Effect::HangUp => self.under_way = UnderWay::Nothing,
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
                Effect::BeginState { may_go_back, .. } => {
                    self.is_in_state = true;
                    told.push(Told::StateBegins { may_go_back });
                }
                Effect::EndState { revision } => {
                    self.is_in_state = false;
                    told.push(Told::StateEnds(revision));
                }
                Effect::Progress(revision) => told.push(Told::Progress(revision)),
                Effect::Report(report) => self.progress.report(&self.collection, report),
            }
        }
        self.current = None;
        self.progress.fares(self.reflector.health(), self.began);
    }

    fn ask(&mut self, ask: &Ask) {
        self.progress.asked(ask);
        let request = Request::get(ask.target(&self.collection))
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, "gzip")
            .header(USER_AGENT, &*self.way.user_agent)
            .body(Body::empty());
        let way = self.way.clone();
        let request: BoxFuture<'static, Asked> = Box::pin(async move {
            let Ok(request) = request else { return Asked::Failed(Fault::Other) };
            way.throttle.acquire().await;
            match way.client.send(request).await {
                Ok(answer) if answer.status().is_success() => Asked::Answer(answer),
                Ok(refused) => Asked::Refused(refusal(refused, &way).await),
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "a request failed");
                    Asked::Failed(fault_of(&error))
                }
            }
        });
        self.under_way = UnderWay::Asking { request, ask: ask.clone() };
    }

    fn opened(&mut self, answer: Response<Body>, ask: &Ask, told: &mut Vec<Told>) {
        let (head, body) = answer.into_parts();
        let is_gzip = head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
        let cut = match ask.is_watch() {
            true => Cut::Watch(Box::default()),
            false => Cut::List { items: Box::default(), is_paged: false },
        };
        // Where nobody waits for the next event, the whole of a run may be waited for.
        let is_state = matches!(ask, Ask::WatchList { .. });
        let runs = (is_gzip && is_state).then(|| Box::new(Runs::new(self.mark)));
        let inflate = (is_gzip && !is_state).then(Inflate::new);
        self.under_way = UnderWay::Answer(Box::new(Answer { body, runs, inflate, cut, is_at_end: false }));
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

    fn take_frame(&mut self, frame: Frame, told: &mut Vec<Told>) {
        match (&frame.kind, &mut self.under_way) {
            (FrameKind::Modified | FrameKind::Deleted, _) => self.step(Input::PastState, told),
            // Events come one by one from now on.
            (FrameKind::Bookmark { initial_end: true }, UnderWay::Answer(answer)) => answer.go_on(),
            _ => {}
        }
        let input = self.frame(frame);
        self.step(input, told);
    }

    fn frame(&mut self, Frame { kind, object }: Frame) -> Input {
        let Some(revision) = object.revision().and_then(Revision::new) else {
            return match kind {
                FrameKind::Error(status) => Input::StreamError(said(status, None)),
                _ => Input::Garbled,
            };
        };
        match kind {
            FrameKind::Bookmark { initial_end } => Input::Bookmark { revision, ends_state: initial_end },
            FrameKind::Error(status) => Input::StreamError(said(status, None)),
            FrameKind::Deleted => {
                let key = key_of(&object);
                self.current = Some(Change { key, revision, value: None });
                Input::Event { revision }
            }
            FrameKind::Added | FrameKind::Modified => {
                self.current = change(object, revision, &TypeMeta::default(), &self.projection).ok();
                self.input(Input::Event { revision })
            }
        }
    }

    /// `input` if its object could be read.
    fn input(&self, input: Input) -> Input {
        if self.current.is_some() { input } else { Input::Garbled }
    }

    fn part(&mut self, part: Part) -> Option<Input> {
        match part {
            Part::Head(meta) => {
                let kind = meta.kind.strip_suffix("List").unwrap_or(&meta.kind).to_owned();
                self.items = TypeMeta { kind, api_version: meta.api_version };
                let revision = meta.revision.as_deref().and_then(decimal).and_then(Revision::new)?;
                Some(Input::PageBegan { revision })
            }
            Part::Item(object) => {
                let Some(revision) = object.revision().and_then(Revision::new) else {
                    return Some(Input::Garbled);
                };
                self.current = change(object, revision, &self.items, &self.projection).ok();
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
            Part::Status(status) => Some(Input::Refused(said(status, None))),
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
                Some(Loaded::Changes(changes)) => {
                    told.extend(changes.into_iter().map(Told::Change));
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
        if let Some(at) = self.wake_at
            && self.alarm.poll_rings(self.began + at, context).is_ready()
        {
            self.wake_at = None;
            self.step(Input::Timer, told);
            return Poll::Ready(());
        }
        let UnderWay::Asking { request, ask } = &mut self.under_way else {
            return self.poll_answer(context, told);
        };
        let asked = ready!(request.as_mut().poll(context));
        match asked {
            Asked::Answer(answer) => {
                let ask = ask.clone();
                self.opened(answer, &ask, told);
            }
            Asked::Refused(said) => {
                self.under_way = UnderWay::Nothing;
                self.step(Input::Refused(said), told);
            }
            Asked::Failed(fault) => {
                self.under_way = UnderWay::Nothing;
                self.progress.failed(fault);
                self.step(Input::Failed(fault), told);
            }
        }
        Poll::Ready(())
    }
}

impl Tell for Driver {
    fn poll_told(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<Result<(), FeedError>> {
        let (mut bytes, mut seen) = (0, told.len());
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

    fn hasten(&mut self, _upto: Revision) {}
}

/// What came of an answer.
enum Cutting {
    Frame(Frame),
    /// Frames that are all of a run.
    Framed(Framed),
    Part(Part),
    /// Nothing more comes.
    Over(Input),
}

impl Answer {
    /// Takes what comes as it comes, no longer in runs.
    fn go_on(&mut self) {
        if let Some(runs) = self.runs.take() {
            self.inflate = Some(runs.go_on());
        }
    }

    fn poll_cut(&mut self, context: &mut Context<'_>, progress: &Progress) -> Poll<Cutting> {
        loop {
            match self.cut.next() {
                Ok(Some(cut)) => return Poll::Ready(cut),
                Ok(None) => {}
                Err(_) => return Poll::Ready(Cutting::Over(Input::Garbled)),
            }
            if let Some(runs) = &mut self.runs {
                match runs.next_run() {
                    Next::Run(run) => match self.cut.frames_of(&run.plain) {
                        Ok(Some(frames)) => return Poll::Ready(Cutting::Framed(Framed { run, frames })),
                        Ok(None) => {
                            self.cut.push(&run.plain);
                            continue;
                        }
                        Err(_) => return Poll::Ready(Cutting::Over(Input::Garbled)),
                    },
                    Next::More if !self.is_at_end => {}
                    Next::More | Next::Otherwise => self.go_on(),
                }
            }
            if let Some(inflate) = &mut self.inflate {
                match inflate.next_piece() {
                    Ok(Some(piece)) => {
                        self.cut.push(piece);
                        continue;
                    }
                    Ok(None) => {}
                    Err(_) => return Poll::Ready(Cutting::Over(Input::Garbled)),
                }
            }
            if self.is_at_end {
                let is_whole = self.inflate.as_ref().is_none_or(Inflate::is_whole);
                return Poll::Ready(Cutting::Over(self.cut.ended(is_whole)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => self.is_at_end = true,
                Some(Ok(frame)) => {
                    let Ok(piece) = frame.into_data() else { continue };
                    progress.read(piece.len());
                    match (&mut self.runs, &mut self.inflate) {
                        (Some(runs), _) => runs.push(&piece),
                        (None, Some(inflate)) => inflate.push(&piece),
                        (None, None) => self.cut.push(&piece),
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "an answer failed");
                    let fault = match fault_of(&error) {
                        Fault::Other => Fault::CutShort,
                        fault => fault,
                    };
                    progress.failed(fault);
                    return Poll::Ready(Cutting::Over(Input::Failed(fault)));
                }
            }
        }
    }
}

impl Cut {
    fn next(&mut self) -> Result<Option<Cutting>, WireError> {
        match self {
            Cut::Watch(frames) => Ok(frames.next_frame()?.map(Cutting::Frame)),
            Cut::List { items, is_paged } => {
                let part = items.next_part()?;
                *is_paged |= matches!(part, Some(Part::End(_) | Part::Status(_)));
                Ok(part.map(Cutting::Part))
            }
        }
    }

    /// The frames of a text that comes next, if that is what it is.
    fn frames_of(&mut self, text: &Bytes) -> Result<Option<Vec<FrameAt>>, WireError> {
        match self {
            Cut::Watch(frames) => frames.frames_of(text),
            Cut::List { .. } => Ok(None),
        }
    }

    fn push(&mut self, piece: &[u8]) {
        match self {
            Cut::Watch(frames) => frames.push(piece),
            Cut::List { items, .. } => items.push(piece),
        }
    }

    /// What it means that the body ended.
    fn ended(&self, is_whole: bool) -> Input {
        match self {
            Cut::Watch(frames) if is_whole && !frames.is_within_frame() => Input::Ended,
            Cut::List { is_paged: true, .. } => Input::Ended,
            Cut::Watch(_) | Cut::List { .. } => Input::Failed(Fault::CutShort),
        }
    }
}

/// What `told` holds.
fn cost(told: &Told) -> usize {
    match told {
        Told::Change(Change { value: Some(value), .. }) => value.len(),
        Told::Packed(packed) => packed.plain_len(),
        _ => 0,
    }
}

/// The key of an object of this collection: `/namespace/name`, the namespace empty where there is none.
fn key_of(object: &ObjectText) -> Key {
    key(&object.namespace(), &object.name())
}

pub(crate) fn key(namespace: &str, name: &str) -> Key {
    Key::from(format!("/{namespace}/{name}"))
}

/// # Errors
/// When the object cannot be read so far.
pub(crate) fn change(
    object: ObjectText,
    revision: Revision,
    of: &TypeMeta,
    projection: &Projection,
) -> Result<Change, WireError> {
    let key = key_of(&object);
    let value = object.into_projected(Form::Whole, of, projection)?;
    Ok(Change { key, revision, value: Some(Bytes::from(value)) })
}

/// What a server said instead of an answer.
async fn refusal(refused: Response<Body>, way: &Way) -> Refusal {
    let (head, body) = refused.into_parts();
    let mut text = Vec::new();
    let mut body = pin!(body);
    let read = async {
        while let Some(Ok(frame)) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let Ok(piece) = frame.into_data() else { continue };
            let room = limits::REFUSAL_BYTES_MAX - text.len();
            text.extend_from_slice(&piece[..piece.len().min(room)]);
            if text.len() == limits::REFUSAL_BYTES_MAX {
                break;
            }
        }
    };
    let deadline = way.clock.now() + limits::REFUSAL_WAIT_MAX;
    tokio::select! { biased; () = read => {}, () = way.clock.sleep_until(deadline) => {} }
    if head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip") {
        text = inflated(&text);
    }
    let status = StatusFrame::read(&text).unwrap_or_else(|_| StatusFrame {
        message: String::from_utf8_lossy(&text).chars().take(200).collect(),
        ..StatusFrame::default()
    });
    let code = head.status.as_u16();
    let said = Refusal { code, ..said(status, Some(&head.headers)) };
    if let (429 | 503, Some(retry_after)) = (code, said.retry_after) {
        way.throttle.until(retry_after);
    }
    said
}

fn inflated(text: &[u8]) -> Vec<u8> {
    let (mut inflate, mut out) = (Inflate::new(), Vec::new());
    inflate.push(text);
    while let Ok(Some(piece)) = inflate.next_piece() {
        out.extend_from_slice(piece);
        if out.len() >= limits::REFUSAL_BYTES_MAX {
            break;
        }
    }
    out
}

fn said(status: StatusFrame, headers: Option<&HeaderMap>) -> Refusal {
    let header = headers.and_then(|headers| headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok());
    let seconds = header.or(Some(u64::from(status.retry_after_seconds)).filter(|seconds| *seconds > 0));
    Refusal {
        code: status.code,
        reason: status.reason,
        too_large: status.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge"),
        message: status.message,
        retry_after: seconds.map(Duration::from_secs),
    }
}
