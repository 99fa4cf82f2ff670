//! What watches send: the one place where events become frames, ERROR, BOOKMARK and DELETED among them.
//!
//! In: events of a cache, bookmarks, and the Status that a stream ends with. Out: frames in a media type of
//! watches, into a [`FrameSink`]. Each media type has a file here, and a line in [`FORMATS`]: nobody else
//! knows which there are, but for the texts in which kube-apiserver names its own. A Table is in `json.rs`,
//! as JSON is all that has one. Never: decides what is sent, or when; that is
//! [`WatchSession`](crate::WatchSession)'s.

mod batch;
mod bookmark;
#[cfg(test)]
mod csv_tests;
mod form;
mod json;
mod protobuf;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::accept::{Drops, MetaVersion};
use forebay_apimachinery::{Revision, Status};
use forebay_catalog::{Ending, Served};
use forebay_object::{Deflated, Object, Scratch};
use forebay_watchcache::{EventKind, Position, Watcher};
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::present::As;
pub use batch::{AtRest, Batch, FrameSink};
pub use form::{AsStored, EventForm, EventFormat, EventWriter, FrameMessage};
pub use json::JSON;
pub use protobuf::PROTOBUF;
pub(crate) use shared::Frames;
use shared::Seen;

/// Every media type of watches, in order of preference.
pub static FORMATS: &[&EventFormat] = &[&JSON, &PROTOBUF];

/// Writes a Status as JSON, with the code that whoever answers has for it.
pub type WriteStatus = fn(&Status, &mut Vec<u8>);

impl From<As> for EventForm {
    fn from(what: As) -> EventForm {
        EventForm { what, meta: MetaVersion::V1, drops: Drops::default(), format: &JSON }
    }
}

/// Writes the frames of one watch.
pub(crate) struct EventFrames {
    served: Arc<Served>,
    form: EventForm,
    /// For a frame that is this watch's own.
    pub(crate) writer: Box<dyn EventWriter>,
    write_status: WriteStatus,
}

impl EventFrames {
    pub(crate) fn new(served: Arc<Served>, form: EventForm, write_status: WriteStatus) -> EventFrames {
        let writer = (form.format.writer)(served.clone(), form);
        EventFrames { served, form, writer, write_status }
    }

    /// Waits until what is shown can no longer be shown as it was begun; how much later to end. `None` when
    /// it always can.
    ///
    /// - `fields`: of [`Served::selectable`], those that are selected by.
    pub(crate) fn retired(&self, fields: &[usize]) -> Option<BoxFuture<'static, Duration>> {
        let ending = self.served.kind.ending()?;
        Some(Box::pin(ending.told(self.is_table(), fields.into())))
    }

    /// How much later a watch is to end whose resource is no more.
    pub(crate) fn turn(&self) -> Duration {
        self.served.kind.ending().map_or(Duration::ZERO, Ending::turn)
    }

    /// Whether events of the initial state may have objects in them as they are stored.
    pub(crate) fn shows_bodies(&self) -> bool {
        self.form.what == As::Object && self.writer.as_stored().is_some() && self.served.has_items_as_stored()
    }

    /// Puts the frame of what is next for `watcher` into `out`, if this thread has sent it lately, and has it
    /// pass over that; whether it did.
    pub(crate) fn put_again(&self, watcher: &mut Watcher, out: &mut impl FrameSink) -> bool {
        let Some((at, (served, form))) = watcher.position().zip(self.way()) else { return false };
        let Some((revision, frame)) = Frames::again(at, served, form) else { return false };
        let passed = watcher.pass(at, revision, frame.len());
        if passed {
            out.share(frame);
        }
        passed
    }

    /// Keeps what was next at `at`, and nothing else of its revision, for [`EventFrames::put_again`].
    pub(crate) fn keep(&self, at: Position, revision: Revision, frame: Bytes) {
        if let Some((served, form)) = self.way() {
            Frames::keep(at, served, form, revision, frame);
        }
    }

    /// Puts an event's frame into `out`: the one that others have as well, where there can be one. That one
    /// is returned.
    pub(crate) fn put(
        &mut self,
        shared: &Frames,
        (kind, object, revision): (EventKind, &Arc<Object>, Revision),
        now: impl Fn() -> Timestamp,
        out: &mut impl FrameSink,
    ) -> Option<Bytes> {
        if self.is_table() || !Frames::is_worth_it(object) {
            out.own(|own| self.writer.event(kind, object, revision, now(), own));
            return None;
        }
        let seen = Seen { object, served: &self.served, kind, revision, form: self.form };
        let writer = &mut self.writer;
        let frame = shared.get_or_make(&seen, |own| writer.event(kind, object, revision, now(), own));
        out.share(frame.clone());
        Some(frame)
    }

    /// Of what, and how it is shown, if that is all that an event's frame depends on besides the event: in a
    /// Table it depends on the time as well, and on what was sent before.
    fn way(&self) -> Option<(&Arc<Served>, EventForm)> {
        (!self.is_table()).then_some((&self.served, self.form))
    }

    /// The events of all objects of a segment in the initial state: as the segment, where each is sent as it
    /// is stored.
    pub(crate) fn initial_segment(
        &mut self,
        objects: &[Arc<Object>],
        scratch: &mut Scratch,
        now: &dyn Fn() -> Timestamp,
        out: &mut impl FrameSink,
    ) {
        if let Some(as_stored) = self.writer.as_stored()
            && objects.iter().all(|object| as_stored.is_sent_so(object))
            && let Some((first, deflated)) = objects.first().zip(Deflated::of(objects))
        {
            let of = AtRest { deflated, served: &self.served, first: first.key() };
            return out.segment(of, |place, own| as_stored.added(&scratch.bytes(&objects[place]), own));
        }
        out.own_each(objects.len(), |place, own| self.writer.initial(&objects[place], scratch, now, own));
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
pub fn status_without_code(status: &Status, out: &mut Vec<u8>) {
    out.extend_from_slice(status.to_value(0).to_string().as_bytes());
}
