//! A block: the bytes of neighbouring objects, deflated together, because objects of one kind are nearly
//! alike.
//!
//! The plain text of a block is what a JSON LIST has for these objects: the items with commas between them,
//! each item with its opening brace, which the body of a built-in kind's object leaves off. Where the block
//! [came](crate::Packed) from another server, it is the text that that server sent. The deflated text is raw
//! deflate without a final block, and ends on a byte boundary: so texts of blocks can follow one another in
//! one stream, with stored blocks between them.
//!
//! In: plain text, and where the objects are in it. Out: the bytes of one object. The blocks that were
//! inflated last are kept, because the next request is often for a neighbour. Never: changes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use libdeflater::Decompressor;

use crate::spill::{Damaged, Region, Spill, held};

/// How many inflated blocks are kept of a resource: 8 x 64 KB, while somebody reads old events or single
/// objects.
pub(crate) const RECENT_MAX: usize = 8;

const PAGE_BYTES: usize = 4 << 10;

/// The most bytes that a stored block of deflate can have.
const STORED_BYTES: usize = u16::MAX as usize;

/// Ends a stream of deflate: a final block with nothing in it.
const END: [u8; 2] = [0x03, 0x00];

/// Neighbouring objects in deflated form. Each of the objects holds a reference to it.
#[derive(Debug)]
pub(crate) struct Block {
    id: u64,
    ended: Ended,
    plain_len: u32,
    crc32: u32,
    objects: u16,
    framing: Framing,
    recent: Arc<RecentBlocks>,
}

/// Where the deflated text is, with END behind it.
#[derive(Debug)]
enum Ended {
    /// In memory.
    Held(Vec<u8>),
    /// Elsewhere; `len` bytes.
    Spilled { region: Box<dyn Region>, len: u32 },
}

/// What stands between the objects of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Commas: the plain text is what a LIST has of the objects.
    List,
    /// Whatever was there when the text [came](crate::Packed).
    AsItCame,
}

/// The blocks of one resource that were inflated last. Each of its blocks holds a reference to it.
#[derive(Debug, Default)]
pub struct RecentBlocks {
    next_id: AtomicU64,
    // (block's id, its plain text), newest last, at most RECENT_MAX.
    held: Mutex<VecDeque<(u64, Bytes)>>,
}

/// The bytes of one object in a block.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) block: Arc<Block>,
    // Where the object's body begins in the plain text.
    pub(crate) from: u32,
    pub(crate) len: u32,
    pub(crate) index: u16,
}

/// Bytes of an object: borrowed, or inflated for the caller.
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

#[cfg(test)]
thread_local! {
    /// How often this thread has inflated one.
    pub(crate) static INFLATED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Block {
    /// - `deflated`: raw, not final, to a byte boundary.
    pub(crate) fn new(
        plain: &[u8],
        objects: usize,
        deflated: &[u8],
        recent: Arc<RecentBlocks>,
        framing: Framing,
    ) -> Block {
        let mut ended = Vec::with_capacity(room(deflated.len() + END.len()));
        ended.extend_from_slice(deflated);
        ended.extend_from_slice(&END);
        Block {
            id: recent.next_id.fetch_add(1, Ordering::Relaxed),
            ended: Ended::Held(ended),
            plain_len: plain.len() as u32,
            crc32: crc_of(plain),
            objects: objects as u16,
            framing,
            recent,
        }
    }

    /// One object by itself that does not get smaller, as deflate has it that only stores.
    pub(crate) fn stored(plain: &[u8], recent: Arc<RecentBlocks>) -> Block {
        let mut stored = Vec::with_capacity(plain.len() + plain.len() / STORED_BYTES * 5 + 5);
        for piece in plain.chunks(STORED_BYTES) {
            let len = piece.len() as u16;
            stored.push(0);
            stored.extend_from_slice(&len.to_le_bytes());
            stored.extend_from_slice(&(!len).to_le_bytes());
            stored.extend_from_slice(piece);
        }
        Block::new(plain, 1, &stored, recent, Framing::AsItCame)
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

    /// Whether it is what a LIST has of its objects, and in memory.
    pub(crate) fn is_of_list(&self) -> bool {
        self.framing == Framing::List && !self.is_spilled()
    }

    /// The deflated text: raw, without a final block, to a byte boundary. Of a block that
    /// [`Segments`](crate::Segments) found: none that was spilled.
    pub fn deflated(&self) -> &[u8] {
        match &self.ended {
            Ended::Held(ended) => &ended[..ended.len() - END.len()],
            Ended::Spilled { .. } => panic!("a LIST is put together from what is in memory"),
        }
    }

    /// The same block with its text elsewhere. `None` where it is elsewhere already, or there is no room.
    pub(crate) fn spilled(&self, to: &dyn Spill) -> Option<Block> {
        let Ended::Held(ended) = &self.ended else { return None };
        let region = to.put(ended)?;
        Some(Block {
            ended: Ended::Spilled { region, len: ended.len() as u32 },
            recent: self.recent.clone(),
            ..*self
        })
    }

    pub(crate) fn is_spilled(&self) -> bool {
        matches!(self.ended, Ended::Spilled { .. })
    }

    /// Appends the plain text. 30 to 60 us for 64 KB; nothing is kept. As [`Block::deflated`], for none that
    /// was spilled.
    pub fn inflate_into(&self, out: &mut Vec<u8>) {
        held(self.try_inflate_into(out));
    }

    fn try_inflate_into(&self, out: &mut Vec<u8>) -> Result<(), Damaged> {
        let from = out.len();
        out.resize(from + self.plain_len(), 0);
        self.inflate(&mut out[from..])
    }

    /// - `out`: as long as the plain text.
    pub(crate) fn inflate(&self, out: &mut [u8]) -> Result<(), Damaged> {
        #[cfg(test)]
        INFLATED.set(INFLATED.get() + 1);
        let mut inflate = |ended: &[u8]| DECOMPRESSOR.with_borrow_mut(|it| it.deflate_decompress(ended, out));
        match &self.ended {
            Ended::Held(ended) => {
                let done = inflate(ended);
                assert!(done == Ok(self.plain_len()), "a block of this process cannot be inflated: {done:?}");
                Ok(())
            }
            Ended::Spilled { region, len } => {
                let mut ended = vec![0; *len as usize];
                let is_read = region.read(&mut ended).is_ok();
                if is_read && inflate(&ended) == Ok(self.plain_len()) && crc_of(out) == self.crc32 {
                    return Ok(());
                }
                region.note_damage();
                Err(Damaged)
            }
        }
    }

    /// The plain text, which is kept for a while.
    fn plain(&self) -> Result<Bytes, Damaged> {
        if let Some(known) = self.recent.find(self.id) {
            return Ok(known);
        }
        let mut plain = Vec::with_capacity(self.plain_len());
        self.try_inflate_into(&mut plain)?;
        let plain = Bytes::from(plain);
        self.recent.keep(self.id, plain.clone());
        Ok(plain)
    }

    /// Bytes that it holds in memory.
    fn cost_bytes(&self) -> usize {
        let text = match &self.ended {
            Ended::Held(ended) => ended.capacity(),
            Ended::Spilled { region, .. } => size_of_val(&**region),
        };
        text + size_of::<Block>()
    }
}

/// What a text without its end says, if that is so many bytes.
pub(crate) fn inflate(deflated: &[u8], plain_len: usize) -> Option<Vec<u8>> {
    let (ended, mut plain) = ([deflated, &END].concat(), vec![0; plain_len]);
    let done = DECOMPRESSOR.with_borrow_mut(|it| it.deflate_decompress(&ended, &mut plain));
    (done == Ok(plain_len)).then_some(plain)
}

fn crc_of(plain: &[u8]) -> u32 {
    let mut crc = libdeflater::Crc::new();
    crc.update(plain);
    crc.sum()
}

/// Memory for a text of so many bytes: whole pages, where that is at most a third more. A block stays for
/// long, and where an allocator puts several of a size side by side, those that come and go between them,
/// bodies of objects of about this size among them, would leave holes.
fn room(bytes: usize) -> usize {
    let pages = bytes.next_multiple_of(PAGE_BYTES);
    if pages - bytes <= bytes / 3 { pages } else { bytes }
}

impl Part {
    /// Which of the block's objects, `0..objects()`.
    pub(crate) fn index(&self) -> usize {
        usize::from(self.index)
    }

    /// Whether its block begins with it.
    pub(crate) fn is_first(&self) -> bool {
        self.index == 0
    }

    /// Whether `next` comes right behind it in the same block.
    pub(crate) fn is_followed_by(&self, next: &Part) -> bool {
        next.index == self.index + 1 && Arc::ptr_eq(&self.block, &next.block)
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Its part of what its block takes.
    pub(crate) fn cost_bytes(&self) -> usize {
        (self.block.cost_bytes() * self.len()).div_ceil(self.block.plain_len().max(1))
    }

    /// The body, inflated. Holds up whoever asks for some tens of microseconds.
    ///
    /// # Errors
    /// [`Damaged`], where it was spilled.
    pub(crate) fn bytes(&self) -> Result<Bytes, Damaged> {
        Ok(self.block.plain()?.slice(self.body()))
    }

    /// The body in the plain text.
    pub(crate) fn body(&self) -> Range<usize> {
        let from = self.from as usize;
        from..from + self.len()
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
    pub(crate) fn len(&self) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn block(plain_len: usize) -> Arc<Block> {
        let plain = b"{\"kind\":\"Pod\"},".iter().copied().cycle().take(plain_len).collect::<Vec<u8>>();
        let mut deflate = forebay_deflate::Deflate::new();
        let deflated = deflate.deflate(&plain, plain_len).expect("it shrinks").to_vec();
        Arc::new(Block::new(&plain, 1, &deflated, Arc::default(), Framing::List))
    }

    #[test]
    fn a_block_has_whole_pages_where_they_are_at_most_a_third_more() {
        let sizes = [100, 3_072, 3_073, 4_096, 4_097, 6_143, 6_144, 8_192, 8_193, 9_216, 12_289];
        let want = [100, 4_096, 4_096, 4_096, 4_097, 6_143, 8_192, 8_192, 8_193, 12_288, 16_384];
        assert_eq!(sizes.map(room), want);
        let block = block(64 << 10);
        assert!(block.cost_bytes() >= block.deflated().len() + END.len());
    }
}
