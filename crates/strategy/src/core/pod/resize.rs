//! What a resize may change of a pod: cpu and memory, of containers that stay as they are.
//!
//! In: a pod with new resources, and the stored one. Out: causes. Never: whether its node has room.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use serde_json::Value;

use super::annotations::{self, MIRROR};
use super::qos;
use crate::field::{Causes, Path};
use crate::typed::same_of;
use crate::value::{
    Members, child, child_made, child_or_empty, list, list_mut, objects, set, take_over, text,
};

const SPEC: Path<'static> = Path::root("spec");
const ONLY: &str = "only cpu and memory resources are mutable";

pub fn validate_update(new: &Members, old: &Members, causes: &mut Causes) {
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    if annotations::of_pod(old).contains_key(MIRROR) {
        return causes.forbidden(&Path::root(""), "static pods cannot be resized");
    }
    if text(child_or_empty(old_spec, "os"), "name") == "windows" {
        return causes.forbidden(&Path::root(""), "windows pods cannot be resized");
    }
    let class = text(child_or_empty(old, "status"), "qosClass");
    if qos::class(spec) != class {
        let detail = "Pod QOS Class may not change as a result of resizing";
        causes.invalid(&SPEC, text(child_or_empty(new, "status"), "qosClass"), detail);
    }
    if !is_supported(child_or_empty(old, "status")) {
        causes.forbidden(&SPEC, "Pod running on node without support for resize");
    }
    let mut rest = spec.clone();
    if asks_as_a_whole(spec) || asks_as_a_whole(old_spec) {
        of_pod(spec, old_spec, &mut rest, causes);
    }
    if !same_names(spec, old_spec, causes) {
        return;
    }
    for name in ["initContainers", "containers"] {
        not_removed(spec, old_spec, name, causes);
    }
    for name in ["containers", "initContainers"] {
        of_containers(&mut rest, old_spec, name, causes);
    }
    if causes.is_empty() && !same_of(("core/v1", "PodSpec"), &rest, old_spec) {
        causes.forbidden(&SPEC, ONLY);
    }
}

/// Whether the pod's kubelet can: one that can says what a running container has. Before any container runs
/// nobody knows.
fn is_supported(status: &Members) -> bool {
    let mut statuses = objects(status, "containerStatuses");
    statuses
        .find(|of| child_or_empty(of, "state").contains_key("running"))
        .is_none_or(|running| running.contains_key("resources"))
}

fn asks_as_a_whole(spec: &Members) -> bool {
    let resources = child_or_empty(spec, "resources");
    ["requests", "limits"].iter().any(|list| !child_or_empty(resources, list).is_empty())
}

/// Resources of the pod as a whole.
fn of_pod(spec: &Members, old: &Members, rest: &mut Members, causes: &mut Causes) {
    let at = SPEC.child("resources");
    let Some(before) = child(old, "resources") else {
        if let Some(resources) = child(rest, "resources").cloned() {
            let mut resources = resources;
            only_others(&mut resources, &Members::new());
            set(rest, "resources", (!resources.is_empty()).then_some(Value::Object(resources)));
        }
        if rest.contains_key("resources") {
            causes.forbidden(&SPEC, "only cpu and memory resources are mutable at pod-level");
        }
        return;
    };
    let Some(wanted) = child(spec, "resources") else {
        return causes.forbidden(&at, "pod-level resources cannot be removed");
    };
    for (list, detail) in [
        ("requests", "pod-level resource requests cannot be removed"),
        ("limits", "pod-level resource limits cannot be removed"),
    ] {
        if any_removed(wanted, before, list) {
            causes.forbidden(&at.child(list), detail);
        }
    }
    only_others(child_made(rest, "resources"), before);
    if !same_of(("core/v1", "ResourceRequirements"), child_or_empty(rest, "resources"), before) {
        causes.forbidden(&SPEC, "only cpu and memory resources are mutable at pod-level");
    }
}

fn same_names(new: &Members, old: &Members, causes: &mut Causes) -> bool {
    let found = causes.len();
    for name in ["containers", "initContainers"] {
        let at = SPEC.child(name);
        if list(new, name).len() != list(old, name).len() {
            causes.forbidden(&at, &format!("{name} may not be added or removed on resize"));
            continue;
        }
        for (index, (container, before)) in objects(new, name).zip(objects(old, name)).enumerate() {
            if text(container, "name") != text(before, "name") {
                let detail = format!("{name} may not be renamed or reordered on resize");
                causes.forbidden(&at.index(index).child("name"), &detail);
            }
        }
    }
    causes.len() == found
}

fn not_removed(new: &Members, old: &Members, name: &str, causes: &mut Causes) {
    let at = SPEC.child(name);
    for (index, (container, before)) in objects(new, name).zip(objects(old, name)).enumerate() {
        let at = at.index(index);
        let at = at.child("resources");
        let (wanted, before) = (child_or_empty(container, "resources"), child_or_empty(before, "resources"));
        for (list, detail) in [
            ("requests", "resource requests cannot be removed"),
            ("limits", "resource limits cannot be removed"),
        ] {
            if any_removed(wanted, before, list) {
                causes.forbidden(&at.child(list), detail);
            }
        }
    }
}

fn any_removed(new: &Members, old: &Members, list: &str) -> bool {
    let new = child_or_empty(new, list);
    child_or_empty(old, list).keys().any(|resource| !new.contains_key(resource))
}

/// Nothing else of a container changes. Those in `rest` become as before where they may differ.
fn of_containers(rest: &mut Members, old: &Members, name: &str, causes: &mut Causes) {
    const TYPE: (&str, &str) = ("core/v1", "Container");
    let at = SPEC.child(name);
    let containers = list_mut(rest, name).iter_mut().filter_map(Value::as_object_mut);
    for (index, (container, before)) in containers.zip(objects(old, name)).enumerate() {
        let modified = !same_of(TYPE, container, before);
        let resources = child_made(container, "resources");
        only_others(resources, child_or_empty(before, "resources"));
        // Upstream makes them anew of both lists: claims are not looked at, and who had some may not be
        // resized.
        resources.remove("claims");
        let others = !same_of(TYPE, container, before);
        if name == "containers" {
            if others {
                causes.forbidden(&SPEC, ONLY);
            }
            continue;
        }
        if others {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            causes.forbidden(&at.index(index), detail);
        }
        let restarts =
            objects(container, "resizePolicy").any(|of| text(of, "restartPolicy") == "RestartContainer");
        if modified && restarts && text(container, "restartPolicy") != "Always" {
            let detail =
                "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            causes.forbidden(&at.index(index), detail);
        }
    }
}

/// Makes cpu and memory what they were, so that only what else changed is left.
fn only_others(resources: &mut Members, old: &Members) {
    for name in ["requests", "limits"] {
        let before = child_or_empty(old, name);
        let list = child_made(resources, name);
        take_over(list, before, "cpu");
        take_over(list, before, "memory");
        if list.is_empty() {
            resources.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_kubelet_that_does_not_say_what_runs_has_cannot_resize_it() {
        let waits = json!({"state": {"waiting": {}}});
        let runs = |more: Value| json!({"state": {"running": {}}, "resources": more});
        let silent = json!({"state": {"running": {}}});
        for (statuses, expected) in [
            (json!([]), true),
            (json!([waits]), true),
            (json!([waits, silent]), false),
            (json!([silent, runs(json!({}))]), false),
            (json!([runs(json!({})), silent]), true),
        ] {
            let pod = json!({
                "metadata": {"name": "p"},
                "spec": {"containers": []},
                "status": {"qosClass": "BestEffort", "containerStatuses": statuses},
            });
            let pod = pod.as_object().expect("an object");
            let mut causes = Causes::default();
            validate_update(pod, pod, &mut causes);
            let found: Vec<String> = causes.into_vec().into_iter().map(|cause| cause.message).collect();
            let refused = ["Forbidden: Pod running on node without support for resize"];
            assert_eq!(found, if expected { &[][..] } else { &refused[..] }, "{statuses}");
        }
    }
}
