//! How a collection is reached.

use std::sync::Arc;

use forebay_connector::{Pool, Throttle};
use forebay_rt::Clock;

use crate::encoding::Encoding;
use crate::reach::Reach;

/// See the module's doc.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) client: kube::Client,
    /// That of the client, where it is one of ours.
    pub(crate) pool: Option<Pool>,
    pub(crate) throttle: Arc<Throttle>,
    /// Whether the server answers anybody.
    pub(crate) reach: Arc<Reach>,
    pub(crate) user_agent: Arc<str>,
    pub(crate) encoding: Encoding,
    pub(crate) clock: Clock,
}
