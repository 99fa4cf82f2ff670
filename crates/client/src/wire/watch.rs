//! A watch as JSON: one document for each event, behind one another.
//!
//! In: the body in pieces. Out: a [`Frame`] for each document that is whole. Never: holds more than the frame
//! that is coming in and a piece.

use std::ops::Range;

use bytes::Bytes;

use super::error::{WireError, garbled};
use super::object::{ObjectScan, ObjectText};
use super::pending::Pending;
use super::status::StatusFrame;
use super::text::string;
use super::walk::{Coming, Reached, Take, Visit, Walk};
use crate::limits::OBJECT_BYTES_MAX;

/// An event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<O = ObjectText> {
    pub kind: FrameKind,
    pub object: O,
}

impl<O> Frame<O> {
    /// The same frame, with its object replaced by what `of` makes of it.
    pub fn map<P>(self, of: impl FnOnce(O) -> P) -> Frame<P> {
        Frame { kind: self.kind, object: of(self.object) }
    }
}

/// A frame, and where its object is in the text that it is a part of.
pub type FrameAt = (Frame, Range<usize>);

/// What happened, or what the server says of the watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameKind {
    Added,
    Modified,
    Deleted,
    /// Nothing up to the object's `resourceVersion` was missed.
    Bookmark {
        /// And that was all of the initial state that a watch list begins with.
        initial_end: bool,
    },
    /// The object is this Status, and the stream ends.
    Error(StatusFrame),
}

/// The frames of a stream.
#[derive(Debug)]
pub struct WatchFrames {
    pending: Pending,
    walk: Walk,
    scan: FrameScan,
    failed: Option<WireError>,
}

impl Default for WatchFrames {
    fn default() -> WatchFrames {
        WatchFrames::new()
    }
}

impl WatchFrames {
    pub fn new() -> WatchFrames {
        let scan = FrameScan::default();
        WatchFrames { pending: Pending::default(), walk: Walk::new(), scan, failed: None }
    }

    /// Takes what came in. Frames that were not asked for before stay.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.push(piece);
    }

    /// The next frame that is whole; `None` when more has to come in first.
    ///
    /// # Errors
    /// [`WireError`], now and from now on: where the next frame begins is not known.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let next = self.advance();
        self.failed = next.as_ref().err().copied();
        next
    }

    /// The frames of `text`, which comes next, if they are all of it and no other has begun before. Otherwise
    /// nothing is taken of it, and it may be [pushed](WatchFrames::push). With each comes the place of its
    /// object, which is that part of the text: nothing is copied.
    ///
    /// # Errors
    /// As [`WatchFrames::next_frame`].
    pub fn frames_of(&mut self, text: &Bytes) -> Result<Option<Vec<FrameAt>>, WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.is_within_frame() || !self.pending.text().is_empty() {
            return Ok(None);
        }
        let frames = whole_frames(text);
        self.failed = frames.as_ref().err().copied();
        frames
    }

    /// Whether the stream stands in the middle of a frame: when it ends here, that one is lost.
    pub fn is_within_frame(&self) -> bool {
        self.walk.is_within()
    }

    fn advance(&mut self) -> Result<Option<Frame>, WireError> {
        let text = self.pending.text();
        let reached = self.walk.go(text, &mut self.scan)?;
        let seen = if self.walk.is_within() { text.len() } else { self.walk.at() };
        if seen - self.walk.begun() > OBJECT_BYTES_MAX {
            return Err(WireError::TooLong);
        }
        if self.walk.is_within() {
            return Ok(None);
        }
        let frame = match reached {
            Reached::End => {
                let copy = |span: Range<usize>| Bytes::copy_from_slice(&text[span]);
                Some(std::mem::take(&mut self.scan).finish(text, copy)?)
            }
            // White space between frames is used up as well.
            _ => None,
        };
        self.pending.use_up(seen);
        self.walk.forget(seen);
        Ok(frame)
    }
}

/// The frames of a text that is nothing else.
fn whole_frames(text: &Bytes) -> Result<Option<Vec<FrameAt>>, WireError> {
    let (mut walk, mut scan, mut frames) = (Walk::new(), FrameScan::default(), Vec::new());
    loop {
        match walk.go(text, &mut scan)? {
            Reached::End if walk.at() - walk.begun() > OBJECT_BYTES_MAX => return Err(WireError::TooLong),
            Reached::End => {
                let mut place = 0..0;
                let frame = std::mem::take(&mut scan).finish(text, |span| {
                    place = span.clone();
                    text.slice(span)
                })?;
                frames.push((frame, place));
            }
            // White space stands behind the last.
            _ => return Ok((!walk.is_within()).then_some(frames)),
        }
    }
}

/// What was seen of a frame.
#[derive(Debug, Default)]
struct FrameScan {
    kind: Option<String>,
    object: Option<ObjectScan>,
    // Behind the object.
    object_end: usize,
}

impl FrameScan {
    fn finish(self, text: &[u8], hold: impl FnOnce(Range<usize>) -> Bytes) -> Result<Frame, WireError> {
        let Some(kind) = self.kind else { return garbled("an event without a type") };
        let Some(object) = self.object else { return garbled("an event without an object") };
        let object = object.finish(text, self.object_end, hold)?;
        let kind = match kind.as_str() {
            "ADDED" => FrameKind::Added,
            "MODIFIED" => FrameKind::Modified,
            "DELETED" => FrameKind::Deleted,
            "BOOKMARK" => FrameKind::Bookmark { initial_end: object.ends_initial_events() },
            "ERROR" => FrameKind::Error(StatusFrame::of_error(object.bytes())?),
            _ => return garbled("an event of an unknown type"),
        };
        Ok(Frame { kind, object })
    }
}

impl Visit for FrameScan {
    fn comes(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
        match (coming.level, coming.name, &mut self.object) {
            (0, b"type", _) => Ok(Take::Value),
            (0, b"object", Some(_)) => garbled("a second object in an event"),
            (0, b"object", none) if coming.first == b'{' => {
                *none = Some(ObjectScan::begin(coming));
                Ok(Take::Enter)
            }
            (0, b"object", _) => garbled("an event whose object is none"),
            (0, _, _) | (_, _, None) => Ok(Take::Skip),
            (level, _, Some(object)) => object.comes(level - 1, coming),
        }
    }

    fn passed(&mut self, level: usize, value: &[u8], member: Range<usize>) -> Result<(), WireError> {
        match (level, &mut self.object) {
            (0, _) => self.kind = string(value)?.or(self.kind.take()),
            (_, Some(object)) => object.passed(value, member)?,
            (_, None) => {}
        }
        Ok(())
    }

    fn left(&mut self, level: usize, at: usize, spaces: usize) -> Reached {
        if let (1.., Some(object)) = (level, &mut self.object) {
            object.left(level - 1, at, spaces);
            self.object_end = if level == 1 { at } else { self.object_end };
        }
        Reached::More
    }
}
