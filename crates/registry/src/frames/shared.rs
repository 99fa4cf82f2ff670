//! An event is encoded once for each way in which it is shown, by the first watch that sends it, and those who send it at about
//! the same time share the bytes.
//!
//! In: what is shown of which event, and how it is made. Out: bytes. Never: a second cache of objects: what is kept is of the
//! last few events, within [`FRAMES_BYTES_MAX`], and by each thread [`LAST_MAX`] frames of at most [`LAST_BYTES_MAX`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use forebay_apimachinery::Revision;
use forebay_catalog::Served;
use forebay_object::Object;
use forebay_watchcache::{EventKind, Position};

use super::form::EventForm;

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
    form: EventForm,
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
    pub(crate) form: EventForm,
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
    form: EventForm,
    bytes: usize,
    frame: Arc<OnceLock<Bytes>>,
}

impl Frames {
    /// What this thread sent lately of what is next at `at`.
    pub(super) fn again(at: Position, served: &Arc<Served>, form: EventForm) -> Option<(Revision, Bytes)> {
        LAST.with_borrow(|last| {
            let is_same = |last: &&Last| last.at == at && last.form == form && is_at(&last.served, served);
            let last = last.iter().rev().find(is_same)?;
            Some((last.revision, last.frame.clone()))
        })
    }

    /// Keeps what was next at `at`, and nothing else of its revision, for [`Frames::again`].
    pub(super) fn keep(
        at: Position,
        served: &Arc<Served>,
        form: EventForm,
        revision: Revision,
        frame: Bytes,
    ) {
        if frame.len() > LAST_BYTES_MAX {
            return;
        }
        let (served, frame) = (Arc::downgrade(served), Bytes::from_owner(frame));
        LAST.with_borrow_mut(|last| {
            if last.len() == LAST_MAX {
                last.pop_front();
            }
            last.push_back(Last { at, served, form, revision, frame });
        });
    }

    /// Whether the frame of an event of this object is shared, and not made by each.
    pub(super) fn is_worth_it(object: &Object) -> bool {
        object.body_len() >= SHARED_BYTES_MIN
    }

    /// An event's frame, which `make` appends if nobody has yet.
    pub(super) fn get_or_make(&self, seen: &Seen<'_>, make: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let bytes = seen.object.body_len();
        // Others may be about to make it, too: only those wait who want the same.
        let found = self.shelf().find(seen, bytes);
        match found {
            Found::Made(frame) => frame,
            Found::Place(place) => {
                let make = || {
                    let mut frame = Vec::with_capacity(LEAD_BYTES + bytes + FRAME_BYTES);
                    frame.resize(LEAD_BYTES, 0);
                    make(&mut frame);
                    Bytes::from(frame).slice(LEAD_BYTES..)
                };
                place.get_or_init(make).clone()
            }
        }
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
        let &Seen { object, served, kind, revision, form } = seen;
        let (object, served) = (Arc::downgrade(object), Arc::downgrade(served));
        Kept { object, served, kind, revision, form, bytes, frame: Arc::default() }
    }

    /// By address: asking a [`Weak`] itself would write to what all watchers share.
    fn is(&self, seen: &Seen<'_>) -> bool {
        self.revision == seen.revision
            && self.kind == seen.kind
            && self.form == seen.form
            && is_at(&self.object, seen.object)
            && is_at(&self.served, seen.served)
    }
}

pub(super) fn is_at<T>(weak: &Weak<T>, arc: &Arc<T>) -> bool {
    std::ptr::eq(weak.as_ptr(), Arc::as_ptr(arc))
}
