//! What each resource and subresource resets is what upstream's strategies say, read out of their source.

use std::collections::{BTreeMap, BTreeSet};

use forebay_fieldmanager::{custom_reset_fields, reset_fields};
use forebay_merge::{Element, Filter, Matcher, Set};
use forebay_schema::builtin::table;
use serde_json::Value;

use crate::go;

/// Packages that are not named for their resource.
const RESOURCES: [(&str, &str); 3] = [
    ("certificates", "certificatesigningrequest"),
    ("storagemigration", "storageversionmigration"),
    ("storageversion", "storageversion"),
];

fn subresource(receiver: &str) -> &'static str {
    match receiver.to_lowercase() {
        of if of.contains("status") => "status",
        of if of.contains("approval") => "approval",
        of if of.contains("finalize") => "finalize",
        _ => "",
    }
}

/// The paths that a filter leaves out.
fn excluded(filter: &Filter) -> BTreeSet<String> {
    let Filter::Exclude(set) = filter else { panic!("{filter:?}") };
    let mut paths = BTreeSet::new();
    set.for_each(|path| {
        paths.insert(path.iter().filter_map(Element::name).collect::<Vec<_>>().join("."));
    });
    paths
}

/// resource and subresource -> apiVersion -> paths.
type Resets = BTreeMap<(String, String), BTreeMap<String, BTreeSet<String>>>;

#[test]
fn writes_reset_what_upstreams_strategies_say() {
    let Some(sources) = go::strategies() else { return };
    let mut asked = vec!["resets"];
    asked.extend(sources.iter().map(|dir| dir.to_str().expect("a path")));
    let Some(answers) = go::ask(&asked, "") else { return };
    let mut theirs = Resets::new();
    for answer in &answers {
        let package = answer["package"].as_str().expect("a package");
        let singular =
            RESOURCES.iter().find(|(name, _)| *name == package).map_or(package, |(_, singular)| singular);
        let of = subresource(answer["receiver"].as_str().expect("a receiver")).to_owned();
        let versions = theirs.entry((singular.to_owned(), of)).or_default();
        for (version, paths) in answer["fields"].as_object().expect("versions") {
            let paths = paths.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            versions.insert(version.clone(), paths.collect());
        }
    }
    let mut compared = 0;
    for resource in table().resources() {
        let group = if resource.group.is_empty() { String::new() } else { format!("{}/", resource.group) };
        let version = format!("{group}{}", resource.version);
        for of in ["", "status", "approval", "finalize"] {
            let expected = theirs.get(&(resource.singular.to_owned(), of.to_owned()));
            let expected = expected.and_then(|versions| versions.get(&version)).cloned();
            let ours = reset_fields(resource.group, resource.plural, of);
            let ours = ours.get(&version).map(excluded);
            assert_eq!(ours, expected, "{version} {} {of}", resource.plural);
            compared += usize::from(expected.is_some());
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn a_resize_and_ephemeral_containers_set_only_their_own() {
    let path = |steps: &[&'static str]| steps.iter().map(|step| Element::field(step)).collect::<Vec<_>>();
    let name = Value::from("a");
    let container = |of: &'static str| {
        let mut path = path(&["spec", "containers"]);
        path.extend([Element::keys(vec![("name", &name)]), Element::field(of)]);
        path
    };
    let set =
        Set::of_paths([container("resources"), container("image"), path(&["spec", "ephemeralContainers"])]);
    let resize = &reset_fields("", "pods", "resize")["v1"];
    assert_eq!(resize.of(&set), Set::of_paths([container("resources")]));
    let ephemeral = &reset_fields("", "pods", "ephemeralcontainers")["v1"];
    assert_eq!(ephemeral.of(&set), Set::of_paths([path(&["spec", "ephemeralContainers"])]));
    assert!(matches!(resize, Filter::Include(Matcher::Elements(_))));
}

#[test]
fn a_custom_resource_resets_its_status_if_it_has_one_of_its_own() {
    let versions = [("v1", true), ("v2", true), ("v3", false)];
    let of = |version, subresource| {
        let filters = custom_reset_fields("g", &versions, version, subresource);
        filters.iter().map(|(version, filter)| (version.clone(), excluded(filter))).collect::<Vec<_>>()
    };
    let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(of("v1", ""), [("g/v1".to_owned(), paths(&["status"]))]);
    assert_eq!(of("v3", ""), []);
    let both = paths(&["metadata", "spec"]);
    assert_eq!(of("v2", "status"), [("g/v1".to_owned(), both.clone()), ("g/v2".to_owned(), both)]);
    assert_eq!(of("v2", "scale"), []);
}
