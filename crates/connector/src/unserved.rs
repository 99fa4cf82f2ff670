//! A request that came back without an answer.
//!
//! In: why, and the request where it may be sent again. Out: the same. Never: sends it.

use http::Request;
use kube::client::Body as RequestBody;

use crate::Error;

/// A request that was not served, and may be sent again where it is given back.
pub(crate) struct Unserved {
    pub error: Error,
    pub again: Option<Request<RequestBody>>,
}
