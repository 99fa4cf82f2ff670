//! Segments: runs of objects as a LIST takes them, with their deflated text where they are a whole block.
//!
//! In: objects in key order. Out: runs that a LIST may copy as one deflated text, and objects that it has to
//! write one by one. Never: inflates unless it is asked to; shows what a text is kept in.

use std::iter::Peekable;
use std::sync::{Arc, Weak};

use crate::block::Block;
use crate::object::Object;

/// A walk over objects in key order, a segment at a time.
pub struct Segments<'a, I: Iterator<Item = &'a Arc<Object>>> {
    objects: Peekable<I>,
    is_together: bool,
    // The objects of the current segment.
    run: Vec<&'a Arc<Object>>,
}

/// At least one object, or several neighbours.
pub struct Segment<'r, 'a> {
    pub objects: &'r [&'a Arc<Object>],
    /// The text of exactly these objects. `None` where they are plain, or where their text has other objects,
    /// too.
    pub deflated: Option<Deflated<'a>>,
}

/// Neighbours as a LIST has them, items with commas between, deflated.
#[derive(Clone, Copy, Debug)]
pub struct Deflated<'a>(&'a Arc<Block>);

/// Identifies a deflated text. Does not keep the text in memory, and its id is not given to another one while
/// this is held.
#[derive(Clone, Debug)]
pub struct SegmentId(Weak<Block>);

impl<'a, I: Iterator<Item = &'a Arc<Object>>> Segments<'a, I> {
    /// A walk by segments: objects that make up a block come together.
    ///
    /// - `objects`: in key order.
    pub fn new(objects: I) -> Segments<'a, I> {
        Segments { objects: objects.peekable(), is_together: true, run: Vec::new() }
    }

    /// A walk over single objects, however they are kept.
    pub fn one_by_one(objects: I) -> Segments<'a, I> {
        Segments { is_together: false, ..Segments::new(objects) }
    }

    /// The next segment.
    pub fn next_segment(&mut self) -> Option<Segment<'_, 'a>> {
        self.run.clear();
        self.run.push(self.objects.next()?);
        let deflated = if self.is_together { self.whole().map(Deflated) } else { None };
        Some(Segment { objects: &self.run, deflated })
    }

    /// The block that the run and what comes next are all of, if they are and it is what a LIST has of them.
    /// Its objects are in the run, whether they are all of it or not.
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

    /// How many objects the text has.
    pub fn objects(self) -> usize {
        self.0.objects()
    }

    /// Appends the plain text. 30 to 60 us for 64 KB; nothing is kept.
    pub fn inflate_into(self, out: &mut Vec<u8>) {
        self.0.inflate_into(out);
    }

    /// The id of this text.
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
