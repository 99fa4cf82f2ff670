//! Access to devices past their users, which only labelled namespaces give.
//!
//! In: a claim or a template that is to be stored. Out: a cause. Never: asks who writes it.
//!
//! Source: kubernetes v1.36.3 `registry/resource/utils.go`.

use std::sync::Arc;

use forebay_apimachinery::{Cause, CauseReason};
use serde_json::Value;

use crate::catalog::Served;
use crate::context::Context;
use forebay_strategy as strategy;

/// Forbids access to devices past their users where the namespace is not labelled for it.
///
/// - `old`: the stored object, when its status is written.
pub(crate) fn forbid_admin_access(
    context: &Arc<Context>,
    served: &Served,
    value: &Value,
    old: Option<&Value>,
) -> Vec<Cause> {
    if served.group() != "resource.k8s.io" || !served.namespaced {
        return Vec::new();
    }
    let Some(field) = strategy::wants_admin_access(value, old) else { return Vec::new() };
    let namespace = value["metadata"]["namespace"].as_str().unwrap_or("");
    let store = context.built_in("", "v1", "namespaces").ok();
    let found = store.and_then(|store| store.cached(&store.key("", namespace)));
    if found.is_some_and(|found| found.object.label(strategy::ADMIN_ACCESS) == Some("true")) {
        return Vec::new();
    }
    let message = format!(
        "Forbidden: admin access to devices requires the `{}: true` label on the containing namespace",
        strategy::ADMIN_ACCESS
    );
    vec![Cause::new(CauseReason::FieldValueForbidden, field, message)]
}
