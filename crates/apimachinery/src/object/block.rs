//! A block: the bytes of neighbouring objects, deflated together, because objects of one kind are nearly alike.
//!
//! Its plain text is what a JSON LIST has for these objects: items with a comma between them, a built-in kind's with the
//! brace that its body leaves off. Its deflated text is raw deflate that has no final block and ends on a byte boundary, so
//! that texts of blocks can follow one another in one stream, stored blocks between them.
//!
//! In: plain text and where the objects are in it. Out: the same, for who asks for one; the blocks that were inflated last
//! are kept for the next. Never: changes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use libdeflater::Decompressor;

use super::{Body, Object};

/// Inflated blocks kept of one resource: 8 x 64 KB, while somebody reads old events or single objects.
pub(super) const RECENT_MAX: usize = 8;

/// Ends a stream of deflate: a final block with nothing in it.
const END: [u8; 2] = [0x03, 0x00];

/// Neighbouring objects in deflated form. Shared by them.
#[derive(Debug)]
pub struct Block {
    id: u64,
    // The deflated text with END behind it.
    ended: Box<[u8]>,
    plain_len: u32,
    crc32: u32,
    objects: u16,
    recent: Arc<RecentBlocks>,
}

/// The blocks of one resource that were inflated last. Shared by its blocks.
#[derive(Debug, Default)]
pub struct RecentBlocks {
    next_id: AtomicU64,
    // (block's id, its plain text), newest last, at most RECENT_MAX.
    held: Mutex<VecDeque<(u64, Bytes)>>,
}

/// The bytes of one object in a block.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) block: Arc<Block>,
    // Of the body in the plain text.
    pub(super) from: u32,
    pub(super) len: u32,
    pub(super) index: u16,
    // The item's bytes before the body: 1 for a built-in kind, whose body leaves its brace off.
    pub(super) head: u16,
}

/// Where an object is in a block.
#[derive(Clone, Debug)]
pub struct PartRef<'a> {
    pub block: &'a Arc<Block>,
    /// Which of the block's objects, `0..objects()`.
    pub index: usize,
    /// The object as the item of a LIST, in the block's plain text.
    pub span: Range<usize>,
}

impl PartRef<'_> {
    /// Whether `next` comes right behind it in the same block.
    pub fn is_followed_by(&self, next: &PartRef<'_>) -> bool {
        next.index == self.index + 1 && Arc::ptr_eq(self.block, next.block)
    }
}

/// Bytes of an object: as it holds them, or inflated for who asked.
#[derive(Debug)]
pub enum Text<'a> {
    Held(&'a [u8]),
    Inflated(Bytes),
}

impl Deref for Text<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Held(bytes) => bytes,
            Text::Inflated(bytes) => bytes,
        }
    }
}

thread_local! {
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

impl Block {
    /// - `deflated`: raw, not final, to a byte boundary.
    pub(super) fn new(plain: &[u8], objects: usize, deflated: &[u8], recent: Arc<RecentBlocks>) -> Block {
        let mut crc = libdeflater::Crc::new();
        crc.update(plain);
        Block {
            id: recent.next_id.fetch_add(1, Ordering::Relaxed),
            ended: [deflated, &END[..]].concat().into_boxed_slice(),
            plain_len: plain.len() as u32,
            crc32: crc.sum(),
            objects: objects as u16,
            recent,
        }
    }

    /// How many objects are in it.
    pub fn objects(&self) -> usize {
        usize::from(self.objects)
    }

    /// Length of the plain text.
    pub fn plain_len(&self) -> usize {
        self.plain_len as usize
    }

    /// CRC-32 of the plain text, as gzip has it.
    pub fn crc32(&self) -> u32 {
        self.crc32
    }

    /// The deflated text: raw, without a final block, to a byte boundary.
    pub fn deflated(&self) -> &[u8] {
        &self.ended[..self.ended.len() - END.len()]
    }

    /// Appends the plain text. 30 to 60 us for 64 KB; nothing is kept.
    pub fn inflate_into(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.resize(from + self.plain_len(), 0);
        let done = DECOMPRESSOR.with_borrow_mut(|it| it.deflate_decompress(&self.ended, &mut out[from..]));
        assert!(done == Ok(self.plain_len()), "a block of this process cannot be inflated: {done:?}");
    }

    /// The plain text, which is kept for a while.
    fn plain(&self) -> Bytes {
        if let Some(known) = self.recent.find(self.id) {
            return known;
        }
        let mut plain = Vec::with_capacity(self.plain_len());
        self.inflate_into(&mut plain);
        let plain = Bytes::from(plain);
        self.recent.keep(self.id, plain.clone());
        plain
    }

    fn cost_bytes(&self) -> usize {
        self.ended.len() + size_of::<Block>()
    }
}

impl Part {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Its part of what its block takes.
    pub(super) fn cost_bytes(&self) -> usize {
        (self.block.cost_bytes() * self.len()).div_ceil(self.block.plain_len().max(1))
    }

    /// The body, inflated. Holds up whoever asks for some tens of microseconds.
    pub(super) fn bytes(&self) -> Bytes {
        self.block.plain().slice(self.body())
    }

    /// The body in the plain text.
    fn body(&self) -> Range<usize> {
        let from = self.from as usize;
        from..from + self.len()
    }
}

impl Object {
    /// Its place in a block, if it is in one.
    pub fn part(&self) -> Option<PartRef<'_>> {
        let Body::Sealed(part) = &self.body else { return None };
        let Range { start, end } = part.body();
        let span = start - usize::from(part.head)..end;
        Some(PartRef { block: &part.block, index: usize::from(part.index), span })
    }

    /// Whether it was tried, and its bytes are better left plain.
    pub fn is_dense(&self) -> bool {
        matches!(self.body, Body::Dense(_))
    }
}

impl RecentBlocks {
    /// Lets go of all of them.
    pub fn clear(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = VecDeque::new();
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn find(&self, id: u64) -> Option<Bytes> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().find(|(known, _)| *known == id).map(|(_, plain)| plain.clone())
    }

    fn keep(&self, id: u64, plain: Bytes) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() == RECENT_MAX {
            held.pop_front();
        }
        held.push_back((id, plain));
    }
}

/// The block that was inflated last, for a reader who goes from neighbour to neighbour: each block is inflated once, and
/// nobody else's is let go of for it.
#[derive(Debug, Default)]
pub struct Scratch {
    inflated: Option<(Arc<Block>, Bytes)>,
}

impl Scratch {
    /// `object` with its bytes in plain form: itself, when they are.
    pub fn plain(&mut self, object: &Arc<Object>) -> Arc<Object> {
        let body = match &object.body {
            Body::Plain(_) | Body::Dense(_) => return object.clone(),
            Body::Sealed(part) => self.text(&part.block).slice(part.body()),
            Body::Behind(delta) => delta.bytes(),
        };
        Arc::new(object.with_body(Body::Plain(body)))
    }

    /// The object's bytes, for who needs nothing else of it.
    pub fn bytes<'a>(&mut self, object: &'a Object) -> Text<'a> {
        match &object.body {
            Body::Plain(bytes) | Body::Dense(bytes) => Text::Held(bytes),
            Body::Sealed(part) => Text::Inflated(self.text(&part.block).slice(part.body())),
            Body::Behind(delta) => Text::Inflated(delta.bytes()),
        }
    }

    /// Lets go of the block.
    pub fn clear(&mut self) {
        self.inflated = None;
    }

    fn text(&mut self, block: &Arc<Block>) -> &Bytes {
        let known = self.inflated.take().filter(|(known, _)| Arc::ptr_eq(known, block));
        let inflate = || {
            let mut plain = Vec::with_capacity(block.plain_len());
            block.inflate_into(&mut plain);
            (block.clone(), Bytes::from(plain))
        };
        &self.inflated.insert(known.unwrap_or_else(inflate)).1
    }
}
