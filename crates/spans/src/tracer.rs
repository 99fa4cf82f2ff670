//! Spans: begun with a request or within one, told when they are dropped, if they are told at all.
//!
//! Owns the queue's sending end. In: requests, and what their clients say. Out: [`EndedSpan`]s. Who traces
//! nothing has no [`Tracer`]; a request that is not told of has no [`OpenSpan`].
//!
//! Source: apiserver v0.36.3 `endpoints/filters/traces.go`; OpenTelemetry for Go v1.43
//! `sdk/trace/sampling.go`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_rt::{Clock, Instant, Random};
use tokio::sync::mpsc;

use crate::configuration::TracingConfiguration;
use crate::context::{SpanContext, SpanId, TraceId};
use crate::limits;

/// Decides which requests are told of, and takes what is.
pub struct Tracer {
    // Of 2^63 equally probable numbers so many are told of.
    sampled_below: u64,
    clock: Clock,
    random: Random,
    queue: mpsc::Sender<EndedSpan>,
    dropped: AtomicU64,
}

/// A request, as a span of it begins.
pub struct RequestSpan<'a> {
    pub name: String,
    /// What its client says that it is part of.
    pub remote: Option<&'a str>,
    /// Whether that is believed.
    pub is_trusted: bool,
    pub started: Instant,
}

/// A request that is told of, for those who do a part of it. Cheap to clone.
#[derive(Clone)]
pub struct Trace {
    tracer: Arc<Tracer>,
    context: SpanContext,
}

/// A span that has not ended. Dropped, it has.
pub struct OpenSpan {
    tracer: Arc<Tracer>,
    started: Instant,
    // Boxed: every request has room for one.
    span: Option<Box<EndedSpan>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    Text(Cow<'static, str>),
    Number(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
}

/// All that is told of a span.
#[derive(Clone, Debug)]
pub struct EndedSpan {
    pub context: SpanContext,
    pub parent: Option<SpanId>,
    /// What it is said to have come from, and is no part of.
    pub link: Option<SpanContext>,
    pub name: String,
    pub kind: SpanKind,
    /// Nanoseconds since the Unix epoch.
    pub begins: u64,
    pub ends: u64,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Tracer {
    /// One that tells of what `configuration` says, and where what it tells comes out.
    pub fn new(
        configuration: &TracingConfiguration,
        clock: Clock,
        random: Random,
    ) -> (Arc<Tracer>, mpsc::Receiver<EndedSpan>) {
        let (queue, ended) = mpsc::channel(limits::QUEUE_MAX);
        let rate = u128::from(configuration.sampling_rate_per_million);
        let sampled_below = ((rate << 63) / 1_000_000) as u64;
        let tracer = Tracer { sampled_below, clock, random, queue, dropped: AtomicU64::new(0) };
        (Arc::new(tracer), ended)
    }

    /// The span of a request; none, if it is not told of. Who is part of a trace is told of if that is; who
    /// is not believed to be is at the beginning of one.
    pub fn begin(self: &Arc<Tracer>, request: RequestSpan<'_>) -> Option<OpenSpan> {
        let remote = request.remote.and_then(SpanContext::parse);
        let (parent, link) = if request.is_trusted { (remote, None) } else { (None, remote) };
        let trace = parent.map_or_else(|| self.trace_id(), |parent| parent.trace);
        let is_sampled = parent.map_or_else(|| self.samples(trace), |parent| parent.is_sampled);
        if !is_sampled {
            return None;
        }
        let context = SpanContext { trace, span: self.span_id(), is_sampled };
        let parent = parent.map(|parent| parent.span);
        Some(self.open(request.name, SpanKind::Server, context, (parent, link), request.started))
    }

    /// How many spans were dropped so far, because there was no room for them.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// As OpenTelemetry's ratio-based sampler, so that all that are part of a trace decide alike.
    fn samples(&self, trace: TraceId) -> bool {
        let low = trace.0.last_chunk::<8>().map_or(0, |low| u64::from_be_bytes(*low));
        low >> 1 < self.sampled_below
    }

    fn trace_id(&self) -> TraceId {
        let (high, low) = (self.random.next_u64(), self.random.next_u64().max(1));
        TraceId((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }

    fn span_id(&self) -> SpanId {
        SpanId(self.random.next_u64().max(1).to_be_bytes())
    }

    fn open(
        self: &Arc<Tracer>,
        name: String,
        kind: SpanKind,
        context: SpanContext,
        (parent, link): (Option<SpanId>, Option<SpanContext>),
        started: Instant,
    ) -> OpenSpan {
        let now = self.clock.unix_ms().saturating_mul(1_000_000);
        let begins = now.saturating_sub(nanos(self.clock.now(), started));
        let span = EndedSpan {
            context,
            parent,
            link,
            name,
            kind,
            begins,
            ends: begins,
            attributes: Vec::new(),
            error: None,
        };
        OpenSpan { tracer: self.clone(), started, span: Some(Box::new(span)) }
    }
}

impl Trace {
    /// A part of what the request does.
    pub fn span(&self, name: &'static str) -> OpenSpan {
        let context = SpanContext { span: self.tracer.span_id(), ..self.context };
        let started = self.tracer.clock.now();
        self.tracer.open(
            name.to_owned(),
            SpanKind::Internal,
            context,
            (Some(self.context.span), None),
            started,
        )
    }
}

/// Without who takes what it tells.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trace").field(&self.context).finish()
    }
}

impl OpenSpan {
    /// For those who do a part of it.
    pub fn trace(&self) -> Option<Trace> {
        let span = self.span.as_ref()?;
        Some(Trace { tracer: self.tracer.clone(), context: span.context })
    }

    /// Says more of it, as far as there is room.
    pub fn set(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        let Some(span) = &mut self.span else { return };
        if span.attributes.len() < limits::ATTRIBUTES_MAX {
            span.attributes.push((name, value.into().cut()));
        }
    }

    /// It failed.
    pub fn fail(&mut self, why: &str) {
        if let Some(span) = &mut self.span {
            span.error = Some(cut(why).to_owned());
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        let Some(mut span) = self.span.take() else { return };
        span.ends = span.begins.saturating_add(nanos(self.tracer.clock.now(), self.started));
        if self.tracer.queue.try_send(*span).is_err() {
            self.tracer.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AttributeValue {
    fn cut(self) -> AttributeValue {
        match self {
            AttributeValue::Text(text) if text.len() > limits::TEXT_BYTES_MAX => {
                AttributeValue::Text(cut(&text).to_owned().into())
            }
            other => other,
        }
    }
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> AttributeValue {
        AttributeValue::Text(Cow::Borrowed(text))
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> AttributeValue {
        AttributeValue::Text(Cow::Owned(text))
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> AttributeValue {
        AttributeValue::Number(number)
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(limits::TEXT_BYTES_MAX)]
}

fn nanos(now: Instant, since: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(since).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::configuration::Collector;

    use super::*;

    fn tracer(rate: u32) -> (Arc<Tracer>, mpsc::Receiver<EndedSpan>) {
        let collector = Collector::Tcp(String::new());
        let configuration = TracingConfiguration { collector, sampling_rate_per_million: rate };
        Tracer::new(&configuration, Clock::manual(1_700_000_000_000).0, Random::seeded(7))
    }

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    fn begin(tracer: &Arc<Tracer>, remote: Option<&str>, is_trusted: bool) -> Option<OpenSpan> {
        let started = tracer.clock.now();
        tracer.begin(RequestSpan { name: "GET".into(), remote, is_trusted, started })
    }

    #[test]
    fn who_is_believed_goes_on_with_a_trace_and_who_is_not_begins_one() {
        let (tracer, mut ended) = tracer(0);
        assert!(begin(&tracer, None, true).is_none(), "nothing is told of");
        assert!(begin(&tracer, Some(UNSAMPLED), true).is_none());
        assert!(begin(&tracer, Some(SAMPLED), false).is_none(), "no stranger makes us tell");
        drop(begin(&tracer, Some(SAMPLED), true));
        let span = ended.try_recv().expect("told");
        assert_eq!(format!("{:?}", span.context.trace), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(format!("{:?}", span.parent.expect("there")), "00f067aa0ba902b7");

        let (tracer, mut ended) = self::tracer(1_000_000);
        assert!(begin(&tracer, Some(UNSAMPLED), true).is_none(), "the trace is not told of");
        drop(begin(&tracer, Some(SAMPLED), false));
        let span = ended.try_recv().expect("told");
        let remote = SpanContext::parse(SAMPLED);
        assert_eq!((span.parent, span.link), (None, remote));
        assert_ne!(Some(span.context.trace), remote.map(|remote| remote.trace));
    }

    #[test]
    fn so_many_of_a_million_are_told_of() {
        let (tracer, _ended) = tracer(250_000);
        let told = (0..4_000).filter(|_| tracer.samples(tracer.trace_id())).count();
        assert!((900..1_100).contains(&told), "{told}");
    }

    #[test]
    fn parts_are_below_their_request_and_texts_are_cut() {
        let (tracer, mut ended) = tracer(1_000_000);
        let mut request = begin(&tracer, None, false).expect("told of");
        let trace = request.trace().expect("open");
        let mut part = trace.span("Commit");
        part.set("resource", "pods");
        part.fail("no room");
        drop(part);
        request.set("long", "ä".repeat(limits::TEXT_BYTES_MAX));
        (0..2 * limits::ATTRIBUTES_MAX as i64).for_each(|number| request.set("n", number));
        drop(request);
        let (part, request) = (ended.try_recv().expect("told"), ended.try_recv().expect("told"));
        assert_eq!((part.parent, part.context.trace), (Some(request.context.span), request.context.trace));
        assert_eq!((&*part.name, part.error.as_deref()), ("Commit", Some("no room")));
        assert_eq!(request.attributes.len(), limits::ATTRIBUTES_MAX);
        let AttributeValue::Text(long) = &request.attributes[0].1 else { panic!("a text") };
        assert_eq!(long.len(), limits::TEXT_BYTES_MAX);
        assert!(request.begins >= 1_699_999_000_000_000_000 && request.ends >= request.begins);
    }

    #[test]
    fn what_there_is_no_room_for_is_dropped_and_counted() {
        let (tracer, mut ended) = tracer(1_000_000);
        (0..limits::QUEUE_MAX + 3).for_each(|_| drop(begin(&tracer, None, false)));
        assert_eq!(tracer.dropped(), 3);
        let told = std::iter::from_fn(|| ended.try_recv().ok()).count();
        assert_eq!(told, limits::QUEUE_MAX);
    }
}
