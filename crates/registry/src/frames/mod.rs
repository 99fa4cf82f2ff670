//! What watches send: the one place where events become frames, ERROR, BOOKMARK and DELETED among them.
//!
//! In: events of a cache, bookmarks, and the Status that a stream ends with. Out: frames in a media type of watches, into a
//! [`FrameSink`]. Each media type has a file here, and a line in [`FORMATS`]: nobody else knows which there are. A Table is in
//! `json.rs`, as JSON is all that has one. Never: decides what is sent, or when; that is [`WatchSession`](crate::WatchSession)'s.

mod batch;
mod json;
mod protobuf;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::accept::{MetaVersion, Offered};
use forebay_apimachinery::object::Scratch;
use forebay_apimachinery::{Object, Revision, Status};
use forebay_watchcache::EventKind;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::catalog::{Served, Source};
use crate::present::As;
pub use batch::{AtRest, Batch, FrameSink};
pub use json::JSON;
pub use protobuf::PROTOBUF;
pub(crate) use shared::{Frames, Seen};

/// Every media type of watches, in order of preference.
pub static FORMATS: &[&EventFormat] = &[&JSON, &PROTOBUF];

/// A media type of watches: all that there is to say of one.
pub struct EventFormat {
    /// As `Accept` names it, where `stream=watch` may stand behind it.
    pub media_type: &'static str,
    /// As `Content-Type` names it.
    pub content_type: &'static str,
    /// Whether there is a Table in it.
    pub has_tables: bool,
    /// Whether there are custom resources in it, and not only their metadata.
    pub has_custom_objects: bool,
    /// Whether nothing is made for an event of an object but what is around what is stored of it.
    pub has_stored_form: bool,
    /// Writes the events of one watch of a resource, which shows objects in one way.
    pub writer: fn(Arc<Served>, As, MetaVersion) -> Box<dyn EventWriter>,
    /// The first of the frames that one after the other were made, as a message, and the others.
    pub message: for<'f> fn(&'f [u8]) -> Option<(Message<'f>, &'f [u8])>,
}

/// A frame where messages have their own ends, as in a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'f> {
    Text(&'f [u8]),
    Binary(&'f [u8]),
}

/// The frames of one watch. Each is appended whole.
pub trait EventWriter: Send {
    /// An event; `revision` is the event's, which the object that is gone shows in a DELETED event.
    fn event(
        &mut self,
        kind: EventKind,
        object: &Object,
        revision: Revision,
        now: Timestamp,
        out: &mut Vec<u8>,
    );

    /// The event of an object of the initial state, which is ADDED. It is at rest: plain text comes out of `scratch`.
    fn initial(
        &mut self,
        object: &Arc<Object>,
        scratch: &mut Scratch,
        now: &dyn Fn() -> Timestamp,
        out: &mut Vec<u8>,
    ) {
        self.event(EventKind::Added, &scratch.plain(object), object.revision(), now(), out);
    }

    /// A bookmark. `initial_end` marks the one that ends the initial state (KEP-3157).
    fn bookmark(&mut self, revision: Revision, initial_end: bool, now: Timestamp, out: &mut Vec<u8>);

    /// An ERROR event of a Status, whose JSON is `status`.
    fn error(&mut self, status: &[u8], out: &mut Vec<u8>);

    /// How it writes what it sends as it is stored, if it does so.
    fn as_stored(&self) -> Option<&dyn AsStored> {
        None
    }
}

/// Writes objects as they are stored, and something around them: the same for whoever is sent the same resource.
pub trait AsStored {
    /// Whether this one is sent so.
    fn is_sent_so(&self, object: &Object) -> bool;

    /// The ADDED event of such an object, of which `body` is stored.
    fn added(&self, body: &[u8], out: &mut Vec<u8>);
}

/// How a watch shows objects.
#[derive(Clone, Copy)]
pub struct EventForm {
    pub what: As,
    /// The version of a Table or PartialObjectMetadata.
    pub meta: MetaVersion,
    pub format: &'static EventFormat,
}

/// Writes a Status as JSON, with the code that whoever answers has for it.
pub type WriteStatus = fn(&Status, &mut Vec<u8>);

/// Writes the frames of one watch.
pub(crate) struct EventFrames {
    served: Arc<Served>,
    form: EventForm,
    writer: Box<dyn EventWriter>,
    write_status: WriteStatus,
}

impl EventFormat {
    /// Frames that were made one after the other, each as a message.
    pub fn messages<'f>(&self, frames: &'f [u8]) -> impl Iterator<Item = Message<'f>> + use<'f> {
        let (message, mut rest) = (self.message, frames);
        std::iter::from_fn(move || {
            let (first, behind) = message(rest)?;
            rest = behind;
            Some(first)
        })
    }
}

impl Offered for &'static EventFormat {
    fn media_type(&self) -> &'static str {
        self.media_type
    }

    fn can_stream(&self) -> bool {
        true
    }

    fn has_tables(&self) -> bool {
        self.has_tables
    }

    fn has_custom_objects(&self) -> bool {
        self.has_custom_objects
    }
}

impl From<As> for EventForm {
    fn from(what: As) -> EventForm {
        EventForm { what, meta: MetaVersion::V1, format: &JSON }
    }
}

impl PartialEq for EventForm {
    fn eq(&self, other: &EventForm) -> bool {
        std::ptr::eq(self.format, other.format) && (self.what, self.meta) == (other.what, other.meta)
    }
}

impl Eq for EventForm {}

impl std::fmt::Debug for EventForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} in {}", self.what, self.meta.api_version(), self.format.media_type)
    }
}

impl EventFrames {
    pub(crate) fn new(served: Arc<Served>, form: EventForm, write_status: WriteStatus) -> EventFrames {
        let writer = (form.format.writer)(served.clone(), form.what, form.meta);
        EventFrames { served, form, writer, write_status }
    }

    /// Waits until what is shown can no longer be shown as it was begun; how much later to end. `None` when it always can.
    ///
    /// - `fields`: of [`Served::selectable`], those that are selected by.
    pub(crate) fn retired(&self, fields: &[usize]) -> Option<BoxFuture<'static, Duration>> {
        let Source::Custom(custom) = &self.served.source else { return None };
        Some(Box::pin(custom.ending.told(self.is_table(), fields.into())))
    }

    /// How much later a watch is to end whose resource is no more.
    pub(crate) fn turn(&self) -> Duration {
        match &self.served.source {
            Source::BuiltIn { .. } => Duration::ZERO,
            Source::Custom(custom) => custom.ending.turn(),
        }
    }

    /// Whether events of the initial state may have objects in them as they are stored.
    pub(crate) fn shows_bodies(&self) -> bool {
        self.form.what == As::Object && self.writer.as_stored().is_some() && self.served.has_items_as_stored()
    }

    /// What [`EventFrames::event`] makes is of this, whoever makes it. `None` for a Table, in which it depends on the time and
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
    /// [`EventFrames::seen`].
    pub(crate) fn way(&self) -> Option<(&Arc<Served>, EventForm)> {
        (!self.is_table()).then_some((&self.served, self.form))
    }

    /// One live event, which many watchers are told.
    pub(crate) fn event(
        &mut self,
        kind: EventKind,
        object: &Object,
        revision: Revision,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        self.writer.event(kind, object, revision, now, out);
    }

    /// The event of an object of the initial state.
    pub(crate) fn initial(
        &mut self,
        object: &Arc<Object>,
        scratch: &mut Scratch,
        now: &dyn Fn() -> Timestamp,
        out: &mut Vec<u8>,
    ) {
        self.writer.initial(object, scratch, now, out);
    }

    /// The same of all objects of a block: as the block, where each is sent as it is stored.
    pub(crate) fn initial_block(
        &mut self,
        objects: &[Arc<Object>],
        scratch: &mut Scratch,
        now: &dyn Fn() -> Timestamp,
        out: &mut impl FrameSink,
    ) {
        if let Some(as_stored) = self.writer.as_stored()
            && objects.iter().all(|object| as_stored.is_sent_so(object))
            && let Some((first, part)) = objects.first().and_then(|first| Some((first.key(), first.part()?)))
        {
            let of = AtRest { block: part.block, served: &self.served, first };
            return out.block(of, |place, own| as_stored.added(&scratch.bytes(&objects[place]), own));
        }
        out.own_each(objects.len(), |place, own| self.writer.initial(&objects[place], scratch, now, own));
    }

    pub(crate) fn bookmark(
        &mut self,
        revision: Revision,
        initial_end: bool,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        self.writer.bookmark(revision, initial_end, now, out);
    }

    /// The last frame of a stream that fails.
    pub(crate) fn error(&mut self, status: &Status, out: &mut Vec<u8>) {
        let mut json = Vec::new();
        (self.write_status)(status, &mut json);
        self.writer.error(&json, out);
    }

    fn is_table(&self) -> bool {
        matches!(self.form.what, As::Table(_))
    }
}

/// A Status for somebody in this process, who has no codes.
pub(crate) fn status_without_code(status: &Status, out: &mut Vec<u8>) {
    out.extend_from_slice(status.to_value(0).to_string().as_bytes());
}

/// The word of an event, as every media type has it.
pub fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Added => "ADDED",
        EventKind::Modified => "MODIFIED",
        EventKind::Deleted => "DELETED",
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
