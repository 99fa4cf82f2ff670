//! What a media type of watches is, and how a watch shows objects in one.
//!
//! In: nothing. Out: the traits that a file of a media type implements. Never: knows which there are.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_apimachinery::accept::{Drops, MetaVersion, Offered};
use forebay_catalog::Served;
use forebay_object::{Object, Scratch};
use forebay_watchcache::EventKind;
use jiff::Timestamp;

use crate::present::As;

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
    /// Whether fields can be left out of it.
    pub can_drop: bool,
    /// Whether an event takes no memory for its object: what is stored of it is sent as it is, or nothing of
    /// it. Such a watch is admitted as cheap.
    pub has_stored_form: bool,
    /// Writes the events of one watch of a resource, which shows objects in one way.
    pub writer: fn(Arc<Served>, EventForm) -> Box<dyn EventWriter>,
    pub message: NextMessage,
}

/// The first of frames that were made one after the other, as a message, and the others.
pub type NextMessage = for<'f> fn(&'f [u8]) -> Option<(FrameMessage<'f>, &'f [u8])>;

/// A frame where messages have their own ends, as in a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMessage<'f> {
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

    /// The event of an object of the initial state, which is ADDED. It is at rest: plain text comes out of
    /// `scratch`, which is not free. One that needs no text of the object has its own.
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

/// Writes objects as they are stored, and something around them: the same for whoever is sent the same
/// resource.
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
    pub drops: Drops,
    pub format: &'static EventFormat,
}

/// The word of an event, as every media type has it.
pub fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Added => "ADDED",
        EventKind::Modified => "MODIFIED",
        EventKind::Deleted => "DELETED",
    }
}

impl EventFormat {
    /// Frames that were made one after the other, each as a message.
    pub fn messages<'f>(&self, frames: &'f [u8]) -> impl Iterator<Item = FrameMessage<'f>> + use<'f> {
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

    fn can_drop(&self) -> bool {
        self.can_drop
    }
}

impl PartialEq for EventForm {
    fn eq(&self, other: &EventForm) -> bool {
        std::ptr::eq(self.format, other.format)
            && (self.what, self.meta, self.drops) == (other.what, other.meta, other.drops)
    }
}

impl Eq for EventForm {}

impl std::fmt::Debug for EventForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} in {}", self.what, self.meta.api_version(), self.format.media_type)
    }
}
