//! What goes with a request of which something is noted.
//!
//! In: a trail, and where others put what they note. Out: both, together. Never: notes anything, which
//! `audited.rs` does.

use std::sync::Arc;

use forebay_audit::Trail;
use forebay_catalog::AuditAnnotations;

/// See the module's doc.
#[derive(Clone)]
pub struct Audited {
    pub trail: Arc<Trail>,
    /// What others note of it while they work on it.
    pub notes: Arc<AuditAnnotations>,
}
