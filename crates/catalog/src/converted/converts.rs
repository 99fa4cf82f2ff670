//! The seam to who asks the webhook of a definition.
//!
//! In: objects in one version. Out: the same in another. Never: knows what a webhook is.

use std::future::Future;
use std::pin::Pin;

use forebay_apimachinery::{Lease, Status};
use serde_json::Value;

/// Objects on their way to another version.
pub type Converting<'a> = Pin<Box<dyn Future<Output = Result<Vec<Value>, Status>> + Send + 'a>>;

/// Who asks the webhook of a definition.
pub trait Converts: Send + Sync {
    /// `objects`, of which none is in it, in the version that `to` names as `apiVersion` does; in their
    /// order.
    ///
    /// - `lease`: what comes of it is charged to it.
    fn convert<'a>(&'a self, objects: Vec<Value>, to: &'a str, lease: &'a Lease) -> Converting<'a>;
}
