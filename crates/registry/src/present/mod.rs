//! How objects are shown to a client, and in which encoding.
//!
//! In: objects from a snapshot or a watcher. Out: bytes appended to a buffer, JSON or protobuf, for a LIST, a WATCH or
//! one object. The two encodings are in files of their own; this one chooses.

mod message;
mod text;

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::accept::MetaVersion;
use forebay_apimachinery::{Revision, Status};
use forebay_object::{Keep, Object, Scratch};
use forebay_watchcache::EventKind;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::catalog::{Served, Source};
use crate::frames::{AtRest, FrameSink, Seen};
use message::Messages;
use text::Text;

/// What the client wants objects to be shown as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    Object,
    /// `meta.k8s.io` Table.
    Table(IncludeObject),
    /// `meta.k8s.io` PartialObjectMetadata.
    PartialMetadata,
}

/// What a Table's row carries of its object (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    Metadata,
    Object,
}

/// What objects are written in. YAML is made of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Protobuf,
}

/// All that a client says of how it wants objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub what: As,
    /// The version of a Table or PartialObjectMetadata.
    pub meta: MetaVersion,
    /// Protobuf has no Table, and custom resources have nothing but their metadata in it.
    pub encoding: Encoding,
}

impl From<As> for Shown {
    fn from(what: As) -> Shown {
        Shown { what, meta: MetaVersion::V1, encoding: Encoding::Json }
    }
}

/// A list's own metadata.
#[derive(Clone, Debug, Default)]
pub struct ListMeta {
    pub revision: Option<Revision>,
    pub continue_token: String,
    pub remaining: Option<u64>,
}

/// Shows the objects of one resource in one way.
#[derive(Clone)]
pub struct Presenter {
    served: Arc<Served>,
    shown: Shown,
    writer: Writer,
}

#[derive(Clone)]
enum Writer {
    Text(Text),
    Messages(Messages),
}

impl Presenter {
    pub fn new(served: Arc<Served>, shown: impl Into<Shown>) -> Presenter {
        let shown = shown.into();
        let writer = match (shown.encoding, shown.what) {
            (Encoding::Protobuf, As::Object | As::PartialMetadata) => {
                Writer::Messages(Messages::new(served.clone(), shown))
            }
            _ => Writer::Text(Text::new(served.clone(), shown)),
        };
        Presenter { served, shown, writer }
    }

    /// Waits until what is shown can no longer be shown as it was begun; how much later to end. `None` when it always can.
    ///
    /// - `fields`: of [`Served::selectable`], those that are selected by.
    pub(crate) fn retired(&self, fields: &[usize]) -> Option<BoxFuture<'static, Duration>> {
        let Source::Custom(custom) = &self.served.source else { return None };
        let is_table = matches!(self.shown.what, As::Table(_));
        Some(Box::pin(custom.ending.told(is_table, fields.into())))
    }

    /// How much later a watch is to end whose resource is no more.
    pub(crate) fn turn(&self) -> Duration {
        match &self.served.source {
            Source::BuiltIn { .. } => Duration::ZERO,
            Source::Custom(custom) => custom.ending.turn(),
        }
    }

    /// Whether the items of a list are objects as they are stored, unless [`Presenter::shows_body`] denies it for one.
    pub(crate) fn shows_bodies(&self) -> bool {
        matches!(self.writer, Writer::Text(_))
            && self.shown.what == As::Object
            && self.served.has_items_as_stored()
    }

    /// Whether this one is shown as it is stored.
    pub(crate) fn shows_body(&self, object: &Object) -> bool {
        self.served.is_as_stored(object)
    }

    /// What an object takes in a list, where a list begins with its length.
    pub fn item_len(&self, object: &Object) -> Option<usize> {
        match &self.writer {
            Writer::Text(_) => None,
            Writer::Messages(messages) => Some(messages.item_len(object)),
        }
    }

    /// Everything of a list before its first item.
    ///
    /// - `items_len`: the sum of [`Presenter::item_len`]; 0 where there is none.
    pub fn list_head(&self, meta: &ListMeta, items_len: usize, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.list_head(meta, out),
            Writer::Messages(messages) => messages.list_head(meta, items_len, out),
        }
    }

    /// One item of a list.
    pub fn item(&self, object: &Object, first: bool, now: Timestamp, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.item(object, first, now, out),
            Writer::Messages(messages) => messages.item(object, out),
        }
    }

    /// The same of a state at rest. Text is made of an object's bytes: then its block is inflated once, however many of its
    /// objects are shown, and the rest of each object, which is somewhere else in memory, is looked at only if it must be.
    /// Its message is kept with the object itself, for the next who asks.
    pub(crate) fn item_at_rest(
        &self,
        object: &Arc<Object>,
        scratch: &mut Scratch,
        first: bool,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        match &self.writer {
            Writer::Text(text) if text.shows_body(object) => {
                text.stored_item(&scratch.bytes(object), first, out);
            }
            Writer::Text(text) => text.item(&scratch.plain(object), first, now, out),
            Writer::Messages(messages) => messages.item(object, out),
        }
    }

    /// Everything of a list behind its last item.
    pub fn list_tail(&self, meta: &ListMeta, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.list_tail(meta, out),
            Writer::Messages(messages) => messages.list_tail(meta, out),
        }
    }

    /// One object as the whole answer.
    pub fn single(&self, object: &Object, now: Timestamp, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.single(object, now, out),
            Writer::Messages(messages) => messages.single(object, out),
        }
    }

    /// An object that was just written, from the JSON of all of it, in JSON.
    ///
    /// # Errors
    /// JSON of ours that is none.
    pub fn written(&self, json: &[u8], now: Timestamp) -> Result<Vec<u8>, Status> {
        match &self.writer {
            Writer::Text(text) => text.written(json, now),
            Writer::Messages(messages) => messages.as_text().written(json, now),
        }
    }

    /// What [`Presenter::event`] makes is of this, whoever makes it. `None` for a Table, in which it depends on the time and
    /// on what was sent before.
    pub(crate) fn seen<'a>(
        &'a self,
        object: &'a Arc<Object>,
        kind: EventKind,
        revision: Revision,
    ) -> Option<Seen<'a>> {
        self.way().map(|(served, shown)| Seen { object, served, kind, revision, shown })
    }

    /// Of what, and how it is shown, if that is all that an event's frame depends on besides the event; see
    /// [`Presenter::seen`].
    pub(crate) fn way(&self) -> Option<(&Arc<Served>, Shown)> {
        let is_table = matches!(self.shown.what, As::Table(_));
        (!is_table).then_some((&self.served, self.shown))
    }

    /// One live event, which many watchers are told: a line of JSON, or a frame.
    pub fn event(
        &mut self,
        kind: EventKind,
        object: &Object,
        revision: Revision,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        match &mut self.writer {
            Writer::Text(text) => text.event(kind, object, revision, now, out),
            Writer::Messages(messages) => messages.event(kind, (object, Keep::Always), revision, out),
        }
    }

    /// The event of an object of the initial state, which is ADDED, made as [`Presenter::item_at_rest`] has it.
    pub fn initial(
        &mut self,
        object: &Arc<Object>,
        scratch: &mut Scratch,
        now: impl Fn() -> Timestamp,
        out: &mut Vec<u8>,
    ) {
        let (kind, revision) = (EventKind::Added, object.revision());
        match &mut self.writer {
            Writer::Text(text) if text.shows_body(object) => text.added(&scratch.bytes(object), out),
            Writer::Text(text) => text.event(kind, &scratch.plain(object), revision, now(), out),
            Writer::Messages(messages) => messages.event(kind, (object, Keep::IfRoom), revision, out),
        }
    }

    /// The same of all objects of a block: as the block, where each is sent as it is stored.
    pub fn initial_block(
        &mut self,
        objects: &[Arc<Object>],
        scratch: &mut Scratch,
        now: impl Fn() -> Timestamp,
        out: &mut impl FrameSink,
    ) {
        if let Writer::Text(text) = &self.writer
            && objects.iter().all(|object| text.shows_body(object))
            && let Some((first, part)) = objects.first().and_then(|first| Some((first.key(), first.part()?)))
        {
            let of = AtRest { block: part.block, served: &self.served, first };
            return out.block(of, |place, own| text.added(&scratch.bytes(&objects[place]), own));
        }
        out.own_each(objects.len(), |place, own| self.initial(&objects[place], scratch, &now, own));
    }

    /// A bookmark, a line or a frame. `initial_end` marks the one that ends the initial state (KEP-3157).
    pub fn bookmark(&mut self, revision: Revision, initial_end: bool, now: Timestamp, out: &mut Vec<u8>) {
        match &mut self.writer {
            Writer::Text(text) => text.bookmark(revision, initial_end, now, out),
            Writer::Messages(messages) => messages.bookmark(revision, initial_end, out),
        }
    }
}

/// A bookmark's object: of the kind, with nothing but its metadata, and what kube-apiserver's conversion of such an object
/// leaves in it.
fn bookmark_object(served: &Served, revision: Revision, initial_end: bool) -> serde_json::Value {
    let mut value = serde_json::json!({ "metadata": bookmark_metadata(revision, initial_end) });
    match (served.group(), &*served.gvk.kind) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => value["spec"]["replicas"] = 0.into(),
        ("apps", "DaemonSet") => {
            value["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = "0".into();
        }
        _ => {}
    }
    value
}

/// The metadata of a bookmark's object.
fn bookmark_metadata(revision: Revision, initial_end: bool) -> serde_json::Value {
    let mut metadata = serde_json::json!({ "resourceVersion": revision.to_string() });
    if initial_end {
        metadata["annotations"] = serde_json::json!({ "k8s.io/initial-events-end": "true" });
    }
    metadata
}
