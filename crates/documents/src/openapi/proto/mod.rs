//! The v2 document in protobuf: `openapi.v2.Document` of google/gnostic-models.
//!
//! In: contents. Out: bytes for a packer. A message that stands in several pieces is merged by whoever reads
//! it, so each path and each definition is written as a piece of its own. Never: descriptions, responses by
//! reference, forms and headers, which our documents have none of.
//!
//! Source: gnostic-models v0.7.0 `openapiv2/OpenAPIv2.proto`. A value of any kind is text in YAML there; JSON is such.

#[cfg(test)]
pub mod decode;
mod schema;
mod wire;

use std::sync::Arc;

use forebay_schema::openapi::{Dialect, Kinds};
use serde_json::Value;

use super::contents::Contents;
use super::json::{bearer_token, info, others};
use super::packed::Packer;
use super::part::{Merged, OpenApiPart};
use super::path_item::{self, SharedParameters};
use schema::{extensions, schema, text};
use wire::MessageWriter;

/// Field numbers of the methods of a path item.
const METHODS: [(&str, u32); 7] =
    [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("options", 6), ("head", 7), ("patch", 8)];

/// The v2 document, with what other servers say of theirs.
pub fn v2(contents: &Contents<'_>, kinds: &Kinds, parts: &[Arc<OpenApiPart>], out: &mut Packer) {
    let merged = Merged::of(parts, &|name| contents.definition(kinds, name, Dialect::V2));
    let tree = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut shared = SharedParameters::new();
    let head = info(false);
    let mut document = MessageWriter::default();
    document.text(1, "2.0");
    let mut title = MessageWriter::default();
    title.text(1, text(&head, "title"));
    title.text(2, text(&head, "version"));
    document.message(2, title);
    piece(document, out);
    for (path, routes) in &contents.paths {
        let item = path_item(&path_item::v2(contents.table, routes, &mut shared));
        member(8, 2, path, item, out);
    }
    for (part, path, text) in others(parts, |part| &part.paths, |path| contents.paths.contains_key(path)) {
        member(8, 2, path, path_item(&tree(&merged.told(text, part))), out);
    }
    for (name, what) in &contents.definitions {
        let definition = schema(&contents.schema(kinds, *what, Dialect::V2));
        member(9, 1, name, definition, out);
    }
    for (name, text) in &merged.definitions {
        member(9, 1, name, schema(&tree(text)), out);
    }
    for (name, shared) in &shared {
        member(10, 1, name, parameter(shared), out);
    }
    for (part, name, text) in others(parts, |part| &part.parameters, |name| shared.contains_key(name)) {
        member(10, 1, name, parameter(&tree(&merged.told(text, part))), out);
    }
    let mut document = MessageWriter::default();
    let required = MessageWriter::of(1, named("BearerToken", MessageWriter::default()));
    document.message(12, required);
    let bearer = MessageWriter::of(2, api_key(&bearer_token()));
    document.message(13, MessageWriter::of(1, named("BearerToken", bearer)));
    piece(document, out);
}

/// One entry of a map that is a field of the document.
///
/// - `field`: where the map stands in the document.
/// - `entries`: where its entries stand in the map.
fn member(field: u32, entries: u32, name: &str, value: MessageWriter, out: &mut Packer) {
    let mut document = MessageWriter::default();
    document.message(field, MessageWriter::of(entries, named(name, value)));
    piece(document, out);
}

fn piece(document: MessageWriter, out: &mut Packer) {
    out.piece.extend_from_slice(&document.into_bytes());
    out.drain();
}

fn named(name: &str, value: MessageWriter) -> MessageWriter {
    let mut named = MessageWriter::default();
    named.text(1, name);
    named.message(2, value);
    named
}

fn api_key(key: &Value) -> MessageWriter {
    let mut out = MessageWriter::default();
    for (field, member) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")] {
        out.text(field, text(key, member));
    }
    out
}

fn path_item(item: &Value) -> MessageWriter {
    let mut out = MessageWriter::default();
    for (method, field) in METHODS {
        if let Some(found) = item.get(method) {
            out.message(field, operation(found));
        }
    }
    parameters(item, 9, &mut out);
    out
}

fn operation(operation: &Value) -> MessageWriter {
    let mut out = MessageWriter::default();
    texts(operation, "tags", 1, &mut out);
    out.text(5, text(operation, "operationId"));
    texts(operation, "produces", 6, &mut out);
    texts(operation, "consumes", 7, &mut out);
    parameters(operation, 8, &mut out);
    let mut responses = MessageWriter::default();
    for (code, response) in operation["responses"].as_object().into_iter().flatten() {
        // A response rather than a reference to one.
        responses.message(1, named(code, MessageWriter::of(1, self::response(response))));
    }
    out.message(9, responses);
    texts(operation, "schemes", 10, &mut out);
    extensions(operation, 13, &mut out);
    out
}

fn response(response: &Value) -> MessageWriter {
    let mut out = MessageWriter::default();
    out.text(1, text(response, "description"));
    if let Some(found) = response.get("schema") {
        out.message(2, MessageWriter::of(1, schema(found)));
    }
    out
}

fn texts(of: &Value, member: &str, field: u32, out: &mut MessageWriter) {
    for text in of[member].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.always_text(field, text);
    }
}

fn parameters(of: &Value, field: u32, out: &mut MessageWriter) {
    for found in of["parameters"].as_array().into_iter().flatten() {
        let item = match found.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let mut out = MessageWriter::default();
                out.text(1, reference);
                MessageWriter::of(2, out)
            }
            None => MessageWriter::of(1, parameter(found)),
        };
        out.message(field, item);
    }
}

/// A parameter, by where it is.
fn parameter(parameter: &Value) -> MessageWriter {
    let place = text(parameter, "in");
    let mut out = MessageWriter::default();
    let required = parameter["required"] == true;
    if place == "body" {
        out.text(2, text(parameter, "name"));
        out.text(3, place);
        out.flag(4, required);
        if let Some(found) = parameter.get("schema") {
            out.message(5, schema(found));
        }
        return MessageWriter::of(1, out);
    }
    // A query's has one field more than a path's, before the type.
    let (kind, shift) = if place == "query" { (3, 1) } else { (4, 0) };
    out.flag(1, required);
    out.text(2, place);
    out.text(4, text(parameter, "name"));
    out.text(5 + shift, text(parameter, "type"));
    out.flag(19 + shift, parameter["uniqueItems"] == true);
    MessageWriter::of(2, MessageWriter::of(kind, out))
}
