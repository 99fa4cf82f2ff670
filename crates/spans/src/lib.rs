//! What a request did, and for how long, as OpenTelemetry has it: spans, whether they are told, and their
//! bytes.
//!
//! In: a TracingConfiguration; requests, with what their clients say of the trace that they are part of.
//! Out: spans that have ended, into a bounded queue, and the message that carries them. Never: does IO; waits
//! for room in the queue; costs anything of a request that is not told.
//!
//! ```text
//! request ─Tracer::begin─► OpenSpan ─drop─► queue ─► span-export
//!                             └─ Trace::span ─► OpenSpan (a commit, a call of a webhook)
//! ```

mod configuration;
mod context;
pub mod limits;
pub mod otlp;
mod tracer;

pub use configuration::{Collector, TracingConfiguration};
pub use context::{SpanContext, SpanId, TraceId};
pub use tracer::{AttributeValue, EndedSpan, OpenSpan, RequestSpan, SpanKind, Trace, Tracer};
