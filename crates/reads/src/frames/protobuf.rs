//! Events in protobuf: their shared messages between heads and tails, each frame behind its length. There is
//! no Table.

use std::borrow::Cow;
use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_object::{Keep, Object, Scratch};
use forebay_schema::builtin::protobuf::{self, Envelope};
use forebay_schema::builtin::table;
use forebay_watchcache::EventKind;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::bookmark::{bookmark_metadata, bookmark_object};
use super::form::{EventFormat, EventWriter, FrameMessage, word};
use crate::present::As;
use crate::present::message::{Messages, encode};

pub static PROTOBUF: EventFormat = EventFormat {
    media_type: "application/vnd.kubernetes.protobuf",
    content_type: "application/vnd.kubernetes.protobuf;stream=watch",
    has_tables: false,
    has_custom_objects: false,
    can_drop: false,
    has_stored_form: false,
    writer: |served, form| Box::new(LengthDelimited(Messages::new(served, form.what, form.meta))),
    message: |frames| {
        let (len, behind) = frames.split_first_chunk()?;
        let (frame, rest) = behind.split_at((u32::from_be_bytes(*len) as usize).min(behind.len()));
        Some((FrameMessage::Binary(frame), rest))
    },
};

struct LengthDelimited(Messages);

impl EventWriter for LengthDelimited {
    fn event(
        &mut self,
        kind: EventKind,
        object: &Object,
        revision: Revision,
        _now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        self.object(kind, (object, Keep::Always), revision, out);
    }

    fn initial(
        &mut self,
        object: &Arc<Object>,
        _scratch: &mut Scratch,
        _now: &dyn Fn() -> Timestamp,
        out: &mut Vec<u8>,
    ) {
        self.object(EventKind::Added, (object, Keep::IfRoom), object.revision(), out);
    }

    fn bookmark(&mut self, revision: Revision, initial_end: bool, _now: Timestamp, out: &mut Vec<u8>) {
        let messages = &self.0;
        let value = match (messages.shown, messages.served.ty()) {
            (As::Object, Some(_)) => bookmark_object(&messages.served, revision, initial_end),
            _ => json!({ "metadata": bookmark_metadata(revision, initial_end) }),
        };
        frame("BOOKMARK", &messages.one, &encode(messages.ty, &value, "a bookmark"), out);
    }

    fn error(&mut self, status: &[u8], out: &mut Vec<u8>) {
        let value: Value = serde_json::from_slice(status).unwrap_or_default();
        // A test of the table rules out that it is not there.
        let ty = table().kind("", "v1", "Status").expect("the table has the kinds of v1").ty;
        frame("ERROR", &Envelope::new("v1", "Status"), &encode(ty, &value, "a Status"), out);
    }
}

impl LengthDelimited {
    /// - `keep`: as for an event, or as for one of a whole state.
    fn object(
        &self,
        kind: EventKind,
        (object, keep): (&Object, Keep),
        revision: Revision,
        out: &mut Vec<u8>,
    ) {
        let piece = self.0.piece(object, keep);
        let message = if revision == object.revision() {
            Cow::Borrowed(&*piece)
        } else {
            // A message of ours has a resourceVersion: what has none is nothing at all, and is sent as that.
            let spliced = protobuf::with_resource_version(&piece, &revision.to_string());
            spliced.map_or(Cow::Borrowed(&*piece), Cow::Owned)
        };
        frame(word(kind), &self.0.one, &message, out);
    }
}

fn frame(word: &str, envelope: &Envelope, message: &[u8], out: &mut Vec<u8>) {
    protobuf::open_watch_frame(word, envelope.len_around(message.len()), out);
    envelope.write(message, out);
}
