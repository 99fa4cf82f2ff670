//! DefaultIngressClass: an Ingress that says nothing of its class gets the default one.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/network/defaultingressclass`.

use serde_json::Value;

use super::fill::{default_class, fill_in, has_annotation};
use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

const CLASSES: ReadFrom = ("networking.k8s.io", "ingressclasses");
const OLD_CLASS: &str = "kubernetes.io/ingress.class";
const MARKS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

pub struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && write.is_of("networking.k8s.io", "ingresses")
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |ingress| {
            if !has_annotation(ingress, OLD_CLASS) {
                fill_in(ingress, "ingressClassName", default_class(tools, CLASSES, &MARKS));
            }
            Ok(())
        })
    }
}
