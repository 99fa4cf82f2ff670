//! NamespaceLifecycle: nothing is created in a namespace that is missing or on its way out, be it a
//! subresource: an eviction, a binding, a token.
//!
//! A miss in the cache is judged again on the live object, so that a namespace counts from the moment that
//! its creation was acknowledged. Who stores the object looks again: what is asked in between may take long.
//!
//! Source: apiserver v0.36.3 `admission/plugin/namespace/lifecycle`.

use std::sync::Arc;

use forebay_api::Eventual;
use forebay_apimachinery::{Cause, CauseReason, Status};
use forebay_object::Object;
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

const NAMESPACES: ReadFrom = ("", "namespaces");
/// Index of `status.phase` in the layout of namespaces: its only selectable field beside the name.
const PHASE: usize = 0;

pub struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    /// What somebody may do can be asked of any namespace.
    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let is_review = write.is_of("authorization.k8s.io", "localsubjectaccessreviews");
        write.creates() && write.namespaced && !is_review
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let namespace = write.of.namespace;
        if let Some(found) = tools.lookup.cached(NAMESPACES, "", namespace) {
            return Eventual::Now(admitted(write, object, tools, &found));
        }
        Eventual::later(async move {
            match tools.lookup.live(NAMESPACES, "", namespace).wait().await? {
                Some(found) => admitted(write, object, tools, &found),
                None => Err(Status::not_found("", "namespaces", namespace)),
            }
        })
    }
}

fn admitted(
    write: &WriteAttributes<'_>,
    object: &Value,
    tools: &Tools<'_>,
    found: &Arc<Object>,
) -> Result<(), Status> {
    judge_namespace(found, write, object)?;
    tools.lookup.goes_to(found);
    Ok(())
}

/// Whether a namespace takes what is created in it.
///
/// # Errors
/// 403 for `object` where the namespace is on its way out.
pub fn judge_namespace(found: &Object, write: &WriteAttributes<'_>, object: &Value) -> Result<(), Status> {
    if found.field(PHASE) != Some("Terminating") {
        return Ok(());
    }
    let namespace = write.of.namespace;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = Cause::new(
        CauseReason::NamespaceTerminating,
        "metadata.namespace",
        format!("namespace {namespace} is being terminated"),
    );
    let refusal = match write.of.name {
        "" => write.forbidden(object, &why),
        name => write.forbidden_as(name, &why),
    };
    Err(refusal.because([cause]))
}
