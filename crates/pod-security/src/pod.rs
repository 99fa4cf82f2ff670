//! Where an object has its pod, and what of a pod may change.
//!
//! Source: pod-security-admission v0.36.3 `admission/admission.go`.

use forebay_strategy::value::{Members, child, child_or_empty, list, objects, text};

/// The metadata and the spec of a pod, or of the template of what makes pods; none where there is no
/// template.
pub fn spec_and_meta<'o>(
    group: &str,
    resource: &str,
    object: &'o Members,
) -> Option<(&'o Members, &'o Members)> {
    let spec = child_or_empty(object, "spec");
    let holder = match (group, resource) {
        ("", "pods") => object,
        ("", "podtemplates") => child(object, "template")?,
        ("", "replicationcontrollers") => child(spec, "template")?,
        ("batch", "cronjobs") => {
            child(child_or_empty(child_or_empty(spec, "jobTemplate"), "spec"), "template")?
        }
        ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets") | ("batch", "jobs") => {
            child(spec, "template")?
        }
        _ => return None,
    };
    Some((child_or_empty(holder, "metadata"), child_or_empty(holder, "spec")))
}

/// Whether a pod runs other images than before, or other containers.
pub fn changes_images(new: &Members, old: &Members) -> bool {
    let (new, old) = (child_or_empty(new, "spec"), child_or_empty(old, "spec"));
    let changes = |name: &str| {
        let same = |(one, other): (&Members, &Members)| text(one, "image") == text(other, "image");
        list(new, name).len() != list(old, name).len()
            || !objects(new, name).zip(objects(old, name)).all(same)
    };
    let known: std::collections::HashMap<&str, &str> =
        objects(old, "ephemeralContainers").map(|one| (text(one, "name"), text(one, "image"))).collect();
    let is_other = |one: &Members| known.get(text(one, "name")) != Some(&text(one, "image"));
    // Once: for the whole object.
    changes("containers") || changes("initContainers") || objects(new, "ephemeralContainers").any(is_other)
}
