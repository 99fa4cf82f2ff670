//! Access to devices past their users, which only labelled namespaces give.
//!
//! Source: kubernetes v1.36.3 `registry/resource/utils.go`.

use forebay_api::Eventual;
use forebay_apimachinery::{Cause, CauseReason};
use serde_json::Value;

use crate::plugin::{Plugin, Switch, Tools, WriteAttributes};
use forebay_strategy::{ADMIN_ACCESS, wants_admin_access};

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
        let found = tools.lookup.cached(("", "namespaces"), "", namespace);
        if found.is_some_and(|found| found.label(ADMIN_ACCESS) == Some("true")) {
            return nothing;
        }
        let message = format!(
            "Forbidden: admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
        );
        Eventual::Now(vec![Cause::new(CauseReason::FieldValueForbidden, field, message)])
    }
}
