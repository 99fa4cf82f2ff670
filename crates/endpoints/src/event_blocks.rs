//! Blocks of the cache as the events of an initial state, deflated: what watch-lists in gzip are put together from.
//!
//! A block at rest is deflated as the items of a LIST; events have other text around each object, so a watch-list needs
//! another form of it. It is made by the first reader that comes to it, shared with those that come later, and held only while
//! there are readers. In: a block, and how its events are written. Out: their deflated text. Never: more than
//! [`EVENT_BLOCKS_BYTES_MAX`], or [`EVENT_BLOCKS_PASSED_BYTES_MAX`] of what every reader has passed: the oldest go first, and
//! who comes to them later makes them again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use flate2::Crc;
use forebay_apimachinery::object::Block;
use forebay_registry::AtRest;
use forebay_registry::catalog::Served;

use crate::limits::{EVENT_BLOCKS_BYTES_MAX, EVENT_BLOCKS_PASSED_BYTES_MAX};
use crate::member;

/// Those of a server. Cheap to clone.
#[derive(Clone, Default)]
pub struct EventBlocks(Arc<Mutex<Shelf>>);

/// One who reads them in order. When the last one is gone, the blocks go.
pub struct Reader {
    blocks: EventBlocks,
    id: u64,
}

/// The events of all objects of a block.
pub struct EventBlock {
    /// Raw, without a final block, to a byte boundary.
    pub deflated: Box<[u8]>,
    /// CRC-32 of the plain text.
    pub crc: u32,
    pub plain_len: usize,
    /// Bytes of each event.
    pub sizes: Box<[u32]>,
}

/// A block that was found or made.
pub struct Got {
    pub block: Arc<EventBlock>,
    pub is_new: bool,
}

#[derive(Default)]
struct Shelf {
    // Oldest first.
    kept: VecDeque<Kept>,
    readers: Vec<Place>,
    next_id: u64,
}

/// How far a reader is.
struct Place {
    id: u64,
    served: Weak<Served>,
    // Of its state, which may be a little older or newer than another's.
    blocks: usize,
}

struct Kept {
    // Neither is kept alive; nor are they mistaken for others, as their place in memory is not given away.
    block: Weak<Block>,
    served: Weak<Served>,
    made: Made,
    // Readers that were behind it and have not come to it yet; more, if some have left.
    wanted: usize,
}

type Made = Arc<OnceLock<Arc<EventBlock>>>;

impl EventBlocks {
    /// For who is about to read the state of a resource, from its first block on.
    pub fn reader(&self, served: &Arc<Served>) -> Reader {
        let mut shelf = self.shelf();
        let id = shelf.next_id;
        shelf.next_id += 1;
        shelf.readers.push(Place { id, served: Arc::downgrade(served), blocks: 0 });
        drop(shelf);
        Reader { blocks: self.clone(), id }
    }

    /// Lets go of all, because memory is short.
    pub fn clear(&self) {
        self.shelf().kept = VecDeque::new();
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.shelf().kept.iter().map(Kept::bytes).sum()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// The events of the block that comes next. Whoever wants the same at the same time waits until they are made: a fraction of
    /// a millisecond.
    ///
    /// - `write`: appends the event of an object by its place.
    pub fn next(&self, of: AtRest<'_>, write: impl FnMut(usize, &mut Vec<u8>)) -> Got {
        let made = self.blocks.shelf().place(self.id, of);
        let mut is_new = false;
        let make = || {
            is_new = true;
            Arc::new(EventBlock::make(of.block, write))
        };
        let block = made.get_or_init(make).clone();
        if is_new {
            self.blocks.shelf().keep_within();
        }
        Got { block, is_new }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut shelf = self.blocks.shelf();
        shelf.readers.retain(|reader| reader.id != self.id);
        if shelf.readers.is_empty() {
            (shelf.kept, shelf.readers) = Default::default();
        }
    }
}

impl Shelf {
    /// Where a block is or is to be, to which a reader has come.
    fn place(&mut self, id: u64, of: AtRest<'_>) -> Made {
        let mut at = 0;
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.id == id) {
            at = reader.blocks;
            reader.blocks += 1;
        }
        if let Some(known) = self.kept.iter_mut().rev().find(|kept| kept.is(of)) {
            known.wanted = known.wanted.saturating_sub(1);
            return known.made.clone();
        }
        let is_to_come =
            |reader: &&Place| reader.id != id && reader.blocks <= at && is_at(&reader.served, of.served);
        let made = Made::default();
        self.kept.push_back(Kept {
            block: Arc::downgrade(of.block),
            served: Arc::downgrade(of.served),
            made: made.clone(),
            wanted: self.readers.iter().filter(is_to_come).count(),
        });
        made
    }

    fn keep_within(&mut self) {
        let mut bytes: usize = self.kept.iter().map(Kept::bytes).sum();
        self.kept.retain(|kept| {
            let goes = kept.wanted == 0 && bytes > EVENT_BLOCKS_PASSED_BYTES_MAX;
            bytes -= if goes { kept.bytes() } else { 0 };
            !goes
        });
        while bytes > EVENT_BLOCKS_BYTES_MAX {
            bytes -= self.kept.pop_front().map_or(bytes, |oldest| oldest.bytes());
        }
    }
}

impl EventBlock {
    fn make(block: &Block, mut write: impl FnMut(usize, &mut Vec<u8>)) -> EventBlock {
        let mut plain = Vec::with_capacity(block.plain_len() + block.objects() * EVENT_BYTES_GUESS);
        let mut size = |place| {
            let from = plain.len();
            write(place, &mut plain);
            (plain.len() - from) as u32
        };
        let sizes = (0..block.objects()).map(&mut size).collect();
        let (mut crc, mut deflated) = (Crc::new(), Vec::new());
        crc.update(&plain);
        member::deflate(&plain, &mut deflated);
        EventBlock { deflated: deflated.into(), crc: crc.sum(), plain_len: plain.len(), sizes }
    }
}

/// What an event has around its object.
const EVENT_BYTES_GUESS: usize = 96;

impl Kept {
    fn is(&self, of: AtRest<'_>) -> bool {
        is_at(&self.block, of.block) && is_at(&self.served, of.served)
    }

    fn bytes(&self) -> usize {
        let made = self.made.get();
        let block =
            made.map_or(0, |made| size_of::<EventBlock>() + made.deflated.len() + size_of_val(&*made.sizes));
        size_of::<Kept>() + block
    }
}

fn is_at<T>(weak: &Weak<T>, arc: &Arc<T>) -> bool {
    std::ptr::eq(weak.as_ptr(), Arc::as_ptr(arc))
}
