//! AppArmor profiles that annotations name, as pods said it before there was a field.
//!
//! In: a new pod as its author sent it. Out: the profiles in the fields of its containers, warnings, causes.
//! Never: changes an update or a template.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod`, `apis/core/validation`; KEP-24.

use std::collections::HashMap;

use forebay_apimachinery::Seen;
use serde_json::{Value, json};

use super::security::PROFILE_BYTES_MAX;
use super::warnings::each_container;
use crate::field::{Causes, Path};
use crate::value::{Members, child, child_made, child_mut, child_or_empty, objects, objects_mut, set, text};

/// What comes before the name of a container.
pub const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What the annotation of a container says, if it has one.
pub fn annotation<'o>(annotations: &'o Members, container: &str) -> Option<&'o str> {
    annotations.get(&format!("{PREFIX}{container}")).and_then(Value::as_str)
}

/// What is said of an annotation that no field goes with.
pub fn use_field(annotations_at: &Path<'_>, container: &str) -> String {
    let key = format!("{PREFIX}{container}");
    let at = annotations_at.key(&key);
    format!("{at}: deprecated since v1.30; use the \"appArmorProfile\" field instead")
}

/// Whether a profile is the one that an annotation names.
pub fn is_profile(profile: &Members, annotation: &str) -> bool {
    match (text(profile, "type"), annotation) {
        ("RuntimeDefault", "runtime/default") | ("Unconfined", "unconfined") => true,
        ("Localhost", name) => name.strip_prefix("localhost/") == Some(text(profile, "localhostProfile")),
        _ => false,
    }
}

/// The profile that an annotation names; none when that is no valid one.
fn named(annotation: &str) -> Option<Value> {
    match annotation {
        "runtime/default" => Some(json!({ "type": "RuntimeDefault" })),
        "unconfined" => Some(json!({ "type": "Unconfined" })),
        other => {
            let name = other.strip_prefix("localhost/")?;
            let is_valid = !name.is_empty() && name.trim() == name && name.len() <= PROFILE_BYTES_MAX;
            is_valid.then(|| json!({ "type": "Localhost", "localhostProfile": name }))
        }
    }
}

/// The annotations of a new pod, unless none is about AppArmor or the pod is one of Windows.
fn of_interest(pod: &Members) -> Option<&Members> {
    let annotations = child_or_empty(child_or_empty(pod, "metadata"), "annotations");
    let is_windows = text(child_or_empty(child_or_empty(pod, "spec"), "os"), "name") == "windows";
    (!is_windows && annotations.keys().any(|key| key.starts_with(PREFIX))).then_some(annotations)
}

fn pod_profile(spec: &Members) -> Option<&Members> {
    child(child_or_empty(spec, "securityContext"), "appArmorProfile")
}

/// What the author of a new pod is told, before [`to_fields`] makes the fields say it.
pub fn warn(pod: &Members, out: &mut Vec<String>) {
    let Some(annotations) = of_interest(pod) else { return };
    let (spec, meta) = (child_or_empty(pod, "spec"), Path::root("metadata"));
    let (of_pod, at) = (pod_profile(spec), meta.child("annotations"));
    // A second container of a name is refused later, and is not worth a text of its own.
    let mut names = Seen::default();
    for container in LISTS.into_iter().flat_map(|list| objects(spec, list)) {
        let name = text(container, "name");
        let Some(annotation) = annotation(annotations, name) else { continue };
        let has_field = child_or_empty(container, "securityContext").contains_key("appArmorProfile");
        let same = named(annotation).is_some() && of_pod.is_some_and(|of| is_profile(of, annotation));
        if !has_field && !same && !names.again(name) {
            out.push(use_field(&at, name));
        }
    }
}

/// Containers without a profile get the one that their annotation names, where the pod does not say the same.
pub fn to_fields(pod: &mut Members) {
    let Some(annotations) = of_interest(pod) else { return };
    // By name. No more is copied than was sent: each profile goes to one container.
    let mut profiles: HashMap<String, Value> = HashMap::new();
    let of_pod = pod_profile(child_or_empty(pod, "spec"));
    for (key, value) in annotations {
        let (Some(name), Some(annotation)) = (key.strip_prefix(PREFIX), value.as_str()) else { continue };
        if !of_pod.is_some_and(|of_pod| is_profile(of_pod, annotation)) {
            profiles.extend(named(annotation).map(|profile| (name.to_string(), profile)));
        }
    }
    let Some(spec) = child_mut(pod, "spec") else { return };
    for list in LISTS {
        for container in objects_mut(spec, list) {
            let has_field = child_or_empty(container, "securityContext").contains_key("appArmorProfile");
            let profile = profiles.remove(text(container, "name")).filter(|_| !has_field);
            if profile.is_some() {
                set(child_made(container, "securityContext"), "appArmorProfile", profile);
            }
        }
    }
}

/// What the annotations of a pod or of a template may say.
pub fn annotations(annotations: &Members, spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    if !annotations.keys().any(|key| key.starts_with(PREFIX)) {
        return;
    }
    let names: Seen<&str> =
        LISTS.into_iter().flat_map(|list| objects(spec, list)).map(|of| text(of, "name")).collect();
    for (key, value) in annotations {
        let (Some(name), Some(profile)) = (key.strip_prefix(PREFIX), value.as_str()) else { continue };
        if !names.has(name) {
            causes.invalid(&at.key(key), name, "container not found");
        }
        let is_known = matches!(profile, "" | "runtime/default" | "unconfined");
        if !is_known && !profile.starts_with("localhost/") {
            let detail = format!("invalid AppArmor profile name: {profile:?}");
            causes.invalid(&at.key(key), profile, &detail);
        }
    }
}

/// Where a container has both an annotation and a field, its own or the pod's, these say the same.
pub fn fields_match(annotations: &Members, spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let is_windows = text(child_or_empty(spec, "os"), "name") == "windows";
    if is_windows || !annotations.keys().any(|key| key.starts_with(PREFIX)) {
        return;
    }
    let of_pod = pod_profile(spec);
    each_container(spec, at, |container, at| {
        let own = child(child_or_empty(container, "securityContext"), "appArmorProfile");
        let Some(profile) = own.or(of_pod) else { return };
        let Some(annotation) = annotation(annotations, text(container, "name")) else { return };
        let at = at.child("securityContext");
        let at = at.child("appArmorProfile");
        match text(profile, "type") {
            "Localhost" if annotation.starts_with("localhost/") => {
                let has_name = profile.contains_key("localhostProfile");
                if !has_name || !is_profile(profile, annotation) {
                    let detail = "apparmor profile in annotation and field must match";
                    causes.forbidden(&at.child("localhostProfile"), detail);
                }
            }
            "Localhost" | "RuntimeDefault" | "Unconfined" if !is_profile(profile, annotation) => {
                causes.forbidden(&at.child("type"), "apparmor type in annotation and field must match");
            }
            _ => {}
        }
    });
}
