//! What is known of the other servers, for all who go by it.
//!
//! In: what the task that follows them publishes. Out: the same, and that it has changed. Never: asks
//! anybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_documents::discovery::Extensions;
use forebay_documents::metrics::Availability;
use forebay_proxy::{ClientIdentity, Routes, Spoken};

use crate::changes::Changes;

/// What following them takes.
pub struct AggregatorConfig {
    /// Who this server is to the others.
    pub identity: Option<ClientIdentity>,
    /// What they are told by besides the usual headers.
    pub spoken: Spoken,
}

/// What is known of the other servers, now and from now on. Cheap to clone.
#[derive(Clone, Default)]
pub struct Aggregator {
    pub routes: Arc<Routes>,
    pub extensions: Arc<Extensions>,
    pub availability: Arc<Availability>,
    pub(crate) is_told: Arc<AtomicBool>,
    // Rung when routes or extensions are others, and when they are told for the first time.
    pub(crate) changes: Arc<Changes>,
}

impl Aggregator {
    /// Whether every APIService that was there at the beginning is told of.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Acquire)
    }
}
