//! The namespace of a new object, looked at once more when nothing is left to wait for but the store:
//! webhooks, policies and quotas may have taken long, and the namespace may be gone by now, or another one of
//! its name.
//!
//! In: a write that everybody lets through. Out: the same, or the refusal of NamespaceLifecycle. Never: asks
//! the store, unless the namespace is not cached; looks where that plugin did not.

use forebay_admission::judge_namespace;
use forebay_apimachinery::Status;
use forebay_catalog::store::Current;
use serde_json::json;

use super::{Write, attributes};
use crate::context::Context;
use crate::informer::uid;

/// See the module's doc. Who ends namespaces waits for what passes this until it is stored.
///
/// - `name`: of the object.
///
/// # Errors
/// 403 where the namespace is on its way out, 404 where it is not there any more.
pub(super) async fn check(write: &Write<'_>, context: &Context, name: &str) -> Result<(), Status> {
    let Some(home) = &write.home else { return Ok(()) };
    let namespaces = context.built_in("", "v1", "namespaces")?;
    let now = match namespaces.cached(home.key()) {
        Some(now) => Some(now),
        None => namespaces.live(home.key()).await?,
    };
    let is_same = |now: &Current| now.object.revision() == home.revision() || uid(&now.object) == uid(home);
    let Some(now) = now.filter(is_same) else {
        return Err(Status::not_found("", "namespaces", home.name()));
    };
    if now.object.revision() == home.revision() {
        return Ok(());
    }
    let attributes = attributes(&write.verb, write.target, None, write.mode);
    judge_namespace(&now.object, &attributes, &json!({ "metadata": { "name": name } }))
}
