//! Descriptions are of what is there, in words of our own, and enough of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use expect_test::expect;

use super::{Descriptions, references};
use crate::builtin::{Table, TypeId, TypeKind, table};

/// Kinds that people look up most, with all that stands in them.
const CHOSEN: [(&str, &str); 42] = [
    ("core/v1", "Pod"),
    ("core/v1", "ReplicationController"),
    ("core/v1", "Service"),
    ("core/v1", "ServiceAccount"),
    ("core/v1", "ConfigMap"),
    ("core/v1", "Secret"),
    ("core/v1", "PersistentVolumeClaim"),
    ("core/v1", "PersistentVolume"),
    ("core/v1", "Namespace"),
    ("core/v1", "Node"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("networking/v1", "Ingress"),
    ("networking/v1", "NetworkPolicy"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("rbac/v1", "Role"),
    ("rbac/v1", "ClusterRole"),
    ("rbac/v1", "RoleBinding"),
    ("rbac/v1", "ClusterRoleBinding"),
    ("apiextensions/v1", "CustomResourceDefinition"),
    ("apiextensions/v1", "ValidationRule"),
    ("core/v1", "Endpoints"),
    ("core/v1", "LimitRange"),
    ("core/v1", "ResourceQuota"),
    ("autoscaling/v1", "Scale"),
    ("coordination/v1", "Lease"),
    ("discovery/v1", "EndpointSlice"),
    ("networking/v1", "IngressClass"),
    ("node/v1", "RuntimeClass"),
    ("policy/v1", "PodDisruptionBudget"),
    ("scheduling/v1", "PriorityClass"),
    ("admissionregistration/v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration/v1", "ValidatingWebhookConfiguration"),
    ("core/v1", "PodList"),
    ("core/v1", "ServiceList"),
    ("apps/v1", "DeploymentList"),
    ("batch/v1", "JobList"),
    ("rbac/v1", "RoleList"),
];

/// Volumes of systems that CSI drivers took over from, or that are not served any more.
const LEFT_OUT: [&str; 20] = [
    "AWSElasticBlockStore",
    "AzureDisk",
    "AzureFile",
    "CephFS",
    "Cinder",
    "FC",
    "Flex",
    "Flocker",
    "GCEPersistentDisk",
    "GitRepo",
    "Glusterfs",
    "ISCSI",
    "NodeConfig",
    "ConfigMapNodeConfigSource",
    "PhotonPersistentDisk",
    "Portworx",
    "Quobyte",
    "RBD",
    "ScaleIO",
    "StorageOS",
];

#[test]
fn the_kinds_that_people_look_up_most_are_described_to_the_last_field() {
    let (table, descriptions) = (table(), Descriptions::of(table()));
    let mut open: Vec<TypeId> =
        CHOSEN.iter().map(|(package, name)| table.type_named(package, name).expect(name)).collect();
    let mut reached = BTreeSet::new();
    while let Some(ty) = open.pop() {
        if table.ty(ty).kind == TypeKind::Struct && reached.insert(ty) {
            open.extend(references(table, ty));
        }
    }
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let (mut fields, mut left_out) = (0, 0);
    for ty in reached {
        let name = table.ty(ty).name;
        let is_left_out = LEFT_OUT.iter().chain(&["Vsphere"]).any(|prefix| name.starts_with(prefix));
        if descriptions.of_type(ty).is_none() && !is_left_out && !name.ends_with("List") {
            missing.entry(name).or_default().push("");
        }
        for field in table.members(ty) {
            match descriptions.of_field(table, ty, field.name) {
                Some(_) => fields += 1,
                None if is_left_out => left_out += 1,
                None => missing.entry(name).or_default().push(field.name),
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    expect!["1424 described, 161 left out"].assert_eq(&format!("{fields} described, {left_out} left out"));
}

/// Every text, with where it stands.
fn texts() -> Vec<(String, &'static str)> {
    let (mut out, mut of) = (Vec::new(), "");
    for line in super::descriptions::TEXT.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(": ") {
            Some((head, text)) if head.starts_with(' ') => out.push((format!("{of}.{}", head.trim()), text)),
            Some((head, text)) => {
                of = head;
                out.push((of.to_owned(), text));
            }
            None => of = line,
        }
    }
    out
}

#[test]
fn a_description_is_whole_sentences_and_short() {
    let wrong = |text: &str| {
        let first = text.trim_start_matches('`').chars().next();
        // A value that is named begins as it is written.
        let begins = first.is_some_and(|first| !first.is_lowercase()) || text.starts_with('`');
        !begins || !text.ends_with('.') || text.chars().count() > 240
    };
    let found: Vec<_> = texts().into_iter().filter(|(_, text)| wrong(text)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// So many words in a row are somebody's sentence; fewer are what a thing is called.
const WORDS_IN_A_ROW: usize = 9;

/// A sentence of so many words may be the only one that there is.
const WORDS_OF_A_FACT: usize = 4;

#[test]
fn no_description_is_upstreams() {
    let modules = ["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver"];
    let is_wanted = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name == "types_swagger_doc_generated.go" || (name.starts_with("types") && name.ends_with(".go"))
    };
    let Some(sources) = forebay_golden::sources(&modules, is_wanted) else { return };
    let (mut sentences, mut rows) = (HashSet::new(), HashSet::new());
    for text in sources.iter().flat_map(|source| upstreams(source)) {
        sentences.extend(sentences_of(&text).into_iter().map(|words| words.join(" ")));
        rows.extend(words(&text).windows(WORDS_IN_A_ROW).map(|row| row.join(" ")));
    }
    assert!(sentences.len() > 5_000 && rows.len() > 20_000, "{} and {}", sentences.len(), rows.len());
    let is_theirs = |text: &str| {
        sentences_of(text)
            .iter()
            .any(|words| words.len() > WORDS_OF_A_FACT && sentences.contains(&words.join(" ")))
            || words(text).windows(WORDS_IN_A_ROW).any(|row| rows.contains(&row.join(" ")))
    };
    let theirs: Vec<String> = sources.iter().flat_map(|source| upstreams(source)).collect();
    assert!(theirs.iter().filter(|text| words(text).len() > WORDS_IN_A_ROW).all(|text| is_theirs(text)));
    let found: Vec<_> = texts().into_iter().filter(|(_, text)| is_theirs(text)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The texts of a Go file: literals of the generated maps, and comments, paragraph by paragraph.
fn upstreams(source: &str) -> Vec<String> {
    let (mut out, mut comment) = (Vec::new(), String::new());
    for line in source.lines().map(str::trim) {
        match (line.strip_prefix("//"), line.split_once("\": ")) {
            (Some(text), _) if !text.trim().is_empty() => {
                comment.push_str(text);
                continue;
            }
            (_, Some((_, literal))) => {
                out.extend(literal.replace("\\\"", "'").split("\\n").map(str::to_owned))
            }
            _ => {}
        }
        if !comment.is_empty() {
            out.push(std::mem::take(&mut comment));
        }
    }
    out
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase).collect()
}

fn sentences_of(text: &str) -> Vec<Vec<String>> {
    let ends = text.split(['.', ';', '\n']).map(words);
    ends.filter(|words| !words.is_empty()).collect()
}

/// What is said of the field of a type.
fn said(table: &Table, package: &str, name: &str, field: &str) -> Option<&'static str> {
    let ty = table.type_named(package, name).expect(name);
    Descriptions::of(table).of_field(table, ty, field)
}

#[test]
fn a_type_that_is_like_another_says_the_same_but_where_it_has_words_of_its_own() {
    let table = table();
    let container = said(table, "core/v1", "Container", "image");
    assert!(container.is_some());
    assert_eq!(said(table, "core/v1", "EphemeralContainer", "image"), container);
    let condition = said(table, "meta/v1", "Condition", "reason");
    assert_eq!(said(table, "apps/v1", "DeploymentCondition", "reason"), condition);
    let volume = said(table, "core/v1", "Volume", "csi");
    assert_ne!(said(table, "core/v1", "PersistentVolumeSpec", "csi"), volume);
}

#[test]
fn kinds_and_lists_say_what_every_object_has() {
    let table = table();
    for kind in ["Event", "EventList", "Pod"] {
        let said = said(table, "core/v1", kind, "apiVersion").expect(kind);
        assert!(said.starts_with("APIVersion defines "), "{said}");
    }
    assert_ne!(said(table, "core/v1", "Event", "metadata"), said(table, "core/v1", "EventList", "metadata"));
    // The reference to an object is none.
    assert_eq!(said(table, "core/v1", "EndpointAddress", "apiVersion"), None);
    assert_eq!(said(table, "meta/v1", "Status", "status"), None);
}
