//! ExtendedResourceToleration: a pod that asks for an extended resource tolerates the taint of that name, by
//! which nodes keep themselves for those that do.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/extendedresourcetoleration`.

use std::collections::BTreeSet;

use forebay_strategy::is_extended_resource;
use forebay_strategy::value::{Members, child_made, child_or_empty, objects, objects_mut, text};
use serde_json::{Value, json};

use super::fill::push;
use crate::optional::optional;
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

pub struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    optional! { "ExtendedResourceToleration", stores "pods" }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |pod| {
            tolerate(child_made(pod, "spec"));
            Ok(())
        })
    }
}

fn tolerate(spec: &mut Members) {
    let mut wanted = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for container in objects(spec, list) {
            let requests = child_or_empty(child_or_empty(container, "resources"), "requests");
            wanted.extend(requests.keys().filter(|name| is_extended_resource(name)).cloned());
        }
    }
    // One that says the same for a while says it for ever.
    for toleration in objects_mut(spec, "tolerations") {
        let is_like = text(toleration, "operator") == "Exists"
            && text(toleration, "effect") == "NoSchedule"
            && text(toleration, "value").is_empty();
        if is_like && wanted.remove(text(toleration, "key")) {
            toleration.remove("tolerationSeconds");
        }
    }
    for key in wanted {
        push(spec, "tolerations", json!({ "key": key, "operator": "Exists", "effect": "NoSchedule" }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_tolerates_the_taint_of_what_it_asks_for_once() {
        let asks = |name: &str| json!({ "resources": { "requests": { name: "1", "cpu": "1" } } });
        let own = json!({ "key": "a.example/d", "operator": "Exists", "effect": "NoSchedule" });
        let mut spec = json!({
            "containers": [asks("b.example/d"), asks("a.example/d"), asks("kubernetes.io/d")],
            "initContainers": [asks("b.example/d")], "tolerations": [own],
        });
        tolerate(spec.as_object_mut().expect("an object"));
        let other = json!({ "key": "b.example/d", "operator": "Exists", "effect": "NoSchedule" });
        assert_eq!(spec["tolerations"], json!([own, other]));
        let once = spec.clone();
        tolerate(spec.as_object_mut().expect("an object"));
        assert_eq!(spec, once);
    }
}
