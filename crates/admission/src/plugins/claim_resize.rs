//! PersistentVolumeClaimResize: a claim grows only once it is bound, and where its class says that it may.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/storage/persistentvolume/resize`.

use forebay_apimachinery::quantity;
use forebay_strategy::value::{Members, child_or_empty, text, text_opt};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

const CLASSES: ReadFrom = ("storage.k8s.io", "storageclasses");

pub struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.updates() && write.is_of("", "persistentvolumeclaims")
    }

    fn decides_by(&self) -> &'static [ReadFrom] {
        &[CLASSES]
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.judged(object, |claim| match write.old.and_then(Value::as_object) {
            Some(old) => may_grow(claim, old, tools),
            None => Ok(()),
        })
    }
}

fn may_grow(claim: &Members, old: &Members, tools: &Tools<'_>) -> Result<(), String> {
    let size = |claim: &Members| {
        let requests = child_or_empty(child_or_empty(child_or_empty(claim, "spec"), "resources"), "requests");
        requests.get("storage").map_or(0, quantity::of)
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    if text(child_or_empty(old, "status"), "phase") != "Bound" {
        return Err("Only bound persistent volume claims can be expanded".into());
    }
    let class = class_of(claim);
    let may = |class: Value| class["allowVolumeExpansion"] == true;
    if class.is_empty() || class != class_of(old) || !tools.class(CLASSES, class).is_some_and(may) {
        return Err(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the \
                    pvc must support resize"
                .into(),
        );
    }
    Ok(())
}

/// The class of a claim, by the older annotation if it has that.
fn class_of(claim: &Members) -> &str {
    let annotations = child_or_empty(child_or_empty(claim, "metadata"), "annotations");
    text_opt(annotations, "volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| text(child_or_empty(claim, "spec"), "storageClassName"))
}
