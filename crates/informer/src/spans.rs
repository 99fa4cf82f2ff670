//! A collection's requests as `tracing` has them: what was asked for and why, what came, how it ended.
//! `docs/metrics_and_spans.md` says what they are called.
//!
//! In: what the driver asks for and what becomes of it. Out: spans. Owner: the driver. Never: decides
//! anything; costs anything to speak of where nobody listens.

use std::sync::Arc;

use forebay_client::reflector::{Input, ListReason};
use forebay_client::{Ask, Collection};
use forebay_rt::{Clock, Instant};
use tracing::Span;
use tracing::field::Empty;

use crate::progress::{Progress, reason};

const TARGET: &str = "forebay_informer";

/// See the module's doc.
pub(crate) struct Spans {
    life: Span,
    progress: Arc<Progress>,
    clock: Clock,
    request: Option<Request>,
    // Of the state that is asked for.
    why: Option<ListReason>,
    // How the request before ended.
    last: String,
    // How this one is about to, if the server says so.
    said: Option<String>,
}

/// The one that is under way.
struct Request {
    span: Span,
    began: Instant,
    // As they were then.
    objects: u64,
    bytes: u64,
}

impl Spans {
    pub(crate) fn new(collection: &Collection, progress: Arc<Progress>, clock: Clock) -> Spans {
        let life = tracing::info_span!(
            target: TARGET, parent: None, "informer",
            collection = collection.path(), namespace = collection.namespace.as_deref().unwrap_or_default(),
        );
        Spans { life, progress, clock, request: None, why: None, last: "first".into(), said: None }
    }

    pub(crate) fn life(&self) -> &Span {
        &self.life
    }

    pub(crate) fn asked(&mut self, ask: &Ask) {
        self.over("left");
        let why = self.why.map(reason);
        let life = &self.life;
        let span = match ask {
            Ask::List { .. } => tracing::info_span!(
                target: TARGET, parent: life, "list",
                why, objects = Empty, bytes = Empty, outcome = Empty, seconds = Empty,
            ),
            Ask::WatchList { .. } => tracing::info_span!(
                target: TARGET, parent: life, "watch_list",
                why, objects = Empty, bytes = Empty, outcome = Empty, seconds = Empty,
            ),
            Ask::Watch { .. } => self.watch(),
        };
        self.begin(span);
    }

    /// A whole state comes, for that reason.
    pub(crate) fn state_begins(&mut self, why: ListReason) {
        self.why = Some(why);
        if let Some(request) = &self.request {
            request.span.record("why", reason(why));
        }
    }

    /// It is whole.
    ///
    /// - `is_watched`: over the same request comes what changes from now on.
    pub(crate) fn state_ends(&mut self, is_watched: bool) {
        self.why = None;
        if is_watched {
            self.over("whole");
            let span = self.watch();
            self.begin(span);
        }
    }

    /// What `input` means for the request under way, if it is its last.
    pub(crate) fn comes(&mut self, input: &Input) {
        self.said = match input {
            Input::Refused(said) => Some(format!("refused {}", said.code)),
            Input::StreamError(said) => Some(format!("error {}", said.code)),
            Input::Failed(fault) => Some(format!("fault {fault:?}")),
            Input::Ended => Some("ended".into()),
            Input::Page { .. } => Some("page".into()),
            Input::Garbled | Input::NotAWatch => Some("garbled".into()),
            Input::OverLimit => Some("over limit".into()),
            Input::Timer => Some("silent".into()),
            _ => None,
        };
    }

    /// The request under way is over.
    ///
    /// - `otherwise`: how, where what came last does not say.
    pub(crate) fn over(&mut self, otherwise: &str) {
        let Some(Request { span, began, objects, bytes }) = self.request.take() else { return };
        let (objects_now, bytes_now) = self.progress.taken();
        let outcome = self.said.take().filter(|_| otherwise != "whole").unwrap_or_else(|| otherwise.into());
        span.record("objects", objects_now - objects);
        span.record("bytes", bytes_now - bytes);
        span.record("outcome", outcome.as_str());
        span.record("seconds", self.clock.now().duration_since(began).as_secs_f64());
        self.last = outcome;
    }

    fn watch(&self) -> Span {
        tracing::debug_span!(
            target: TARGET, parent: &self.life, "watch",
            why = self.last.as_str(), objects = Empty, bytes = Empty, outcome = Empty, seconds = Empty,
        )
    }

    fn begin(&mut self, span: Span) {
        let (objects, bytes) = self.progress.taken();
        self.request = Some(Request { span, began: self.clock.now(), objects, bytes });
    }
}

/// Its informer ends.
impl Drop for Spans {
    fn drop(&mut self) {
        self.said = None;
        self.over("dropped");
    }
}
