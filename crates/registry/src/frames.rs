//! Frames of watches. An event is encoded once for each way in which it is shown, by the first watch that sends it, and those
//! who send it at about the same time share the bytes.
//!
//! In: what is shown of which event, and how it is made. Out: bytes, and [`Batch`], the frames of one watch in order. Never:
//! a second cache of objects: what is kept is of the last few events, within [`FRAMES_BYTES_MAX`], and by each thread
//! [`LAST_MAX`] frames of at most [`LAST_BYTES_MAX`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_object::{Block, Object};
use forebay_watchcache::{EventKind, Position, Watcher};
use jiff::Timestamp;
use smallvec::SmallVec;

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

/// A shared frame begins so far into its memory. It is copied behind the head of a TLS record and of a chunk, into memory of
/// the same size, which begins at the same places of a page: without this the copy would be some bytes, modulo 4 KiB, ahead of
/// what is copied, and there `rep movsb`, by which libc copies more than 8 KiB, takes 30 times as long on AMD Zen (ADR 42).
const LEAD_BYTES: usize = 64;

/// Frames that a thread keeps of those that it sent last, as many as there are ways to show an event that are asked for at
/// once; longer ones are not kept.
const LAST_MAX: usize = 4;
const LAST_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// Of thousands of watchers that are told of one event, one on each thread looks into the window and among the frames, whose
    /// locks and counts all threads write to; the others are told what that one was.
    static LAST: RefCell<VecDeque<Last>> = const { RefCell::new(VecDeque::new()) };
}

/// A frame that a thread sent.
struct Last {
    at: Position,
    // Neither kept alive nor mistaken for another.
    served: Weak<Served>,
    shown: Shown,
    revision: Revision,
    // Counted by this thread alone.
    frame: Bytes,
}

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
    /// Puts the frame of what is next for `watcher` into `out`, if this thread has sent it lately, and has it pass over that;
    /// whether it did.
    pub(crate) fn put_again(watcher: &mut Watcher, presenter: &Presenter, out: &mut impl FrameSink) -> bool {
        let Some(at) = watcher.position() else { return false };
        LAST.with_borrow(|last| {
            let Some((served, shown)) = presenter.way() else { return false };
            let is_same = |last: &&Last| last.at == at && last.shown == shown && is_at(&last.served, served);
            let Some(last) = last.iter().rev().find(is_same) else { return false };
            let passed = watcher.pass(at, last.revision, last.frame.len());
            if passed {
                out.share(last.frame.clone());
            }
            passed
        })
    }

    /// Keeps what was next at `at`, and nothing else of its revision, for [`Frames::put_again`].
    pub(crate) fn keep(at: Position, presenter: &Presenter, revision: Revision, frame: Bytes) {
        let Some((served, shown)) = presenter.way() else { return };
        if frame.len() > LAST_BYTES_MAX {
            return;
        }
        let (served, frame) = (Arc::downgrade(served), Bytes::from_owner(frame));
        LAST.with_borrow_mut(|last| {
            if last.len() == LAST_MAX {
                last.pop_front();
            }
            last.push_back(Last { at, served, shown, revision, frame });
        });
    }

    /// Puts an event's frame into `out`: the one that others have as well, where there can be one. That one is returned.
    pub(crate) fn put(
        &self,
        presenter: &mut Presenter,
        (kind, object, revision): (EventKind, &Arc<Object>, Revision),
        now: impl Fn() -> Timestamp,
        out: &mut impl FrameSink,
    ) -> Option<Bytes> {
        let bytes = object.body_len();
        let seen = if bytes < SHARED_BYTES_MIN { None } else { presenter.seen(object, kind, revision) };
        // Others may be about to make it, too: only those wait who want the same.
        let frame = match seen.map(|seen| self.shelf().find(&seen, bytes)) {
            None => {
                out.own(|own| presenter.event(kind, object, revision, now(), own));
                return None;
            }
            Some(Found::Made(frame)) => frame,
            Some(Found::Place(place)) => {
                let make = || {
                    let mut frame = Vec::with_capacity(LEAD_BYTES + bytes + FRAME_BYTES);
                    frame.resize(LEAD_BYTES, 0);
                    presenter.event(kind, object, revision, now(), &mut frame);
                    Bytes::from(frame).slice(LEAD_BYTES..)
                };
                place.get_or_init(make).clone()
            }
        };
        out.share(frame.clone());
        Some(frame)
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
            && is_at(&self.object, seen.object)
            && is_at(&self.served, seen.served)
    }
}

fn is_at<T>(weak: &Weak<T>, arc: &Arc<T>) -> bool {
    std::ptr::eq(weak.as_ptr(), Arc::as_ptr(arc))
}

/// A block whose objects are sent as they are stored, and as what.
#[derive(Clone, Copy)]
pub struct AtRest<'a> {
    pub block: &'a Arc<Block>,
    pub served: &'a Arc<Served>,
    /// Of its objects.
    pub first: &'a Key,
}

impl AtRest<'_> {
    /// Whether it is these, which are alive or hold their place in memory.
    pub fn is(self, block: &Weak<Block>, served: &Weak<Served>) -> bool {
        is_at(block, self.block) && is_at(served, self.served)
    }
}

/// Where a watch's frames are put.
pub trait FrameSink {
    /// Room for so many bytes of frames of its own.
    fn reserve(&mut self, bytes: usize);

    /// A frame of its own, which `write` appends.
    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>));

    /// So many frames of its own, of which `write` appends each by its place.
    fn own_each(&mut self, count: usize, mut write: impl FnMut(usize, &mut Vec<u8>)) {
        (0..count).for_each(|place| self.own(|own| write(place, own)));
    }

    /// A frame that others have as well.
    fn share(&mut self, frame: Bytes);

    /// Whether it has a use for [`FrameSink::block`].
    fn takes_blocks(&self) -> bool {
        false
    }

    /// The frames of all objects of a block in the initial state, of which `write` appends each by its place. Whoever is sent
    /// the same block of the same resource and version is sent the same.
    fn block(&mut self, of: AtRest<'_>, write: impl FnMut(usize, &mut Vec<u8>)) {
        self.own_each(of.block.objects(), write);
    }

    /// Bytes of all frames.
    fn frame_bytes(&self) -> usize;
}

impl FrameSink for Vec<u8> {
    fn reserve(&mut self, bytes: usize) {
        self.reserve(bytes);
    }

    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self);
    }

    fn share(&mut self, frame: Bytes) {
        self.extend_from_slice(&frame);
    }

    fn frame_bytes(&self) -> usize {
        self.len()
    }
}

/// Frames of one watch in order, in parts: some frames of its own, or one that others have as well.
#[derive(Debug, Default)]
pub struct Batch {
    // Empty when there is none: most batches are one event, for which nothing is reserved.
    first: Bytes,
    rest: Option<Rest>,
    // Behind the parts.
    own: Vec<u8>,
    // Of each frame since they were asked for.
    sizes: Sizes,
}

/// Boxed: every watch that waits has an empty batch.
#[allow(clippy::box_collection, reason = "there is none most of the time")]
type Rest = Box<VecDeque<Bytes>>;

/// Bytes of frames; that of a single one is kept in place.
type Sizes = SmallVec<[u32; 4]>;

impl Batch {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.frame_bytes() == 0
    }

    /// Bytes of each frame that was put here since this was asked.
    pub fn take_sizes(&mut self) -> impl Iterator<Item = u32> + use<> {
        std::mem::take(&mut self.sizes).into_iter()
    }

    /// The parts that are left.
    pub fn parts(&mut self) -> impl Iterator<Item = &Bytes> {
        self.close();
        self.closed()
    }

    /// All that is left, as one.
    pub fn whole(&mut self) -> Bytes {
        self.close();
        let bytes = self.frame_bytes();
        if self.first.len() == bytes {
            return self.first.clone();
        }
        let mut whole = Vec::with_capacity(bytes);
        self.closed().for_each(|part| whole.extend_from_slice(part));
        whole.into()
    }

    /// Bytes of the part that comes next.
    pub fn next_bytes(&mut self) -> usize {
        self.close();
        self.first.len()
    }

    /// Takes at most `bytes_max` of the part that comes next.
    pub fn take(&mut self, bytes_max: usize) -> Bytes {
        self.close();
        let next = &mut self.first;
        let taken = next.split_to(next.len().min(bytes_max));
        if next.is_empty() {
            *next = self.rest.as_mut().and_then(|rest| rest.pop_front()).unwrap_or_default();
        }
        taken
    }

    fn closed(&self) -> impl Iterator<Item = &Bytes> {
        let first = std::iter::once(&self.first).filter(|first| !first.is_empty());
        first.chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    /// Makes a part of what is not one yet.
    fn close(&mut self) {
        if !self.own.is_empty() {
            let own = std::mem::take(&mut self.own);
            self.push(own.into());
        }
    }

    fn push(&mut self, part: Bytes) {
        if part.is_empty() {
            return;
        }
        if self.first.is_empty() {
            self.first = part;
        } else {
            self.rest.get_or_insert_default().push_back(part);
        }
    }
}

impl From<Vec<u8>> for Batch {
    fn from(own: Vec<u8>) -> Batch {
        Batch { own, ..Batch::default() }
    }
}

impl FrameSink for Batch {
    fn reserve(&mut self, bytes: usize) {
        self.own.reserve(bytes);
    }

    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.own.len();
        write(&mut self.own);
        self.sizes.push((self.own.len() - from) as u32);
    }

    fn share(&mut self, frame: Bytes) {
        self.close();
        self.sizes.push(frame.len() as u32);
        self.push(frame);
    }

    fn frame_bytes(&self) -> usize {
        self.closed().map(Bytes::len).sum::<usize>() + self.own.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &str, is_shared: bool, sink: &mut impl FrameSink) {
        match is_shared {
            true => sink.share(Bytes::copy_from_slice(text.as_bytes())),
            false => sink.own(|own| own.extend_from_slice(text.as_bytes())),
        }
    }

    #[test]
    fn a_batch_gives_its_frames_in_order_whoever_else_has_them() {
        let (mut batch, mut copied) = (Batch::default(), Vec::new());
        for (text, is_shared) in [("one ", false), ("two ", false), ("six ", true), ("ten", false)] {
            put(text, is_shared, &mut batch);
            put(text, is_shared, &mut copied);
        }
        assert_eq!((batch.frame_bytes(), copied.frame_bytes()), (15, 15));
        assert_eq!(batch.parts().map(Bytes::len).collect::<Vec<_>>(), [8, 4, 3]);
        assert_eq!(batch.take_sizes().collect::<Vec<_>>(), [4, 4, 4, 3]);
        put("nine", false, &mut batch);
        assert_eq!(batch.take_sizes().collect::<Vec<_>>(), [4], "each once");
        put("nine", false, &mut copied);
        assert_eq!(
            (batch.whole(), Batch::from(copied.clone()).whole()),
            (copied.clone().into(), copied.clone().into())
        );
        let mut taken = Vec::new();
        while !batch.is_empty() {
            assert!(batch.next_bytes() > 0);
            taken.push(batch.take(5));
        }
        assert_eq!(taken, ["one t", "wo ", "six ", "ten", "nine"]);
        assert_eq!((taken.concat(), batch.take(5)), (copied, Bytes::new()));
    }
}
