//! AlwaysAdmit and AlwaysDeny, which Kubernetes has kept for those who still name them: the one does nothing,
//! the other lets nothing be written but by the server itself.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/{admit,deny}`.

use forebay_api::Eventual;
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, Switch, Tools, WriteAttributes};

const WHY: &str = "admission control is denying all modifications";

pub struct AlwaysAdmit;

pub struct AlwaysDeny;

impl Plugin for AlwaysAdmit {
    fn name(&self) -> &'static str {
        "AlwaysAdmit"
    }

    fn switch(&self) -> Switch {
        Switch::IfEnabled
    }

    fn handles(&self, _: &WriteAttributes<'_>) -> bool {
        false
    }
}

impl Plugin for AlwaysDeny {
    fn name(&self) -> &'static str {
        "AlwaysDeny"
    }

    fn switch(&self) -> Switch {
        Switch::IfEnabled
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.caller.is_some()
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        Eventual::Now(Err(write.forbidden(object, WHY)))
    }

    /// Deletions come here alone.
    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let refused = match object {
            Value::Null => write.forbidden_as(write.of.name, WHY),
            object => write.forbidden(object, WHY),
        };
        Eventual::Now(Err(refused))
    }
}
