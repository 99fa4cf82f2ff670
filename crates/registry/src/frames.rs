//! Frames of watches. An event is encoded once for each way in which it is shown, by the first watch that sends it, and those
//! who send it at about the same time share the bytes.
//!
//! In: what is shown of which event, and how it is made. Out: bytes, and [`Batch`], the frames of one watch in order. Never:
//! a second cache of objects: what is kept is of the last few events, within [`FRAMES_BYTES_MAX`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use forebay_apimachinery::object::Keep;
use forebay_apimachinery::{Object, Revision};
use forebay_watchcache::EventKind;
use jiff::Timestamp;

use crate::catalog::Served;
use crate::present::{Presenter, Shown};

/// Frames kept, and bytes of their objects, in the whole process: as many as watchers are apart that send the same events at
/// about the same time. The oldest go first; the newest stays however long it is, until there is a newer one.
const FRAMES_MAX: usize = 64;
const FRAMES_BYTES_MAX: usize = 1 << 20;

/// A frame of a shorter object is made by each: that costs less than to look for it.
const SHARED_BYTES_MIN: usize = 1 << 10;

/// What a frame takes besides its object.
const FRAME_BYTES: usize = 128;

/// The frames that were made last.
#[derive(Debug, Default)]
pub(crate) struct Frames(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    // Oldest first.
    last: VecDeque<Kept>,
    // Of their objects.
    bytes: usize,
}

/// An event as one sees it.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) object: &'a Arc<Object>,
    pub(crate) served: &'a Arc<Served>,
    pub(crate) kind: EventKind,
    pub(crate) revision: Revision,
    pub(crate) shown: Shown,
}

enum Found {
    Made(Bytes),
    /// Where it goes.
    Place(Arc<OnceLock<Bytes>>),
}

#[derive(Debug)]
struct Kept {
    // Neither is kept alive; nor are they mistaken for others, as their place in memory is not given away.
    object: Weak<Object>,
    served: Weak<Served>,
    kind: EventKind,
    revision: Revision,
    shown: Shown,
    bytes: usize,
    frame: Arc<OnceLock<Bytes>>,
}

impl Frames {
    /// Puts an event's frame into `out`: the one that others have as well, where there can be one.
    pub(crate) fn put(
        &self,
        presenter: &mut Presenter,
        (kind, object, revision): (EventKind, &Arc<Object>, Revision),
        now: impl Fn() -> Timestamp,
        out: &mut impl FrameSink,
    ) {
        let bytes = object.body_len();
        let seen = if bytes < SHARED_BYTES_MIN { None } else { presenter.seen(object, kind, revision) };
        // Others may be about to make it, too: only those wait who want the same.
        let frame = match seen.map(|seen| self.shelf().find(&seen, bytes)) {
            None => return presenter.event(kind, (object, Keep::Always), revision, now(), out.own()),
            Some(Found::Made(frame)) => frame,
            Some(Found::Place(place)) => {
                let make = || {
                    let mut frame = Vec::with_capacity(bytes + FRAME_BYTES);
                    presenter.event(kind, (object, Keep::Always), revision, now(), &mut frame);
                    Bytes::from(frame)
                };
                place.get_or_init(make).clone()
            }
        };
        out.share(frame);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn find(&mut self, seen: &Seen<'_>, bytes: usize) -> Found {
        if let Some(kept) = self.last.iter().rev().find(|kept| kept.is(seen)) {
            return match kept.frame.get() {
                Some(frame) => Found::Made(frame.clone()),
                None => Found::Place(kept.frame.clone()),
            };
        }
        let kept = Kept::new(seen, bytes);
        let place = kept.frame.clone();
        self.bytes += bytes;
        self.last.push_back(kept);
        while self.last.len() > 1 && (self.last.len() > FRAMES_MAX || self.bytes > FRAMES_BYTES_MAX) {
            self.bytes -= self.last.pop_front().map_or(0, |kept| kept.bytes);
        }
        Found::Place(place)
    }
}

impl Kept {
    fn new(seen: &Seen<'_>, bytes: usize) -> Kept {
        let &Seen { object, served, kind, revision, shown } = seen;
        let (object, served) = (Arc::downgrade(object), Arc::downgrade(served));
        Kept { object, served, kind, revision, shown, bytes, frame: Arc::default() }
    }

    /// By address: asking a [`Weak`] itself would write to what all watchers share.
    fn is(&self, seen: &Seen<'_>) -> bool {
        self.revision == seen.revision
            && self.kind == seen.kind
            && self.shown == seen.shown
            && std::ptr::eq(self.object.as_ptr(), Arc::as_ptr(seen.object))
            && std::ptr::eq(self.served.as_ptr(), Arc::as_ptr(seen.served))
    }
}

/// Where a watch's frames are put.
pub trait FrameSink {
    /// For those that are its own.
    fn own(&mut self) -> &mut Vec<u8>;

    /// A frame that others have as well.
    fn share(&mut self, frame: Bytes);

    /// Bytes of all frames.
    fn frame_bytes(&self) -> usize;
}

impl FrameSink for Vec<u8> {
    fn own(&mut self) -> &mut Vec<u8> {
        self
    }

    fn share(&mut self, frame: Bytes) {
        self.extend_from_slice(&frame);
    }

    fn frame_bytes(&self) -> usize {
        self.len()
    }
}

/// Frames of one watch in order, in parts: each is some whole frames, until some of it was taken.
#[derive(Debug, Default)]
pub struct Batch {
    parts: VecDeque<Bytes>,
    parts_bytes: usize,
    // Behind the parts.
    own: Vec<u8>,
}

impl Batch {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.frame_bytes() == 0
    }

    /// The parts that are left.
    pub fn parts(&mut self) -> impl Iterator<Item = &Bytes> {
        self.close();
        self.parts.iter()
    }

    /// All that is left, as one.
    pub fn whole(&mut self) -> Bytes {
        self.close();
        match self.parts.len() {
            0 | 1 => self.parts.front().cloned().unwrap_or_default(),
            _ => self.parts.make_contiguous().concat().into(),
        }
    }

    /// Bytes of the part that comes next.
    pub fn next_bytes(&mut self) -> usize {
        self.close();
        self.parts.front().map_or(0, Bytes::len)
    }

    /// Takes at most `bytes_max` of the part that comes next.
    pub fn take(&mut self, bytes_max: usize) -> Bytes {
        self.close();
        let Some(next) = self.parts.front_mut() else { return Bytes::new() };
        let taken = next.split_to(next.len().min(bytes_max));
        self.parts_bytes -= taken.len();
        if next.is_empty() {
            self.parts.pop_front();
        }
        taken
    }

    /// Makes a part of what is not one yet.
    fn close(&mut self) {
        if !self.own.is_empty() {
            self.parts_bytes += self.own.len();
            self.parts.push_back(std::mem::take(&mut self.own).into());
        }
    }
}

impl From<Vec<u8>> for Batch {
    fn from(own: Vec<u8>) -> Batch {
        Batch { own, ..Batch::default() }
    }
}

impl FrameSink for Batch {
    fn own(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    fn share(&mut self, frame: Bytes) {
        self.close();
        self.parts_bytes += frame.len();
        self.parts.push_back(frame);
    }

    fn frame_bytes(&self) -> usize {
        self.parts_bytes + self.own.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_its_frames_in_order_whoever_else_has_them() {
        let (mut batch, mut copied) = (Batch::default(), Vec::new());
        for (text, is_shared) in [("one ", false), ("two ", false), ("six ", true), ("ten", false)] {
            for sink in [&mut batch as &mut dyn FrameSink, &mut copied] {
                match is_shared {
                    true => sink.share(Bytes::from_static(text.as_bytes())),
                    false => sink.own().extend_from_slice(text.as_bytes()),
                }
            }
        }
        assert_eq!((batch.frame_bytes(), copied.frame_bytes()), (15, 15));
        assert_eq!(batch.parts().map(Bytes::len).collect::<Vec<_>>(), [8, 4, 3]);
        assert_eq!(
            (batch.whole(), Batch::from(copied.clone()).whole()),
            (copied.clone().into(), copied.clone().into())
        );
        let mut taken = Vec::new();
        while !batch.is_empty() {
            assert!(batch.next_bytes() > 0);
            taken.push(batch.take(5));
        }
        assert_eq!(taken, ["one t", "wo ", "six ", "ten"]);
        assert_eq!((taken.concat(), batch.take(5)), (copied, Bytes::new()));
    }
}
