//! Inflated bytes for a reader who goes from neighbour to neighbour.
//!
//! In: objects in key order. Out: their bytes in plain form. Never: inflates a block twice in a row; lets go
//! of what others have inflated.

use std::sync::Arc;

use bytes::Bytes;

use crate::block::{Block, Text};
use crate::object::{Body, Object};
use crate::spill::{Damaged, held};

/// Memory that is kept for the next block: a block is some 64 KB, or one object, which may be long.
const SCRATCH_BYTES_MAX: usize = 128 << 10;

/// The block that was inflated last, for a reader who goes from neighbour to neighbour: each block is
/// inflated once, and nobody else's is let go of for it.
#[derive(Debug, Default)]
pub struct Scratch {
    // Whose plain text it has.
    block: Option<Arc<Block>>,
    // The plain text, in memory that the block before it used.
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
    use crate::block::Framing;

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
}
