//! What a pod's author is told though the pod is let through.
//!
//! In: a pod or a template that is valid. Out: warnings in kube-apiserver's words and order. Never: causes.
//!
//! Source: kubernetes v1.36.3 `pkg/api/pod`, `pkg/api/node`, `registry/core/pod`.

use super::app_armor;
use crate::address::ip_warning;
use crate::field::Path;
use crate::format;
use crate::rule::Update;
use crate::value::{Members, child, child_or_empty, int, objects, text};
use forebay_apimachinery::Seen;
use forebay_apimachinery::quantity;
use forebay_apimachinery::selector::label_value_faults;

/// Node labels that have another name by now.
const OLD_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

const OLD_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// What comes before the name of a container.
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const USE_SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// What is said of a pod; of an update of one only what its status has.
pub fn of_pod(pod: &Members, update: Option<&Update<'_>>, out: &mut Vec<String>) {
    match update {
        None => {
            name(pod, "the Pod's hostname", out);
            of_template(pod, None, out);
        }
        Some(update) if update.is_status() => {
            let (status, at) = (child_or_empty(pod, "status"), Path::root("status"));
            for list in ["podIPs", "hostIPs"] {
                let at = at.child(list);
                for (index, one) in objects(status, list).enumerate() {
                    out.extend(ip_warning(text(one, "ip"), &at.index(index).child("ip")));
                }
            }
        }
        Some(_) => {}
    }
}

/// What is said of an object whose pods get its name as part of theirs.
pub fn of_owner_name(object: &Members, out: &mut Vec<String>) {
    name(object, "Pod names and hostnames", out);
}

fn name(object: &Members, used_in: &str, out: &mut Vec<String>) {
    let faults = format::dns1123_label(text(child_or_empty(object, "metadata"), "name"));
    if !faults.is_empty() {
        out.push(format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        ));
    }
}

/// What is said of a pod's metadata and spec.
///
/// - `at`: where the template is; a pod is at the root.
pub fn of_template(template: &Members, at: Option<&Path<'_>>, out: &mut Vec<String>) {
    let (meta_at, spec_at) = match at {
        Some(at) => (at.child("metadata"), at.child("spec")),
        None => (Path::root("metadata"), Path::root("spec")),
    };
    // Of pods it is said before the annotation becomes a field.
    let at_template = at.is_some();
    let (spec, annotations) = (
        child_or_empty(template, "spec"),
        child_or_empty(child_or_empty(template, "metadata"), "annotations"),
    );
    let annotations_at = meta_at.child("annotations");
    node_labels(spec, &spec_at, out);
    for (key, why) in OLD_ANNOTATIONS.iter().filter(|(key, _)| annotations.contains_key(*key)) {
        out.push(format!("{}: {why}", annotations_at.key(key)));
    }
    volumes(spec, &spec_at, out);
    super::overlaps::warn(spec, out);
    twice(spec, "hostAliases", "ip", &spec_at, out);
    twice(spec, "imagePullSecrets", "name", &spec_at, out);
    let at = spec_at.child("imagePullSecrets");
    for (index, _) in
        objects(spec, "imagePullSecrets").enumerate().filter(|(_, one)| text(one, "name").is_empty())
    {
        out.push(format!("{}: invalid empty name \"\"", at.index(index).child("name")));
    }
    fractions(child_or_empty(spec, "overhead"), &spec_at.child("overhead"), out);
    let security = child_or_empty(spec, "securityContext");
    if !security.contains_key("seccompProfile") && annotations.contains_key(SECCOMP_POD) {
        out.push(format!("{}: {USE_SECCOMP}", annotations_at.key(SECCOMP_POD)));
    }
    each_container(spec, &spec_at, |container, at| {
        annotated(container, annotations, &annotations_at, security, at_template, out);
        for list in ["limits", "requests"] {
            let amounts = child_or_empty(child_or_empty(container, "resources"), list);
            fraction(amounts, "memory", &at.child("resources").child(list), out);
        }
        for list in ["limits", "requests"] {
            let amounts = child_or_empty(child_or_empty(container, "resources"), list);
            fraction(amounts, "ephemeral-storage", &at.child("resources").child(list), out);
        }
        variables(container, at, out);
    });
    super::ports::warn(spec, &spec_at, out);
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let at = spec_at.child("terminationGracePeriodSeconds");
        out.push(format!("{at}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pod_affinity(spec, &spec_at, out);
    let at = spec_at.child("dnsConfig");
    let servers = child_or_empty(spec, "dnsConfig").get("nameservers").and_then(|list| list.as_array());
    for (index, server) in servers.into_iter().flatten().enumerate() {
        out.extend(ip_warning(server.as_str().unwrap_or(""), &at.child("nameservers").index(index)));
    }
    let at = spec_at.child("hostAliases");
    for (index, alias) in objects(spec, "hostAliases").enumerate() {
        out.extend(ip_warning(text(alias, "ip"), &at.index(index).child("ip")));
    }
}

/// All containers, in the order in which upstream visits them.
pub fn each_container(spec: &Members, at: &Path<'_>, mut see: impl FnMut(&Members, &Path<'_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let at = at.child(list);
        objects(spec, list).enumerate().for_each(|(index, container)| see(container, &at.index(index)));
    }
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(label, _)| *label == key).map(|(_, why)| *why)
}

fn node_labels(spec: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    for key in child_or_empty(spec, "nodeSelector").keys() {
        out.extend(old_label(key).map(|why| format!("{}: {why}", at.child("nodeSelector").key(key))));
    }
    let affinity_at = at.child("affinity");
    let (node_at, node) =
        (affinity_at.child("nodeAffinity"), child_or_empty(child_or_empty(spec, "affinity"), "nodeAffinity"));
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let required_at = node_at.child(required);
    let terms_at = required_at.child("nodeSelectorTerms");
    for (index, term) in objects(child_or_empty(node, required), "nodeSelectorTerms").enumerate() {
        node_term(term, Values::AsTheyAre, &terms_at.index(index), out);
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let preferred_at = node_at.child(preferred);
    for (index, term) in objects(node, preferred).enumerate() {
        let at = preferred_at.index(index);
        node_term(child_or_empty(term, "preference"), Values::Labels, &at.child("preference"), out);
    }
    let spread_at = at.child("topologySpreadConstraints");
    for (index, constraint) in objects(spec, "topologySpreadConstraints").enumerate() {
        let (at, key) = (spread_at.index(index), text(constraint, "topologyKey"));
        out.extend(old_label(key).map(|why| format!("{}: {key} is {why}", at.child("topologyKey"))));
        if !constraint.contains_key("labelSelector") {
            out.push(format!("{}: {NO_SELECTOR}", at.child("labelSelector")));
        }
    }
}

/// Whether the values of a node selector have to be those of labels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Values {
    AsTheyAre,
    Labels,
}

/// What is said of one term of a node selector.
pub fn node_term(term: &Members, values: Values, at: &Path<'_>, out: &mut Vec<String>) {
    let at = at.child("matchExpressions");
    for (index, expression) in objects(term, "matchExpressions").enumerate() {
        let (at, key) = (at.index(index), text(expression, "key"));
        out.extend(old_label(key).map(|why| format!("{}: {key} is {why}", at.child("key"))));
        if values == Values::AsTheyAre {
            continue;
        }
        let listed = expression.get("values").and_then(|list| list.as_array());
        for (place, value) in listed.into_iter().flatten().filter_map(|value| value.as_str()).enumerate() {
            for fault in label_value_faults(value) {
                out.push(format!("{}: {value} is invalid, {fault}", at.child("values").index(place)));
            }
        }
    }
}

fn volumes(spec: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    let at = at.child("volumes");
    for (index, volume) in objects(spec, "volumes").enumerate() {
        let at = at.index(index);
        let (before, after) = OLD_VOLUMES.split_at(7);
        let old = |rows: &[(&str, &str)], out: &mut Vec<String>| {
            for (kind, why) in rows.iter().filter(|(kind, _)| volume.contains_key(*kind)) {
                // The type is called another way than its member.
                let kind = if *kind == "storageos" { "storageOS" } else { kind };
                out.push(format!("{}: {why}", at.child(kind)));
            }
        };
        old(before, out);
        let template = child_or_empty(child_or_empty(volume, "ephemeral"), "volumeClaimTemplate");
        let (at_ephemeral, spec) = (at.child("ephemeral"), child_or_empty(template, "spec"));
        claim_spec(spec, &at_ephemeral.child("volumeClaimTemplate").child("spec"), out);
        old(after, out);
    }
}

/// What is said of a claim's spec.
pub fn claim_spec(spec: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    let (resources, at) = (child_or_empty(spec, "resources"), at.child("resources"));
    for list in ["requests", "limits"] {
        fraction(child_or_empty(resources, list), "storage", &at.child(list), out);
    }
}

fn fractions(amounts: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    fraction(amounts, "memory", at, out);
    fraction(amounts, "ephemeral-storage", at, out);
}

fn fraction(amounts: &Members, resource: &str, at: &Path<'_>, out: &mut Vec<String>) {
    let Some(value) = amounts.get(resource) else { return };
    if !quantity::is_whole(quantity::of(value)) {
        let shown = value.as_str().unwrap_or("");
        out.push(format!(
            "{}: fractional byte value {shown:?} is invalid, must be an integer",
            at.key(resource)
        ));
    }
}

/// Items of a list whose `member` an earlier one has.
fn twice(spec: &Members, list: &str, member: &str, at: &Path<'_>, out: &mut Vec<String>) {
    let (at, mut seen) = (at.child(list), Seen::default());
    for (index, item) in objects(spec, list).enumerate() {
        let value = text(item, member);
        if seen.again(value) {
            out.push(format!("{}: duplicate {member} {value:?}", at.index(index).child(member)));
        }
    }
}

fn annotated(
    container: &Members,
    annotations: &Members,
    at: &Path<'_>,
    pod_security: &Members,
    in_template: bool,
    out: &mut Vec<String>,
) {
    let (name, security) = (text(container, "name"), child_or_empty(container, "securityContext"));
    let seccomp = format!("{SECCOMP_CONTAINER}{name}");
    if !security.contains_key("seccompProfile") && annotations.contains_key(&seccomp) {
        out.push(format!("{}: {USE_SECCOMP}", at.key(&seccomp)));
    }
    let Some(annotation) = app_armor::annotation(annotations, name) else { return };
    let is_same = |profile| app_armor::is_profile(profile, annotation);
    let same = child(pod_security, "appArmorProfile").is_some_and(is_same);
    if in_template && !security.contains_key("appArmorProfile") && !same {
        out.push(app_armor::use_field(at, name));
    }
}

/// Variables that hide an earlier one of their name; `X="$(X)more"` does not.
fn variables(container: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    let (at, mut seen) = (at.child("env"), Seen::default());
    for (index, variable) in objects(container, "env").enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        if !seen.again(name) {
            continue;
        }
        let earlier = format!("$({name})");
        // Once: a text in the one after it.
        if variable.contains_key("valueFrom") || value == earlier || !value.contains(&earlier) {
            out.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                at.index(index)
            ));
        }
    }
}

fn pod_affinity(spec: &Members, at: &Path<'_>, out: &mut Vec<String>) {
    let (affinity, at) = (child_or_empty(spec, "affinity"), at.child("affinity"));
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (affinity, at) = (child_or_empty(affinity, kind), at.child(kind));
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in objects(affinity, required).enumerate() {
            if !term.contains_key("labelSelector") {
                out.push(format!(
                    "{}: {NO_SELECTOR}",
                    at.child(required).index(index).child("labelSelector")
                ));
            }
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in objects(affinity, preferred).enumerate() {
            if !child_or_empty(term, "podAffinityTerm").contains_key("labelSelector") {
                let at = at.child(preferred);
                let at = at.index(index);
                out.push(format!("{}: {NO_SELECTOR}", at.child("podAffinityTerm").child("labelSelector")));
            }
        }
    }
}
