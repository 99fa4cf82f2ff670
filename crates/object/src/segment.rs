//! Segments: neighbours as a LIST has them, deflated together where they are at rest.
//!
//! In: objects in key order. Out: those that a LIST may have as one deflated text, and those that it has to write one by one. Never:
//! inflates what nobody asks for; shows what a text is kept in.

use std::iter::Peekable;
use std::sync::{Arc, Weak};

use crate::block::Block;
use crate::object::Object;

/// A walk over objects in key order, a segment at a time.
pub struct Segments<'a, I: Iterator<Item = &'a Arc<Object>>> {
    objects: Peekable<I>,
    is_together: bool,
    // The objects of the segment that was given out last.
    run: Vec<&'a Arc<Object>>,
}

/// Neighbours, one at least.
pub struct Segment<'r, 'a> {
    pub objects: &'r [&'a Arc<Object>],
    /// All of them as one text; without it they are plain, or parts of texts that are not wholly theirs.
    pub deflated: Option<Deflated<'a>>,
}

/// What a LIST has of neighbours, deflated: items with commas between them.
#[derive(Clone, Copy, Debug)]
pub struct Deflated<'a>(&'a Arc<Block>);

/// Tells a deflated text from all others, for as long as it is held. Does not keep the text.
#[derive(Clone, Debug)]
pub struct SegmentId(Weak<Block>);

impl<'a, I: Iterator<Item = &'a Arc<Object>>> Segments<'a, I> {
    /// Together those that are deflated together.
    ///
    /// - `objects`: in key order.
    pub fn new(objects: I) -> Segments<'a, I> {
        Segments { objects: objects.peekable(), is_together: true, run: Vec::new() }
    }

    /// Each object by itself, however it is kept.
    pub fn one_by_one(objects: I) -> Segments<'a, I> {
        Segments { is_together: false, ..Segments::new(objects) }
    }

    /// What comes next.
    pub fn next_segment(&mut self) -> Option<Segment<'_, 'a>> {
        self.run.clear();
        self.run.push(self.objects.next()?);
        let deflated = if self.is_together { self.whole().map(Deflated) } else { None };
        Some(Segment { objects: &self.run, deflated })
    }

    /// The block that the run and what comes next are all of, if they are and it is what a LIST has of them. Its objects are in the
    /// run, whether they are all of it or not.
    fn whole(&mut self) -> Option<&'a Arc<Block>> {
        let mut at = self.run[0].part().filter(|part| part.is_first() && part.block.is_of_list())?;
        while self.run.len() < at.block.objects() {
            let follows = |next: &&Arc<Object>| next.part().is_some_and(|next| at.is_followed_by(next));
            let next = self.objects.next_if(follows)?;
            at = next.part()?;
            self.run.push(next);
        }
        Some(&at.block)
    }
}

impl<'a> Deflated<'a> {
    /// The text of all of `objects`, if they are a segment.
    pub fn of(objects: &'a [Arc<Object>]) -> Option<Deflated<'a>> {
        let mut segments = Segments::new(objects.iter());
        let Segment { objects: run, deflated } = segments.next_segment()?;
        deflated.filter(|_| run.len() == objects.len())
    }

    /// Raw deflate, without a final block, to a byte boundary: one such text may follow another.
    pub fn bytes(self) -> &'a [u8] {
        self.0.deflated()
    }

    /// CRC-32 of the plain text, as gzip has it.
    pub fn crc(self) -> u32 {
        self.0.crc32()
    }

    /// Bytes of the plain text.
    pub fn plain_len(self) -> usize {
        self.0.plain_len()
    }

    /// How many objects it has.
    pub fn objects(self) -> usize {
        self.0.objects()
    }

    /// Appends the plain text. 30 to 60 us for 64 KB; nothing is kept.
    pub fn inflate_into(self, out: &mut Vec<u8>) {
        self.0.inflate_into(out);
    }

    /// What tells it from others.
    pub fn id(self) -> SegmentId {
        SegmentId(Arc::downgrade(self.0))
    }
}

impl SegmentId {
    /// Whether it is of this text, which is alive, or whose place in memory nobody else has got.
    pub fn is_of(&self, deflated: Deflated<'_>) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(deflated.0))
    }
}
