//! A watch in protobuf: frames with their length before them, each a `meta.v1.WatchEvent` with its object in
//! an envelope.
//!
//! In: the body in pieces. Out: a [`Frame`] for each frame that is whole. Never: holds more than the frame
//! that is coming in and a piece.

use bytes::Bytes;

use super::super::delimited::DelimitedFrames;
use super::super::error::{WireError, garbled};
use super::super::watch::{Frame, FrameKind};
use super::fields::Fields;
use super::object::{Envelope, ObjectMessage, envelope};
use super::status::status;

/// The frames of a stream.
#[derive(Debug, Default)]
pub struct MessageFrames {
    frames: DelimitedFrames,
    failed: Option<WireError>,
}

impl MessageFrames {
    pub fn new() -> MessageFrames {
        MessageFrames::default()
    }

    /// Takes what came in. Frames that were not asked for before stay.
    pub fn push(&mut self, piece: &[u8]) {
        self.frames.push(piece);
    }

    /// The next frame that is whole; `None` when more has to come in first.
    ///
    /// # Errors
    /// [`WireError`], now and from now on, as in JSON.
    pub fn next_frame(&mut self) -> Result<Option<Frame<ObjectMessage>>, WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let next = self.frames.next_frame().and_then(|frame| frame.map(event).transpose());
        self.failed = next.as_ref().err().copied();
        next
    }

    /// Whether the stream stands in the middle of a frame: when it ends here, that one is lost.
    pub fn is_within_frame(&self) -> bool {
        self.frames.is_within_frame()
    }
}

/// Reads a `WatchEvent`.
fn event(frame: Bytes) -> Result<Frame<ObjectMessage>, WireError> {
    let (mut kind, mut object) = (None, None);
    let mut fields = Fields::of(&frame);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => kind = Some(value.bytes()?),
            2 if object.replace(value.bytes()?).is_some() => return garbled("a second object in an event"),
            _ => {}
        }
    }
    let Some(kind) = kind else { return garbled("an event without a type") };
    let Some(object) = object.map(raw).transpose()?.flatten() else {
        return garbled("an event without an object");
    };
    let Envelope { type_meta, message } = envelope(&frame.slice_ref(object))?;
    let error = if kind == b"ERROR" { Some(status(&message)?) } else { None };
    // Of a Status no metadata is asked for, which in one is no ObjectMeta.
    let message = if error.is_some() { Bytes::new() } else { message };
    let object = ObjectMessage::read(message, Some(type_meta))?;
    let kind = match (kind, error) {
        (b"ADDED", _) => FrameKind::Added,
        (b"MODIFIED", _) => FrameKind::Modified,
        (b"DELETED", _) => FrameKind::Deleted,
        (b"BOOKMARK", _) => FrameKind::Bookmark { initial_end: object.ends_initial_events()? },
        (_, Some(status)) => FrameKind::Error(status),
        _ => return garbled("an event of an unknown type"),
    };
    Ok(Frame { kind, object })
}

/// What a `runtime.RawExtension` has.
fn raw(message: &[u8]) -> Result<Option<&[u8]>, WireError> {
    let mut raw = None;
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 && raw.replace(value.bytes()?).is_some() {
            return garbled("a second object in an event");
        }
    }
    Ok(raw)
}
