//! Recorded histories of a server and its clients, and what is judged of them.
//!
//! In: what each client asked, when, and what it was told ([`Operation`], [`Stream`]). Out: a [`Violation`]
//! that names the promise that was broken, or nothing. `linear` judges reads and writes of single keys,
//! `watch` what watchers were told. Never: knows HTTP, waits, or asks a server: whoever can record can be
//! judged, a simulation too.

pub mod linear;
pub mod log;
mod promise;
mod record;
pub mod watch;

pub use linear::linearizable;
pub use log::{Entry, Log};
pub use promise::{Promise, Violation};
pub use record::{Call, Completion, Operation, Recorder, Tick};
pub use watch::{EventKind, Notification, Start, Stream, WatchEvent};
