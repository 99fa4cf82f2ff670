//! Frames of watches. An event is encoded once for each way in which it is shown, by the first watch that sends it, and those
//! who send it at about the same time share the bytes.
//!
//! In: what is shown of which event, and how it is made. Out: bytes, and [`Batch`], the frames of one watch in order. Never:
//! a second cache of objects: what is kept is of the last few events, within [`FRAMES_BYTES_MAX`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

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
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    // Neither is kept alive; nor are they mistaken for others, as their place in memory is not given away.
    object: Weak<Object>,
    served: Weak<Served>,
    kind: EventKind,
    revision: Revision,
    shown: Shown,
}

#[derive(Debug)]
struct Kept {
    seen: Seen,
    bytes: usize,
    frame: Arc<OnceLock<Bytes>>,
}

impl Frames {
    /// Puts an event's frame into `out`: the one that others have as well, where there can be one.
    pub(crate) fn put(
        &self,
        presenter: &mut Presenter,
        (kind, object, revision): (EventKind, &Arc<Object>, Revision),
        now: Timestamp,
        out: &mut impl FrameSink,
    ) {
        let bytes = object.body_len();
        let seen = if bytes < SHARED_BYTES_MIN { None } else { presenter.seen(object, kind, revision) };
        let Some(seen) = seen else {
            return presenter.event(kind, (object, Keep::Always), revision, now, out.own());
        };
        out.share(self.get(seen, bytes, || {
            let mut frame = Vec::with_capacity(bytes + FRAME_BYTES);
            presenter.event(kind, (object, Keep::Always), revision, now, &mut frame);
            frame
        }));
    }

    /// The frame of what is `seen`, made unless it is there.
    fn get(&self, seen: Seen, bytes: usize, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        // Made outside of the lock: only those wait who want the same.
        let frame = self.0.lock().unwrap_or_else(PoisonError::into_inner).find(seen, bytes);
        frame.get_or_init(|| Bytes::from(make())).clone()
    }
}

impl Shelf {
    fn find(&mut self, seen: Seen, bytes: usize) -> Arc<OnceLock<Bytes>> {
        if let Some(kept) = self.last.iter().rev().find(|kept| kept.seen.is(&seen)) {
            return kept.frame.clone();
        }
        let frame = Arc::<OnceLock<Bytes>>::default();
        self.bytes += bytes;
        self.last.push_back(Kept { seen, bytes, frame: frame.clone() });
        while self.last.len() > 1 && (self.last.len() > FRAMES_MAX || self.bytes > FRAMES_BYTES_MAX) {
            self.bytes -= self.last.pop_front().map_or(0, |kept| kept.bytes);
        }
        frame
    }
}

impl Seen {
    pub(crate) fn new(
        object: &Arc<Object>,
        kind: EventKind,
        revision: Revision,
        served: &Arc<Served>,
        shown: Shown,
    ) -> Seen {
        Seen { object: Arc::downgrade(object), served: Arc::downgrade(served), kind, revision, shown }
    }

    fn is(&self, other: &Seen) -> bool {
        self.revision == other.revision
            && self.kind == other.kind
            && self.shown == other.shown
            && self.object.ptr_eq(&other.object)
            && self.served.ptr_eq(&other.served)
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
