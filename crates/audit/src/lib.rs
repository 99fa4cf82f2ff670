//! Who did what: which requests are noted and how much of them, the events that are noted, and where these
//! are kept.
//!
//! In: a policy, what is known of a request, where to keep events. Out: lines in a file, batches for a
//! webhook, counts. Never: knows HTTP, makes a connection; says what is done with a request that cannot be
//! noted, which the edge does.

mod audit;
mod backend;
mod buffer;
mod compact;
mod counts;
mod event;
mod kept;
mod latency;
mod legacy;
mod level;
pub mod limits;
mod line;
mod log;
mod log_file;
mod managed_fields;
mod options;
mod panics;
mod policy;
mod read_policy;
mod source_ips;
mod trail;
mod validation;
mod webhook;

pub use audit::Audit;
pub use counts::{AuditCounts, AuditPlugin};
pub use event::{AuditEvent, ObjectRef, ResponseStatus};
pub use kept::{Unkept, Waits};
pub use level::{AuditLevel, AuditStage, Stages};
pub use options::{
    AuditMode, AuditOptions, BatchOptions, LogFormat, LogOptions, TruncateOptions, WebhookOptions,
};
pub use policy::{AuditPolicy, AuditVerdict};
pub use source_ips::source_ips;
pub use trail::{Noted, SentObject, Trail, TrailShape, Unanswered};
pub use webhook::{Posted, Posts};
