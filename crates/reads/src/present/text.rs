//! Objects in JSON: as they are, as a Table's rows, or as their metadata alone.
//!
//! In: objects from a snapshot or a watcher. Out: JSON text appended to a buffer, so that neither a LIST nor
//! a WATCH needs more than the buffer. Ages are worked out when they are sent, never kept.

use std::sync::Arc;

use forebay_apimachinery::accept::{Drops, MetaVersion};
use forebay_apimachinery::resource::api_version;
use forebay_apimachinery::{Revision, Status, json};
use forebay_catalog::Served;
use forebay_object::{Form, Object};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{As, IncludeObject, ListMeta, managed_fields};

/// Shows the objects of one resource in one way.
#[derive(Clone)]
pub(crate) struct Text {
    pub served: Arc<Served>,
    pub shown: As,
    // Of `meta.k8s.io`, for what is not shown as it is.
    meta_version: &'static str,
    pub drops: Drops,
}

impl Text {
    pub fn new(served: Arc<Served>, shown: As, meta: MetaVersion, drops: Drops) -> Text {
        Text { served, shown, meta_version: meta.api_version(), drops }
    }

    /// Leaves out of the object that begins at `from` what the client does not want.
    fn drop_fields(&self, from: usize, out: &mut Vec<u8>) {
        if self.drops.managed_fields {
            managed_fields::cut(from, out);
        }
    }

    /// Everything of a list before its first item.
    pub fn list_head(&self, meta: &ListMeta, out: &mut Vec<u8>) {
        match (self.shown, self.served.form()) {
            (As::Object, Form::Typed) => {
                out.extend_from_slice(b"{\"kind\":");
                json::write_string(&self.served.list_kind, out);
                out.extend_from_slice(b",\"apiVersion\":");
                json::write_string(&self.version(), out);
                self.list_meta(meta, out);
                out.extend_from_slice(b",\"items\":[");
            }
            (As::Object, Form::Whole) => {
                out.extend_from_slice(b"{\"apiVersion\":");
                json::write_string(&self.version(), out);
                out.extend_from_slice(b",\"items\":[");
            }
            (As::Table(_), _) => {
                self.meta_head("Table", out);
                self.list_meta(meta, out);
                out.extend_from_slice(b",\"columnDefinitions\":");
                self.write_columns(self.columns(), out);
                out.extend_from_slice(b",\"rows\":[");
            }
            (As::PartialMetadata, _) => {
                self.meta_head("PartialObjectMetadataList", out);
                self.list_meta(meta, out);
                out.extend_from_slice(b",\"items\":[");
            }
        }
    }

    /// One item of a list.
    pub fn item(&self, object: &Object, first: bool, now: Timestamp, out: &mut Vec<u8>) {
        separate(first, out);
        match self.shown {
            As::Object => {
                let from = out.len();
                self.served.write_item(object, out);
                self.drop_fields(from, out);
            }
            As::Table(include) => self.row(object, None, include, now, out),
            As::PartialMetadata => self.partial(object, None, out),
        }
    }

    /// The item of an object that [is shown](Text::shows_body) so.
    pub fn stored_item(&self, body: &[u8], first: bool, out: &mut Vec<u8>) {
        separate(first, out);
        let from = out.len();
        self.served.write_stored_item(body, out);
        self.drop_fields(from, out);
    }

    /// Everything of a list behind its last item.
    pub fn list_tail(&self, meta: &ListMeta, out: &mut Vec<u8>) {
        out.push(b']');
        if self.shown == As::Object && self.served.form() == Form::Whole {
            out.extend_from_slice(b",\"kind\":");
            json::write_string(&self.served.list_kind, out);
            self.list_meta(meta, out);
        }
        out.extend_from_slice(b"}\n");
    }

    /// One object as the whole answer.
    pub fn single(&self, object: &Object, now: Timestamp, out: &mut Vec<u8>) {
        self.alone(object, None, true, now, out);
        out.push(b'\n');
    }

    /// An object that was just written, from the JSON of all of it.
    ///
    /// # Errors
    /// JSON of ours that is none.
    pub fn written(&self, json: &[u8], now: Timestamp) -> Result<Vec<u8>, Status> {
        if self.shown == As::Object {
            let mut out = json.to_vec();
            self.drop_fields(0, &mut out);
            return Ok(out);
        }
        let value: Value = json::read(json).map_err(Status::internal)?;
        let partial = json!({
            "kind": "PartialObjectMetadata", "apiVersion": self.meta_version, "metadata": value["metadata"],
        });
        let mut out = Vec::with_capacity(json.len());
        match self.shown {
            As::Object => {}
            As::PartialMetadata => self.write(&partial, &mut out),
            As::Table(include) => {
                let (cells, conditions) = self.cells(&value, now);
                let object = match include {
                    IncludeObject::None => Value::Null,
                    IncludeObject::Metadata => partial,
                    IncludeObject::Object => value.clone(),
                };
                let mut row = json!({ "cells": cells, "object": object });
                if !conditions.is_empty() {
                    row["conditions"] = Value::Array(conditions);
                }
                // What was only tried has none.
                let revision = value["metadata"].get("resourceVersion");
                let metadata = revision.map_or_else(|| json!({}), |it| json!({ "resourceVersion": it }));
                let table = json!({
                    "kind": "Table", "apiVersion": self.meta_version, "metadata": metadata,
                    "columnDefinitions": self.columns(), "rows": [row],
                });
                self.write(&table, &mut out);
            }
        }
        out.push(b'\n');
        Ok(out)
    }

    /// Whether an object's item and its event have its bytes as they are stored.
    pub fn shows_body(&self, object: &Object) -> bool {
        self.shown == As::Object && self.served.is_as_stored(object)
    }

    /// A Table of one object, up to its row.
    pub fn table_head(&self, revision: Revision, columns: bool, out: &mut Vec<u8>) {
        self.meta_head("Table", out);
        out.extend_from_slice(format!(",\"metadata\":{{\"resourceVersion\":\"{revision}\"}}").as_bytes());
        out.extend_from_slice(b",\"columnDefinitions\":");
        self.write_columns(if columns { self.columns() } else { Value::Null }, out);
        out.extend_from_slice(b",\"rows\":[");
    }

    pub fn alone(
        &self,
        object: &Object,
        revision: Option<Revision>,
        columns: bool,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        match self.shown {
            As::Object => self.object(object, revision, out),
            As::PartialMetadata => self.partial(object, revision, out),
            As::Table(include) => {
                self.table_head(revision.unwrap_or(object.revision()), columns, out);
                self.row(object, revision, include, now, out);
                out.extend_from_slice(b"]}");
            }
        }
    }

    fn row(
        &self,
        object: &Object,
        revision: Option<Revision>,
        include: IncludeObject,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        let (cells, conditions) = self.cells_of(object, now);
        out.extend_from_slice(b"{\"cells\":");
        self.write(&Value::Array(cells), out);
        if !conditions.is_empty() {
            out.extend_from_slice(b",\"conditions\":");
            self.write(&Value::Array(conditions), out);
        }
        match include {
            IncludeObject::None => out.extend_from_slice(b",\"object\":null"),
            IncludeObject::Metadata => {
                out.extend_from_slice(b",\"object\":");
                self.partial(object, revision, out);
            }
            IncludeObject::Object => {
                out.extend_from_slice(b",\"object\":");
                self.object(object, revision, out);
            }
        }
        out.push(b'}');
    }

    fn object(&self, object: &Object, revision: Option<Revision>, out: &mut Vec<u8>) {
        let from = out.len();
        self.served.write_object(object, revision, out);
        self.drop_fields(from, out);
    }

    /// A Table's cells for an object of the cache, and the conditions of its row.
    fn cells_of(&self, object: &Object, now: Timestamp) -> (Vec<Value>, Vec<Value>) {
        if let Some(cells) = self.served.kind.stored_cells(object, now) {
            return cells;
        }
        let mut text = Vec::with_capacity(object.body_len() + 64);
        self.served.write_object(object, None, &mut text);
        self.cells(&self.served.kind.read_shown(&text).unwrap_or(Value::Null), now)
    }

    /// A Table's cells for an object, and the conditions of its row.
    pub fn cells(&self, value: &Value, now: Timestamp) -> (Vec<Value>, Vec<Value>) {
        self.served.kind.cells(value, now)
    }

    fn columns(&self) -> Value {
        self.served.kind.columns()
    }

    /// Column definitions, their members in Go's order.
    fn write_columns(&self, columns: Value, out: &mut Vec<u8>) {
        let Value::Array(columns) = columns else { return out.extend_from_slice(b"null") };
        out.push(b'[');
        for (place, column) in columns.iter().enumerate() {
            out.push(if place == 0 { b'{' } else { b',' });
            if place > 0 {
                out.push(b'{');
            }
            for (place, member) in ["name", "type", "format", "description", "priority"].iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                json::write_string(member, out);
                out.push(b':');
                self.write(&column[member], out);
            }
            out.push(b'}');
        }
        out.push(b']');
    }

    fn list_meta(&self, meta: &ListMeta, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"metadata\":{");
        // An unstructured list is a sorted map that always names its continue token.
        if self.shown == As::Object && self.served.form() == Form::Whole {
            out.extend_from_slice(b"\"continue\":");
            json::write_string(&meta.continue_token, out);
            if let Some(remaining) = meta.remaining {
                out.extend_from_slice(format!(",\"remainingItemCount\":{remaining}").as_bytes());
            }
            if let Some(revision) = meta.revision {
                out.extend_from_slice(format!(",\"resourceVersion\":\"{revision}\"").as_bytes());
            }
        } else {
            if let Some(revision) = meta.revision {
                out.extend_from_slice(format!("\"resourceVersion\":\"{revision}\"").as_bytes());
            }
            if !meta.continue_token.is_empty() {
                out.extend_from_slice(b",\"continue\":");
                json::write_string(&meta.continue_token, out);
            }
            if let Some(remaining) = meta.remaining {
                out.extend_from_slice(format!(",\"remainingItemCount\":{remaining}").as_bytes());
            }
        }
        out.push(b'}');
    }

    /// The object's metadata alone.
    fn partial(&self, object: &Object, revision: Option<Revision>, out: &mut Vec<u8>) {
        let from = out.len();
        self.meta_head("PartialObjectMetadata", out);
        out.extend_from_slice(b",\"metadata\":");
        object.write_metadata(revision, out);
        out.push(b'}');
        self.drop_fields(from, out);
    }

    /// `{"kind":"Table","apiVersion":"meta.k8s.io/v1"`
    pub fn meta_head(&self, kind: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"kind\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"apiVersion\":\"");
        out.extend_from_slice(self.meta_version.as_bytes());
        out.push(b'"');
    }

    fn version(&self) -> String {
        api_version(self.served.group(), &self.served.gvr.version)
    }

    pub fn write(&self, value: &Value, out: &mut Vec<u8>) {
        json::write_sorted(value, out);
    }
}

/// What is between two items.
fn separate(first: bool, out: &mut Vec<u8>) {
    if !first {
        out.push(b',');
    }
}
