//! The documents of v2 in both forms: every built-in resource.

use serde_json::Value;

use super::contents::subjects;
use super::document::{Name, make};
use super::limits::KEPT_BYTES_MAX;
use super::proto::decode::{Field, fields, find, find_all, text};
use crate::built_ins;

/// A document in the plain.
fn made(name: &Name) -> Vec<u8> {
    let (mut plain, mut out) = (make(&built_ins(), name, &[]).plain(), Vec::new());
    while plain.fill(1 << 16, &mut out) {}
    out
}

#[test]
fn v2_says_the_same_in_protobuf() {
    let document: Value = serde_json::from_slice(&made(&Name::V2Json)).expect("JSON");
    let bytes = made(&Name::V2Proto);
    let message = fields(&bytes);
    assert_eq!(text(&message, 1), "2.0");
    for (field, entries, member) in [(8, 2, "paths"), (9, 1, "definitions"), (10, 1, "parameters")] {
        let maps = find_all(&message, field).into_iter().map(fields);
        let entries =
            maps.flat_map(|map| find_all(&map, entries).into_iter().map(fields).collect::<Vec<_>>());
        let names: Vec<String> = entries.map(|entry| text(&entry, 1).to_owned()).collect();
        let want: Vec<&String> = document[member].as_object().expect("a map").keys().collect();
        assert_eq!(names.iter().collect::<Vec<_>>(), want, "{member}");
    }
}

/// A definition in protobuf.
fn definition<'b>(message: &[Field<'b>], name: &str) -> Vec<Field<'b>> {
    let maps = find_all(message, 9).into_iter().map(fields);
    let named = maps.map(|map| fields(find(&map, 1).expect("an entry")));
    let found = named.into_iter().find(|named| text(named, 1) == name);
    fields(find(&found.expect("the definition"), 2).expect("a schema"))
}

#[test]
fn a_definition_in_protobuf_has_types_references_and_extensions() {
    let bytes = made(&Name::V2Proto);
    let message = fields(&bytes);
    let deployment = definition(&message, "io.k8s.api.apps.v1.Deployment");
    let kinds = fields(find(&deployment, 22).expect("a type"));
    assert_eq!(text(&kinds, 1), "object");
    let properties = fields(find(&deployment, 25).expect("properties"));
    let properties: Vec<_> = find_all(&properties, 1).into_iter().map(fields).collect();
    let names: Vec<&str> = properties.iter().map(|property| text(property, 1)).collect();
    assert_eq!(names, ["apiVersion", "kind", "metadata", "spec", "status"]);
    let spec = fields(find(&properties[3], 2).expect("a schema"));
    assert_eq!(text(&spec, 1), "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
    let extension = fields(find(&deployment, 31).expect("an extension"));
    assert_eq!(text(&extension, 1), "x-kubernetes-group-version-kind");
    let value = fields(find(&extension, 2).expect("a value"));
    assert_eq!(text(&value, 2), "[{\"group\":\"apps\",\"kind\":\"Deployment\",\"version\":\"v1\"}]\n");
}

#[test]
fn all_documents_of_built_in_kinds_are_kept_at_once() {
    let catalog = built_ins();
    let names = subjects(&catalog).into_iter().map(Name::V3).chain([Name::V2Json, Name::V2Proto]);
    let (count, bytes) =
        names.fold((0, 0), |(count, bytes), name| (count + 1, bytes + make(&catalog, &name, &[]).gzip.len()));
    println!("{count} documents, {bytes} bytes");
    assert!(count > 40 && bytes < KEPT_BYTES_MAX / 4, "{count} documents, {bytes} bytes");
}

#[test]
fn what_is_described_is_described_in_every_form() {
    let document: Value = serde_json::from_slice(&made(&Name::V2Json)).expect("JSON");
    let said =
        document["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["description"].as_str();
    let said = said.expect("a description");
    let bytes = made(&Name::V2Proto);
    let pod = definition(&fields(&bytes), "io.k8s.api.core.v1.Pod");
    let properties = fields(find(&pod, 25).expect("properties"));
    let properties: Vec<_> = find_all(&properties, 1).into_iter().map(fields).collect();
    let spec = properties.iter().find(|property| text(property, 1) == "spec").expect("a spec");
    assert_eq!(text(&fields(find(spec, 2).expect("a schema")), 4), said);
}
