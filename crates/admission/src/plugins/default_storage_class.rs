//! DefaultStorageClass: a claim that says nothing of its class gets the default one.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/storage/storageclass/setdefault`.

use serde_json::Value;

use super::fill::{default_class, fill_in, has_annotation};
use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

const CLASSES: ReadFrom = ("storage.k8s.io", "storageclasses");
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && write.is_of("", "persistentvolumeclaims")
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |claim| {
            if !has_annotation(claim, BETA_CLASS) {
                fill_in(claim, "storageClassName", default_class(tools, CLASSES, &MARKS));
            }
            Ok(())
        })
    }
}
