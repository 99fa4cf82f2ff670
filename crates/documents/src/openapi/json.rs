//! Documents as JSON, written path by path and definition by definition: a whole one is never a tree.
//!
//! In: contents. Out: bytes for a packer, members sorted within each part.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_schema::openapi::{Dialect, Kinds};
use serde_json::{Value, json};

use super::contents::Contents;
use super::packed::Packer;
use super::part::{Merged, OpenApiPart};
use super::path_item::{self, SharedParameters};

/// The version of Kubernetes that the API is.
pub const API_VERSION: &str = "1.36";

/// `info` of a document.
pub fn info(custom: bool) -> Value {
    match custom {
        true => json!({ "title": "Kubernetes CRD Swagger", "version": "v0.1.0" }),
        false => json!({ "title": "Kubernetes", "version": API_VERSION }),
    }
}

/// How clients prove who they are.
pub fn bearer_token() -> Value {
    let description = "Bearer Token authentication";
    json!({ "type": "apiKey", "description": description, "name": "authorization", "in": "header" })
}

/// A v3 document.
pub fn v3(contents: &Contents<'_>, kinds: &Kinds, out: &mut Packer) {
    out.piece.extend_from_slice(b"{\"openapi\":\"3.0.0\",\"info\":");
    write(&info(contents.custom), out);
    out.piece.extend_from_slice(b",\"paths\":{");
    for (at, (path, routes)) in contents.paths.iter().enumerate() {
        member(at, path, &path_item::v3(contents.table, routes), out);
    }
    out.piece.extend_from_slice(b"},\"components\":{\"schemas\":{");
    definitions(contents, kinds, Dialect::V3, out);
    out.piece.push(b'}');
    if !contents.custom {
        out.piece.extend_from_slice(b",\"securitySchemes\":{\"BearerToken\":");
        write(&bearer_token(), out);
        out.piece.push(b'}');
    }
    out.piece.extend_from_slice(b"}}");
}

/// The v2 document, with what other servers say of theirs.
pub fn v2(contents: &Contents<'_>, kinds: &Kinds, parts: &[Arc<OpenApiPart>], out: &mut Packer) {
    let merged = Merged::of(parts, &|name| contents.definition(kinds, name, Dialect::V2));
    let mut shared = SharedParameters::new();
    out.piece.extend_from_slice(b"{\"swagger\":\"2.0\",\"info\":");
    write(&info(false), out);
    out.piece.extend_from_slice(b",\"paths\":{");
    for (at, (path, routes)) in contents.paths.iter().enumerate() {
        member(at, path, &path_item::v2(contents.table, routes, &mut shared), out);
    }
    for (part, path, text) in others(parts, |part| &part.paths, |path| contents.paths.contains_key(path)) {
        text_member(path, &merged.told(text, part), out);
    }
    out.piece.extend_from_slice(b"},\"definitions\":{");
    definitions(contents, kinds, Dialect::V2, out);
    for (name, text) in &merged.definitions {
        text_member(name, text, out);
    }
    out.piece.extend_from_slice(b"},\"parameters\":{");
    for (at, (name, parameter)) in shared.iter().enumerate() {
        member(at, name, parameter, out);
    }
    for (part, name, text) in others(parts, |part| &part.parameters, |name| shared.contains_key(name)) {
        text_member(name, &merged.told(text, part), out);
    }
    out.piece.extend_from_slice(b"},\"securityDefinitions\":{\"BearerToken\":");
    write(&bearer_token(), out);
    out.piece.extend_from_slice(b"},\"security\":[{\"BearerToken\":[]}]}");
}

fn definitions(contents: &Contents<'_>, kinds: &Kinds, dialect: Dialect, out: &mut Packer) {
    for (at, (name, what)) in contents.definitions.iter().enumerate() {
        member(at, name, &contents.schema(kinds, *what, dialect), out);
    }
}

/// What others say beside what is this server's: part, name and text, each name once.
pub fn others<'p>(
    parts: &'p [Arc<OpenApiPart>],
    of: impl Fn(&'p OpenApiPart) -> &'p BTreeMap<Box<str>, Box<str>>,
    is_ours: impl Fn(&str) -> bool,
) -> Vec<(usize, &'p str, &'p str)> {
    let mut told = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        let part: &'p OpenApiPart = part;
        for (name, text) in of(part).iter().filter(|(name, _)| !is_ours(name)) {
            told.entry(&**name).or_insert((at, &**text));
        }
    }
    told.into_iter().map(|(name, (at, text))| (at, name, text)).collect()
}

/// Behind others.
fn text_member(name: &str, text: &str, out: &mut Packer) {
    out.piece.push(b',');
    forebay_apimachinery::json::write_string(name, &mut out.piece);
    out.piece.push(b':');
    out.piece.extend_from_slice(text.as_bytes());
    out.drain();
}

fn member(at: usize, name: &str, value: &Value, out: &mut Packer) {
    if at > 0 {
        out.piece.push(b',');
    }
    forebay_apimachinery::json::write_string(name, &mut out.piece);
    out.piece.push(b':');
    write(value, out);
    out.drain();
}

fn write(value: &Value, out: &mut Packer) {
    forebay_apimachinery::json::write_sorted(value, &mut out.piece);
}
