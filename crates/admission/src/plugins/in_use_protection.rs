//! StorageObjectInUseProtection: what stores data has a finalizer from the beginning, which a controller
//! takes away once nobody uses it.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/storage/storageobjectinuseprotection`.

use forebay_strategy::value::child_made;
use serde_json::Value;

use super::fill::push;
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

pub struct StorageObjectInUseProtection;

/// What is protected: its group, its resource, its finalizer.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && finalizer(write).is_some()
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |object| {
            let meta = child_made(object, "metadata");
            let known = meta.get("finalizers").and_then(Value::as_array).into_iter().flatten();
            if let Some(finalizer) = finalizer(write) {
                // Once: for the whole object.
                if !known.into_iter().any(|known| known == finalizer) {
                    push(meta, "finalizers", finalizer.into());
                }
            }
            Ok(())
        })
    }
}

fn finalizer(write: &WriteAttributes<'_>) -> Option<&'static str> {
    let row = PROTECTED.iter().find(|(group, resource, _)| write.is_of(group, resource));
    row.map(|(.., finalizer)| *finalizer)
}
