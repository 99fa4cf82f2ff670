//! A block: the bytes of neighbouring objects, deflated together, because objects of one kind are nearly alike.
//!
//! Its plain text is what a JSON LIST has for these objects: items with a comma between them, a built-in kind's with the
//! brace that its body leaves off; of one that [came](super::Packed) from another server it is what that server sent. Its deflated text is raw deflate that has no final block and ends on a byte boundary, so
//! that texts of blocks can follow one another in one stream, stored blocks between them.
//!
//! In: plain text and where the objects are in it. Out: the same, for who asks for one; the blocks that were inflated last
//! are kept for the next. Never: changes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use libdeflater::Decompressor;

use super::spill::held;
use super::{Body, Damaged, Object, Region, Spill};

/// Inflated blocks kept of one resource: 8 x 64 KB, while somebody reads old events or single objects.
pub(super) const RECENT_MAX: usize = 8;

const PAGE_BYTES: usize = 4 << 10;

/// Memory that is kept for the next block: a block is some 64 KB, or one object, which may be long.
const SCRATCH_BYTES_MAX: usize = 128 << 10;

/// The most that one stored block of deflate has.
const STORED_BYTES: usize = u16::MAX as usize;

/// Ends a stream of deflate: a final block with nothing in it.
const END: [u8; 2] = [0x03, 0x00];

/// Neighbouring objects in deflated form. Shared by them.
#[derive(Debug)]
pub struct Block {
    id: u64,
    ended: Ended,
    plain_len: u32,
    crc32: u32,
    objects: u16,
    framing: Framing,
    recent: Arc<RecentBlocks>,
}

/// The deflated text with END behind it.
#[derive(Debug)]
enum Ended {
    /// As long as `room` says.
    Held(Vec<u8>),
    Spilled {
        region: Box<dyn Region>,
        len: u32,
    },
}

/// What stands between the objects of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Commas: it is what a LIST has of them.
    List,
    /// Whatever stood there when it [came](super::Packed).
    AsItCame,
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
    /// Whether its block begins with it.
    pub fn is_first(&self) -> bool {
        self.index == 0
    }

    /// Whether `next` comes right behind it in the same block.
    pub fn is_followed_by(&self, next: &PartRef<'_>) -> bool {
        next.index == self.index + 1 && Arc::ptr_eq(self.block, next.block)
    }
}

/// Bytes of an object: of whoever holds them, or inflated for who asked.
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
    pub(super) static INFLATED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Block {
    /// - `deflated`: raw, not final, to a byte boundary.
    pub(super) fn new(
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
    pub(super) fn stored(plain: &[u8], recent: Arc<RecentBlocks>) -> Block {
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

    /// The block that `first` and what comes next of `rest` are all of, if they are and it is what a LIST has of them. `run` is what was taken for that: `first`
    /// and its neighbours in the same block, whether they are all of it or not.
    pub fn of_run<'a>(
        first: &'a Arc<Object>,
        rest: &mut Peekable<impl Iterator<Item = &'a Arc<Object>>>,
        run: &mut Vec<&'a Arc<Object>>,
    ) -> Option<&'a Arc<Block>> {
        run.clear();
        run.push(first);
        let mut at = first.part().filter(|part| part.is_first() && part.block.is_of_list())?;
        while run.len() < at.block.objects() {
            let next = rest.next_if(|next| next.part().is_some_and(|next| at.is_followed_by(&next)))?;
            at = next.part()?;
            run.push(next);
        }
        Some(at.block)
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
    fn is_of_list(&self) -> bool {
        self.framing == Framing::List && !self.is_spilled()
    }

    /// The deflated text: raw, without a final block, to a byte boundary. Of a block that [`Block::of_run`] found: none that was spilled.
    pub fn deflated(&self) -> &[u8] {
        match &self.ended {
            Ended::Held(ended) => &ended[..ended.len() - END.len()],
            Ended::Spilled { .. } => panic!("a LIST is put together from what is in memory"),
        }
    }

    /// The same block with its text elsewhere; none where it is there already, or there is no room.
    pub(super) fn spilled(&self, to: &dyn Spill) -> Option<Block> {
        let Ended::Held(ended) = &self.ended else { return None };
        let region = to.put(ended)?;
        Some(Block {
            ended: Ended::Spilled { region, len: ended.len() as u32 },
            recent: self.recent.clone(),
            ..*self
        })
    }

    pub(super) fn is_spilled(&self) -> bool {
        matches!(self.ended, Ended::Spilled { .. })
    }

    /// Appends the plain text. 30 to 60 us for 64 KB; nothing is kept. As [`Block::deflated`], for none that was spilled.
    pub fn inflate_into(&self, out: &mut Vec<u8>) {
        held(self.try_inflate_into(out));
    }

    fn try_inflate_into(&self, out: &mut Vec<u8>) -> Result<(), Damaged> {
        let from = out.len();
        out.resize(from + self.plain_len(), 0);
        self.inflate(&mut out[from..])
    }

    /// - `out`: as long as the plain text.
    fn inflate(&self, out: &mut [u8]) -> Result<(), Damaged> {
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

fn crc_of(plain: &[u8]) -> u32 {
    let mut crc = libdeflater::Crc::new();
    crc.update(plain);
    crc.sum()
}

/// Memory for a text of so many bytes: whole pages, where that is at most a third more. A block stays for long, and where an
/// allocator puts several of a size side by side, those that come and go between them, bodies of objects of about this size
/// among them, would leave holes.
fn room(bytes: usize) -> usize {
    let pages = bytes.next_multiple_of(PAGE_BYTES);
    if pages - bytes <= bytes / 3 { pages } else { bytes }
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
    ///
    /// # Errors
    /// [`Damaged`], where it was spilled.
    pub(super) fn bytes(&self) -> Result<Bytes, Damaged> {
        Ok(self.block.plain()?.slice(self.body()))
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

    /// Whether its bytes are elsewhere than in memory: it is read by what may fail.
    pub fn is_spilled(&self) -> bool {
        matches!(&self.body, Body::Sealed(part) if part.block.is_spilled())
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
    // Whose plain text it has.
    block: Option<Arc<Block>>,
    // In the memory of the one before.
    plain: Vec<u8>,
}

impl Scratch {
    /// `object` with its bytes in plain form: itself, when they are. For who knows that nothing is spilled.
    pub fn plain(&mut self, object: &Arc<Object>) -> Arc<Object> {
        let body = match &object.body {
            Body::Plain(_) | Body::Dense(_) => return object.clone(),
            Body::Sealed(part) => Bytes::copy_from_slice(&held(self.text(&part.block))[part.body()]),
            Body::Behind(delta) => held(delta.bytes()),
        };
        Arc::new(object.with_body(Body::Plain(body)))
    }

    /// The object's bytes, for who needs nothing else of it, and knows that nothing is spilled.
    pub fn bytes<'a>(&'a mut self, object: &'a Object) -> Text<'a> {
        held(self.try_bytes(object))
    }

    /// The same of any object.
    ///
    /// # Errors
    /// [`Damaged`], where it was spilled.
    pub fn try_bytes<'a>(&'a mut self, object: &'a Object) -> Result<Text<'a>, Damaged> {
        Ok(match &object.body {
            Body::Plain(bytes) | Body::Dense(bytes) => Text::Held(bytes),
            Body::Sealed(part) => Text::Held(&self.text(&part.block)?[part.body()]),
            Body::Behind(delta) => Text::Inflated(delta.bytes()?),
        })
    }

    /// Lets go of the block, and of the memory.
    pub fn clear(&mut self) {
        *self = Scratch::default();
    }

    fn text(&mut self, block: &Arc<Block>) -> Result<&[u8], Damaged> {
        if !self.block.as_ref().is_some_and(|known| Arc::ptr_eq(known, block)) {
            self.block = None;
            if self.plain.capacity() > SCRATCH_BYTES_MAX.max(block.plain_len()) {
                self.plain = Vec::new();
            }
            let more = block.plain_len().saturating_sub(self.plain.len());
            self.plain.reserve_exact(more);
            self.plain.resize(block.plain_len(), 0);
            block.inflate(&mut self.plain)?;
            self.block = Some(block.clone());
        }
        Ok(&self.plain)
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
    fn who_reads_on_does_not_keep_the_memory_of_a_long_block() {
        let (long, short) = (block(3 << 20), block(64 << 10));
        let mut scratch = Scratch::default();
        for (block, most) in [(&short, 64 << 10), (&long, 3 << 20), (&short, 64 << 10), (&long, 3 << 20)] {
            assert_eq!(held(scratch.text(block)).len(), block.plain_len());
            assert!(scratch.plain.capacity() <= most, "{} of {most}", scratch.plain.capacity());
        }
        let longer = block(70 << 10);
        scratch.clear();
        let at = [&short, &longer, &short].map(|block| {
            held(scratch.text(block));
            scratch.plain.capacity()
        });
        assert_eq!(at, [64 << 10, 70 << 10, 70 << 10], "one about as long has it again");
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
