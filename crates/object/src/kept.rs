//! The text that an object is kept in together with its neighbours, for those who store such texts elsewhere
//! as they are.
//!
//! In: an object, or a deflated text. Out: the text that the object is in, and its place there; or the plain
//! text. Never: deflates; trusts a text that comes from elsewhere.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::block::{self, Part};
use crate::object::Object;

/// An object's place in the text that it shares with its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a>(&'a Part);

impl Object {
    /// The place of `object`. `None` where it is kept by itself, or elsewhere than in memory.
    pub fn kept(&self) -> Option<Kept<'_>> {
        self.part().filter(|part| !part.block.is_spilled()).map(Kept)
    }
}

impl<'a> Kept<'a> {
    /// Whether `next` is in the same text, and comes directly after this object.
    pub fn is_before(&self, next: &Kept<'_>) -> bool {
        Arc::ptr_eq(&self.0.block, &next.0.block) && self.0.index() < next.0.index()
    }

    /// The object in the plain text.
    pub fn span(&self) -> Range<usize> {
        self.0.body()
    }

    /// Raw deflate, without a final block, to a byte boundary.
    pub fn deflated(&self) -> &'a [u8] {
        self.0.block.deflated()
    }

    /// Bytes of the plain text.
    pub fn plain_len(&self) -> usize {
        self.0.block.plain_len()
    }
}

/// The plain text of `deflated`. `None` where it is not a text as [`Kept::deflated`] has it, or has another
/// length.
pub fn inflate(deflated: &[u8], plain_len: usize) -> Option<Bytes> {
    block::inflate(deflated, plain_len).map(Bytes::from)
}
