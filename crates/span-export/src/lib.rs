//! Carries spans to a collector of OpenTelemetry, in batches, over gRPC on one connection without TLS.
//!
//! In: spans that have ended. Out: `Export` calls, one at a time. What a collector does not take is sent once
//! more on a connection of its own, and then dropped, so that spans wait in their queue no longer than a
//! collector may take. Never: holds up who ends a span; reads what a collector says beyond whether it took
//! them.

mod channel;
mod exporter;
pub mod limits;

pub use exporter::{ExportConfig, run};
