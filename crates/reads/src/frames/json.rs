//! Events as lines of JSON: of objects as they are, of a Table's rows, or of metadata alone.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_apimachinery::accept::Drops;
use forebay_object::{Object, Scratch};
use forebay_schema::builtin::codec;
use forebay_watchcache::EventKind;
use jiff::Timestamp;
use serde_json::Value;

use super::bookmark::bookmark_object;
use super::form::{AsStored, EventFormat, EventWriter, FrameMessage};
use crate::present::text::Text;
use crate::present::{As, IncludeObject};

pub static JSON: EventFormat = EventFormat {
    media_type: "application/json",
    content_type: "application/json",
    has_tables: true,
    has_custom_objects: true,
    can_drop: true,
    has_stored_form: true,
    writer: |served, form| {
        let text = Text::new(served, form.what, form.meta, form.drops);
        Box::new(Lines { text, columns_sent: false })
    },
    message: |frames| {
        let end = memchr::memchr(b'\n', frames).map_or(frames.len(), |at| at + 1);
        let (line, rest) = frames.split_at(end);
        (!line.is_empty()).then_some((FrameMessage::Text(line), rest))
    },
};

const ADDED: &[u8] = b"{\"type\":\"ADDED\",\"object\":";

struct Lines {
    text: Text,
    // A Table's columns go with the first row only.
    columns_sent: bool,
}

impl EventWriter for Lines {
    fn event(
        &mut self,
        kind: EventKind,
        object: &Object,
        revision: Revision,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        let head: &[u8] = match kind {
            EventKind::Added => ADDED,
            EventKind::Modified => b"{\"type\":\"MODIFIED\",\"object\":",
            EventKind::Deleted => b"{\"type\":\"DELETED\",\"object\":",
        };
        out.extend_from_slice(head);
        let columns = !std::mem::replace(&mut self.columns_sent, true);
        self.text.alone(object, Some(revision), columns, now, out);
        out.extend_from_slice(b"}\n");
    }

    fn initial(
        &mut self,
        object: &Arc<Object>,
        scratch: &mut Scratch,
        now: &dyn Fn() -> Timestamp,
        out: &mut Vec<u8>,
    ) {
        if self.as_stored().is_some_and(|stored| stored.is_sent_so(object)) {
            self.added(&scratch.bytes(object), out);
        } else {
            self.event(EventKind::Added, &scratch.plain(object), object.revision(), now(), out);
        }
    }

    fn bookmark(&mut self, revision: Revision, initial_end: bool, now: Timestamp, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"BOOKMARK\",\"object\":");
        match self.text.shown {
            As::Object => self.bookmark_object(revision, initial_end, out),
            As::PartialMetadata => self.bookmark_metadata(revision, initial_end, out),
            As::Table(include) => self.bookmark_row(revision, initial_end, (include, now), out),
        }
        out.extend_from_slice(b"}\n");
    }

    fn error(&mut self, status: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"ERROR\",\"object\":");
        out.extend_from_slice(status);
        out.extend_from_slice(b"}\n");
    }

    fn as_stored(&self) -> Option<&dyn AsStored> {
        (self.text.drops == Drops::default()).then_some(self as &dyn AsStored)
    }
}

impl AsStored for Lines {
    fn is_sent_so(&self, object: &Object) -> bool {
        self.text.shows_body(object)
    }

    fn added(&self, body: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(ADDED);
        self.text.served.write_stored(body, out);
        out.extend_from_slice(b"}\n");
    }
}

impl Lines {
    /// A Table with a row of an object that has nothing.
    fn bookmark_row(
        &mut self,
        revision: Revision,
        initial_end: bool,
        (include, now): (IncludeObject, Timestamp),
        out: &mut Vec<u8>,
    ) {
        let columns = !std::mem::replace(&mut self.columns_sent, true);
        self.text.table_head(revision, columns, out);
        let mut empty = Vec::new();
        self.bookmark_object(revision, initial_end, &mut empty);
        let mut nameless: Value = serde_json::from_slice(&empty).unwrap_or(Value::Null);
        nameless["metadata"]["name"] = "".into();
        let (cells, _) = self.text.cells(&nameless, now);
        out.extend_from_slice(b"{\"cells\":");
        self.text.write(&Value::Array(cells), out);
        out.extend_from_slice(b",\"object\":");
        match include {
            IncludeObject::Object => out.extend_from_slice(&empty),
            IncludeObject::None if !initial_end => out.extend_from_slice(b"null"),
            // Without its annotation the end could not be told.
            IncludeObject::None | IncludeObject::Metadata => {
                self.bookmark_metadata(revision, initial_end, out);
            }
        }
        out.extend_from_slice(b"}]}");
    }

    /// An object of the kind that has nothing but a bookmark's metadata, and what a Go struct writes all the
    /// same.
    fn bookmark_object(&self, revision: Revision, initial_end: bool, out: &mut Vec<u8>) {
        let mut value = bookmark_object(&self.text.served, revision, initial_end);
        value["kind"] = self.text.served.gvk.kind.to_string().into();
        value["apiVersion"] = self.text.served.gvk.api_version().into();
        let typed = self.text.served.ty().is_some_and(|ty| {
            codec::normalize(ty, &mut value).is_ok() && codec::write_json(ty, &value, out).is_ok()
        });
        if !typed {
            self.text.write(&value, out);
        }
    }

    fn bookmark_metadata(&self, revision: Revision, initial_end: bool, out: &mut Vec<u8>) {
        self.text.meta_head("PartialObjectMetadata", out);
        out.extend_from_slice(format!(",\"metadata\":{{\"resourceVersion\":\"{revision}\"").as_bytes());
        if initial_end {
            out.extend_from_slice(b",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}");
        }
        out.extend_from_slice(b"}}");
    }
}
