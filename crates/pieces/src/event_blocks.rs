//! Segments of the cache as the events of an initial state, deflated: what watch-lists in gzip are put
//! together from.
//!
//! A segment is deflated as the items of a LIST; events have other text around each object, so a watch-list
//! needs another form of it. It is made by the first reader that comes to it, shared with those that come
//! later, and held only while there are readers. In: a segment, and how its events are written. Out: their
//! deflated text. Never: more than [`EVENT_BLOCKS_BYTES_MAX`], or [`EVENT_BLOCKS_PASSED_BYTES_MAX`] of what
//! every reader has passed: the oldest go first, and who comes to them later makes them again.

use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use flate2::Crc;
use forebay_apimachinery::Key;
use forebay_catalog::Served;
use forebay_object::{Deflated, SegmentId};
use forebay_reads::AtRest;

use crate::limits::{EVENT_BLOCKS_BYTES_MAX, EVENT_BLOCKS_PASSED_BYTES_MAX};
use crate::member;

/// Those of a server. Cheap to clone.
#[derive(Clone, Default)]
pub struct EventBlocks(Arc<Mutex<Shelf>>);

/// One who reads them in order. When the last one is gone, the blocks go.
pub struct BlockReader {
    blocks: EventBlocks,
    id: u64,
}

/// The events of all objects of a segment.
pub(crate) struct EventBlock {
    /// Raw, without a final block, to a byte boundary.
    pub deflated: Box<[u8]>,
    /// CRC-32 of the plain text.
    pub crc: u32,
    pub plain_len: usize,
    /// Bytes of each event.
    pub sizes: Box<[u32]>,
}

/// A block that was found or made.
pub(crate) struct Got {
    pub block: Arc<EventBlock>,
    pub is_new: bool,
}

struct Shelf {
    // Oldest first.
    kept: VecDeque<Kept>,
    // Of those that are made.
    bytes: usize,
    bytes_max: usize,
    readers: Vec<Place>,
    next_id: u64,
}

/// How far a reader is.
struct Place {
    id: u64,
    served: Weak<Served>,
    // The first object of the block that it came to last.
    at: Option<Key>,
}

struct Kept {
    // Neither is kept alive; nor are they mistaken for others, as their place in memory is not given away.
    segment: SegmentId,
    served: Weak<Served>,
    // Its first object.
    first: Key,
    made: Made,
    // 0 until it is made.
    bytes: usize,
}

type Made = Arc<OnceLock<Arc<EventBlock>>>;

impl EventBlocks {
    /// For who is about to read the state of a resource.
    pub fn reader(&self, served: &Arc<Served>) -> BlockReader {
        let mut shelf = self.shelf();
        let id = shelf.next_id;
        shelf.next_id += 1;
        shelf.readers.push(Place { id, served: Arc::downgrade(served), at: None });
        drop(shelf);
        BlockReader { blocks: self.clone(), id }
    }

    /// While memory is short, none are kept.
    pub fn keep(&self, is_short: bool) {
        let mut shelf = self.shelf();
        shelf.bytes_max = if is_short { 0 } else { EVENT_BLOCKS_BYTES_MAX };
        let gone = shelf.let_go();
        drop(shelf);
        drop(gone);
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.shelf().bytes
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockReader {
    /// The events of the block that comes next. Whoever wants the same at the same time waits until they are
    /// made: a fraction of a millisecond.
    ///
    /// - `write`: appends the event of an object by its place.
    pub(crate) fn next(&self, of: AtRest<'_>, write: impl FnMut(usize, &mut Vec<u8>)) -> Got {
        let made = self.blocks.shelf().place(self.id, of);
        let mut is_new = false;
        let make = || {
            is_new = true;
            Arc::new(EventBlock::make(of.deflated, write))
        };
        let block = made.get_or_init(make).clone();
        if is_new {
            let mut shelf = self.blocks.shelf();
            shelf.count(&made, block.bytes());
            let gone = shelf.let_go();
            drop(shelf);
            drop(gone);
        }
        Got { block, is_new }
    }
}

impl Drop for BlockReader {
    fn drop(&mut self) {
        let mut shelf = self.blocks.shelf();
        shelf.readers.retain(|reader| reader.id != self.id);
        let mut gone = VecDeque::new();
        if shelf.readers.is_empty() {
            shelf.bytes = 0;
            shelf.readers = Vec::new();
            gone = std::mem::take(&mut shelf.kept);
        }
        drop(shelf);
        drop(gone);
    }
}

impl Default for Shelf {
    fn default() -> Shelf {
        let kept = VecDeque::new();
        Shelf { kept, bytes: 0, bytes_max: EVENT_BLOCKS_BYTES_MAX, readers: Vec::new(), next_id: 0 }
    }
}

impl Shelf {
    /// Where a block is or is to be, to which a reader has come.
    fn place(&mut self, id: u64, of: AtRest<'_>) -> Made {
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.id == id) {
            reader.at = Some(of.first.clone());
        }
        if let Some(known) = self.kept.iter().rev().find(|kept| kept.is(of)) {
            return known.made.clone();
        }
        let made = Made::default();
        self.kept.push_back(Kept {
            segment: of.deflated.id(),
            served: Arc::downgrade(of.served),
            first: of.first.clone(),
            made: made.clone(),
            bytes: 0,
        });
        made
    }

    /// Counts what was made, if it still is here.
    fn count(&mut self, made: &Made, bytes: usize) {
        if let Some(kept) = self.kept.iter_mut().rev().find(|kept| Arc::ptr_eq(&kept.made, made)) {
            kept.bytes = bytes;
            self.bytes += bytes;
        }
    }

    /// Takes out what is too much, for who does not hold the lock any more.
    fn let_go(&mut self) -> Vec<Kept> {
        let mut gone = Vec::new();
        while let Some(oldest) = self.kept.front()
            && (self.bytes > self.bytes_max
                || (self.bytes > EVENT_BLOCKS_PASSED_BYTES_MAX && self.is_passed(oldest)))
        {
            self.bytes -= oldest.bytes;
            gone.extend(self.kept.pop_front());
        }
        gone
    }

    /// Whether every reader has come to it.
    fn is_passed(&self, kept: &Kept) -> bool {
        let mut readers = self.readers.iter().filter(|reader| reader.served.ptr_eq(&kept.served));
        readers.all(|reader| reader.at.as_ref().is_some_and(|at| *at >= kept.first))
    }
}

impl Kept {
    /// Whether it is of these, which are alive or hold their place in memory.
    fn is(&self, of: AtRest<'_>) -> bool {
        self.segment.is_of(of.deflated) && ptr::eq(self.served.as_ptr(), Arc::as_ptr(of.served))
    }
}

impl EventBlock {
    fn make(items: Deflated<'_>, mut write: impl FnMut(usize, &mut Vec<u8>)) -> EventBlock {
        let mut plain = Vec::with_capacity(items.plain_len() + items.objects() * EVENT_BYTES_GUESS);
        let mut size = |place| {
            let from = plain.len();
            write(place, &mut plain);
            (plain.len() - from) as u32
        };
        let sizes = (0..items.objects()).map(&mut size).collect();
        let (mut crc, mut deflated) = (Crc::new(), Vec::new());
        crc.update(&plain);
        member::deflate(&plain, &mut deflated);
        EventBlock { deflated: deflated.into(), crc: crc.sum(), plain_len: plain.len(), sizes }
    }

    fn bytes(&self) -> usize {
        size_of::<Kept>() + size_of::<EventBlock>() + self.deflated.len() + size_of_val(&*self.sizes)
    }
}

/// What an event has around its object.
const EVENT_BYTES_GUESS: usize = 96;
