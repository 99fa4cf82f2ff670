//! Access to devices past their users, which only labelled namespaces give.
//!
//! Source: kubernetes v1.36.3 `registry/resource/utils.go`.

use forebay_api::Eventual;
use forebay_apimachinery::{Cause, CauseReason};
use serde_json::Value;

use crate::plugin::{Plugin, ReadFrom, Switch, Tools, WriteAttributes};
use forebay_strategy::{ADMIN_ACCESS, wants_admin_access};

const NAMESPACES: ReadFrom = ("", "namespaces");

pub struct DeviceAdminAccess;

impl Plugin for DeviceAdminAccess {
    fn name(&self) -> &'static str {
        "DeviceAdminAccess"
    }

    fn switch(&self) -> Switch {
        Switch::None
    }

    /// New claims and templates, and the status of claims.
    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let of = &write.of;
        let is_new = write.creates() && of.subresource.is_empty();
        let is_status = write.updates() && of.subresource == "status";
        of.group == "resource.k8s.io" && write.namespaced && (is_new || is_status)
    }

    fn causes<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Eventual<'a, Vec<Cause>> {
        let nothing = Eventual::Now(Vec::new());
        let Some(field) = wants_admin_access(object, write.old) else { return nothing };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("");
        // As the store has it: who takes the label away, or gives it, counts on it from then on.
        Eventual::later(async move {
            let found = match tools.lookup.live(NAMESPACES, "", namespace).wait().await {
                Ok(Some(found)) => found,
                Ok(None) => return vec![unknown(field, &format!("namespaces {namespace:?} not found"))],
                Err(status) => return vec![unknown(field, &status.message)],
            };
            if found.label(ADMIN_ACCESS) == Some("true") {
                return Vec::new();
            }
            let message = format!(
                "Forbidden: admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
            );
            vec![Cause::new(CauseReason::FieldValueForbidden, field, message)]
        })
    }
}

/// Nobody knows whether the namespace gives it.
fn unknown(field: String, why: &str) -> Cause {
    let message = format!("Internal error: could not retrieve namespace to verify admin access: {why}");
    Cause::new(CauseReason::InternalError, field, message)
}
