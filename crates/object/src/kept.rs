//! Where an object is kept with its neighbours: for who keeps the same text elsewhere as it is.
//!
//! In: an object, or a deflated text. Out: the text that it is in and its place there, or what the text says. Never: deflates, trusts
//! a text that comes from elsewhere.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::block::{self, Part};
use crate::object::Object;

/// An object in the text of it and its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a>(&'a Part);

impl Object {
    /// Where it is kept with others; none of one that is kept by itself, or elsewhere than in memory.
    pub fn kept(&self) -> Option<Kept<'_>> {
        self.part().filter(|part| !part.block.is_spilled()).map(Kept)
    }
}

impl<'a> Kept<'a> {
    /// Whether `next` comes behind it in the same text.
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

/// What `deflated` says, if it is a text as [`Kept::deflated`] has it, and says so many bytes.
pub fn inflate(deflated: &[u8], plain_len: usize) -> Option<Bytes> {
    block::inflate(deflated, plain_len).map(Bytes::from)
}
