//! What other servers answer in this one's place, as it is told by who follows them.
//!
//! In: routes, extensions, what is counted. Out: the same, to who answers requests. Never: changes any of it.

use std::sync::Arc;

use forebay_documents::discovery::Extensions;
use forebay_documents::metrics::Availability;
use forebay_proxy::{Connects, RemoteHeaders, Routes};

/// What other servers answer, and what is told of it. Nothing by default.
#[derive(Clone, Default)]
pub struct Aggregation {
    pub routes: Arc<Routes>,
    pub extensions: Arc<Extensions>,
    pub availability: Arc<Availability>,
    /// By whom a proxy in front of this server says that requests are.
    pub remote_headers: Arc<RemoteHeaders>,
    /// What runs behind pods.
    pub behind: Option<Arc<dyn Connects>>,
}
