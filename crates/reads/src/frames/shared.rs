//! An event is encoded once for each way in which it is shown, by the first watch that sends it, and those
//! who send it at about the same time share the bytes.
//!
//! In: what is shown of which event, and how it is made. Out: bytes. Never: a second cache of objects: what
//! is kept is of the last few events, within [`SHARED_FRAMES_BYTES_MAX`], and by each thread
//! [`THREAD_FRAMES_MAX`] frames of at most [`THREAD_FRAME_BYTES_MAX`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use forebay_apimachinery::Revision;
use forebay_catalog::Served;
use forebay_object::Object;
use forebay_watchcache::{EventKind, Position};

use super::form::EventForm;
use crate::limits::{
    FRAME_HEAD_BYTES, SHARED_BYTES_MIN, SHARED_FRAMES_BYTES_MAX, SHARED_FRAMES_MAX, THREAD_FRAME_BYTES_MAX,
    THREAD_FRAMES_MAX,
};

thread_local! {
    /// Of thousands of watchers that are told of one event, one on each thread looks into the window and
    /// among the frames, whose locks and counts all threads write to; the others are told what that one was.
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
#[derive(Debug)]
pub(crate) struct Frames {
    shelf: Mutex<Shelf>,
    // Bytes before each, for whoever copies it.
    lead: usize,
}

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
    /// - `lead`: a frame begins so far into its memory, in bytes.
    pub(crate) fn new(lead: usize) -> Frames {
        Frames { shelf: Mutex::default(), lead }
    }

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
        if frame.len() > THREAD_FRAME_BYTES_MAX {
            return;
        }
        let (served, frame) = (Arc::downgrade(served), Bytes::from_owner(frame));
        LAST.with_borrow_mut(|last| {
            if last.len() == THREAD_FRAMES_MAX {
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
                let lead = self.lead;
                let make = || {
                    let mut frame = Vec::with_capacity(lead + bytes + FRAME_HEAD_BYTES);
                    frame.resize(lead, 0);
                    make(&mut frame);
                    Bytes::from(frame).slice(lead..)
                };
                place.get_or_init(make).clone()
            }
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
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
        while self.last.len() > 1
            && (self.last.len() > SHARED_FRAMES_MAX || self.bytes > SHARED_FRAMES_BYTES_MAX)
        {
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
