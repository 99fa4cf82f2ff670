//! AlwaysPullImages: images of new pods are pulled each time, so that nobody runs one that only others may
//! pull.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/alwayspullimages`.

use forebay_api::Eventual;
use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{Reason, Seen, Status};
use forebay_strategy::value::{
    Members, child_made, child_mut, child_or_empty, objects, objects_mut, set, text,
};
use serde_json::Value;

use crate::optional::optional;
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

const ALWAYS: &str = "Always";
/// In the order in which upstream looks at them.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub struct AlwaysPullImages;

impl Plugin for AlwaysPullImages {
    optional! { "AlwaysPullImages", stores "pods" }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let is_asked = is_asked(write, object);
        write.filled(object, |pod| {
            if is_asked {
                pull_always(child_made(pod, "spec"));
            }
            Ok(())
        })
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        if !is_asked(write, object) {
            return Eventual::Now(Ok(()));
        }
        let empty = Members::new();
        let spec = child_or_empty(object.as_object().unwrap_or(&empty), "spec");
        let faults: Vec<String> =
            faults(spec).into_iter().map(|fault| write.forbidden(object, &fault).message).collect();
        Eventual::Now(match faults.as_slice() {
            [] => Ok(()),
            // Upstream puts them together, and what is put together is of no kind.
            [fault] => Err(Status::new(Reason::Unknown, fault.clone())),
            several => Err(Status::new(Reason::Unknown, format!("[{}]", several.join(", ")))),
        })
    }
}

/// Whether there is an image that the stored pod has not.
fn is_asked(write: &WriteAttributes<'_>, object: &Value) -> bool {
    let Some(old) = write.old.filter(|_| write.updates()) else { return true };
    let known: Seen<&str> = all_images(old).collect();
    all_images(object).any(|image| !known.has(image))
}

fn all_images(pod: &Value) -> impl Iterator<Item = &str> {
    let containers =
        CONTAINERS.iter().flat_map(move |list| pod["spec"][*list].as_array().into_iter().flatten());
    containers.map(|container| container["image"].as_str().unwrap_or_default())
}

fn pull_always(spec: &mut Members) {
    for list in CONTAINERS {
        for container in objects_mut(spec, list) {
            set(container, "imagePullPolicy", Some(ALWAYS.into()));
        }
    }
    for volume in objects_mut(spec, "volumes") {
        if let Some(image) = child_mut(volume, "image") {
            set(image, "pullPolicy", Some(ALWAYS.into()));
        }
    }
}

fn faults(spec: &Members) -> Vec<String> {
    let unsupported = |at: String, policy: &str| {
        format!("{at}: Unsupported value: {}: supported values: {}", go_quote(policy), go_quote(ALWAYS))
    };
    let mut faults = Vec::new();
    for list in CONTAINERS {
        for (index, container) in objects(spec, list).enumerate() {
            let policy = text(container, "imagePullPolicy");
            if policy != ALWAYS {
                faults.push(unsupported(format!("spec.{list}[{index}].imagePullPolicy"), policy));
            }
        }
    }
    for (index, volume) in objects(spec, "volumes").enumerate() {
        let image = volume.get("image").and_then(Value::as_object);
        if let Some(policy) = image.map(|image| text(image, "pullPolicy")).filter(|policy| *policy != ALWAYS)
        {
            faults.push(unsupported(format!("spec.volumes[{index}].image.pullPolicy"), policy));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_image_is_pulled_whatever_its_pod_says() {
        let mut spec = json!({
            "initContainers": [{ "image": "a", "imagePullPolicy": "Never" }], "containers": [{ "image": "b" }],
            "volumes": [{ "image": { "reference": "c", "pullPolicy": "IfNotPresent" } }, { "emptyDir": {} }],
        });
        assert_eq!(
            faults(spec.as_object().expect("an object")),
            [
                "spec.initContainers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                "spec.containers[0].imagePullPolicy: Unsupported value: \"\": supported values: \"Always\"",
                "spec.volumes[0].image.pullPolicy: Unsupported value: \"IfNotPresent\": supported values: \"Always\"",
            ]
        );
        pull_always(spec.as_object_mut().expect("an object"));
        assert!(faults(spec.as_object().expect("an object")).is_empty());
        assert_eq!(spec["volumes"][1], json!({ "emptyDir": {} }));
    }
}
