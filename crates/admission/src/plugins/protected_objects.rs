//! What a cluster cannot do without is not deleted: three namespaces, and the system's classes of priority.
//!
//! Source: kubernetes v1.36.3 `plugin/namespace/lifecycle`, `registry/scheduling/priorityclass`.

use forebay_api::Eventual;
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, Switch, Tools, WriteAttributes};
use forebay_strategy::SYSTEM_PRIORITY_CLASSES;

/// Namespaces that are never deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub struct ProtectedObjects;

impl Plugin for ProtectedObjects {
    fn name(&self) -> &'static str {
        "ProtectedObjects"
    }

    fn switch(&self) -> Switch {
        Switch::None
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let is_of = write.is_of("", "namespaces") || write.is_of("scheduling.k8s.io", "priorityclasses");
        write.deletes() && is_of
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        _: &'a Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let name = write.of.name;
        let is_namespace = write.of.resource == "namespaces";
        let refused = |why: &str| Eventual::Now(Err(write.forbidden_as(name, why)));
        if is_namespace && IMMORTAL.contains(&name) {
            return refused("this namespace may not be deleted");
        }
        if !is_namespace && SYSTEM_PRIORITY_CLASSES.iter().any(|(known, ..)| *known == name) {
            return refused("this is a system priority class and cannot be deleted");
        }
        Eventual::Now(Ok(()))
    }
}
