//! Fields that a write through a resource or a subresource does not set: they are nobody's by it.
//!
//! In: a resource, its subresource. Out: for each version what counts of a set. Never: resets them, which
//! `strategy` does.
//!
//! Source: the strategies of Kubernetes v1.36.3, which the tests read (`tests/upstream/reset.rs`).

use std::collections::BTreeMap;

use forebay_merge::{Element, Filter, Matcher, Set};
use forebay_schema::builtin::table;

use crate::versions::api_version;

const STATUS: &[&str] = &["status"];
const SPEC: &[&str] = &["spec"];
const SPEC_AND_METADATA: &[&str] = &["metadata", "spec"];

/// apiVersion -> what counts of a set.
pub type Filters = BTreeMap<String, Filter>;

/// Group, resource, what a write of it does not set, what a write of its status does not.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const ROWS: &[Row] = &[
    ("", "namespaces", STATUS, SPEC),
    ("", "nodes", STATUS, SPEC),
    ("", "persistentvolumeclaims", STATUS, SPEC),
    ("", "persistentvolumes", STATUS, SPEC),
    ("", "pods", STATUS, &["metadata.deletionTimestamp", "metadata.ownerReferences", "spec"]),
    ("", "replicationcontrollers", STATUS, SPEC),
    ("", "resourcequotas", STATUS, SPEC),
    ("", "services", STATUS, SPEC),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", STATUS, SPEC_AND_METADATA),
    ("apiextensions.k8s.io", "customresourcedefinitions", STATUS, SPEC),
    ("apiregistration.k8s.io", "apiservices", STATUS, SPEC_AND_METADATA),
    ("apps", "daemonsets", STATUS, SPEC),
    ("apps", "deployments", STATUS, &["metadata.labels", "spec"]),
    ("apps", "replicasets", STATUS, SPEC),
    ("apps", "statefulsets", STATUS, SPEC),
    ("autoscaling", "horizontalpodautoscalers", STATUS, SPEC),
    ("batch", "cronjobs", STATUS, SPEC),
    ("batch", "jobs", STATUS, SPEC),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        &["spec", "status"],
        &["spec", "status.conditions"],
    ),
    ("certificates.k8s.io", "podcertificaterequests", &[], SPEC),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", STATUS, SPEC_AND_METADATA),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", STATUS, SPEC_AND_METADATA),
    ("internal.apiserver.k8s.io", "storageversions", STATUS, SPEC_AND_METADATA),
    ("networking.k8s.io", "ingresses", STATUS, SPEC),
    ("networking.k8s.io", "servicecidrs", STATUS, SPEC_AND_METADATA),
    ("policy", "poddisruptionbudgets", STATUS, SPEC),
    ("resource.k8s.io", "devicetaintrules", STATUS, SPEC_AND_METADATA),
    ("resource.k8s.io", "resourceclaims", STATUS, SPEC_AND_METADATA),
    ("resource.k8s.io", "resourcepoolstatusrequests", STATUS, SPEC_AND_METADATA),
    ("scheduling.k8s.io", "podgroups", STATUS, SPEC_AND_METADATA),
    ("storage.k8s.io", "volumeattachments", STATUS, SPEC_AND_METADATA),
    ("storagemigration.k8s.io", "storageversionmigrations", STATUS, SPEC_AND_METADATA),
];

/// By apiVersion, what counts of a set when a built-in resource is written, in each version that is served.
///
/// - `group`: empty for the core group.
/// - `subresource`: empty for the resource itself.
pub fn reset_fields(group: &str, resource: &str, subresource: &str) -> Filters {
    let Some(filter) = filter_of(group, resource, subresource) else { return Filters::new() };
    let served =
        table().resources().iter().filter(|served| served.group == group && served.plural == resource);
    served.map(|served| (api_version(group, served.version), filter.clone())).collect()
}

/// The same of a custom resource in the version that a request writes.
///
/// - `versions`: the names of all, and whether they have a status of their own.
pub fn custom_reset_fields(
    group: &str,
    versions: &[(&str, bool)],
    version: &str,
    subresource: &str,
) -> Filters {
    let with_status = versions.iter().filter(|(_, has_status)| *has_status);
    let paths = match subresource {
        "" => STATUS,
        "status" => SPEC_AND_METADATA,
        _ => return Filters::new(),
    };
    // What is written through the resource itself is judged in its own version only.
    let counts = |name: &str| subresource == "status" || name == version;
    let filters = with_status.filter(|(name, _)| counts(name));
    filters.map(|(name, _)| (api_version(group, name), exclude(paths))).collect()
}

fn filter_of(group: &str, resource: &str, subresource: &str) -> Option<Filter> {
    match (group, resource, subresource) {
        ("certificates.k8s.io", "certificatesigningrequests", "approval") => {
            return Some(exclude(&["spec", "status.certificate"]));
        }
        ("", "namespaces", "finalize") => return Some(exclude(STATUS)),
        ("", "pods", "ephemeralcontainers") => return Some(include(&["spec.ephemeralContainers"])),
        ("", "pods", "resize") => return Some(include(RESIZED)),
        _ => {}
    }
    // Few: the table is the server's.
    let (_, _, resets, status_resets) = ROWS.iter().find(|row| row.0 == group && row.1 == resource)?;
    let paths = match subresource {
        "" => *resets,
        "status" => *status_resets,
        _ => return None,
    };
    (!paths.is_empty()).then(|| exclude(paths))
}

/// All that a resize sets; `*` is any item.
const RESIZED: &[&str] = &[
    "spec.containers.*.resources",
    "spec.containers.*.resizePolicy",
    "spec.initContainers.*.resources",
    "spec.initContainers.*.resizePolicy",
];

fn exclude(paths: &[&'static str]) -> Filter {
    Filter::Exclude(Set::of_paths(paths.iter().map(|path| path.split('.').map(Element::field).collect())))
}

fn include(paths: &[&'static str]) -> Filter {
    let prefix = |path: &&'static str| {
        let parts: Vec<_> = path.split('.').map(|part| (part != "*").then(|| Element::field(part))).collect();
        Matcher::prefix(parts.into_iter())
    };
    let matchers = paths.iter().map(prefix).reduce(Matcher::merge);
    Filter::Include(matchers.expect("a path"))
}
