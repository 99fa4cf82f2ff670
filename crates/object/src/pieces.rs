//! Pieces: runs of objects that are neighbours in the cache and in their block.
//!
//! In: objects in key order, or in reverse. Out: which of them belong together, and whether they are at rest.
//! Never: seals.

use std::iter;
use std::sync::Arc;

use crate::block::Part;
use crate::object::Object;
use crate::sealer::is_small;

/// An object outside of blocks, or a run of neighbours that are neighbours in their block, too.
pub struct Piece<'a> {
    pub objects: Vec<&'a Arc<Object>>,
}

/// How a piece is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceState {
    Plain,
    /// Plain for good.
    Dense,
    /// All objects of a block that is large enough.
    Whole,
    /// A part of a block, some of whose objects have changed; or all of a block that is small.
    Broken,
}

/// Which way a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    On,
    Back,
}

impl Piece<'_> {
    pub fn state(&self) -> PieceState {
        let first = self.objects[0];
        match first.part() {
            Some(Part { block, .. }) => {
                let is_whole = self.objects.len() == block.objects();
                match is_whole && !is_small(block.plain_len(), block.objects()) {
                    true => PieceState::Whole,
                    false => PieceState::Broken,
                }
            }
            None if first.is_dense() => PieceState::Dense,
            None => PieceState::Plain,
        }
    }
}

/// The pieces of a walk.
pub fn pieces<'a>(
    objects: impl Iterator<Item = &'a Arc<Object>>,
    direction: Direction,
) -> impl Iterator<Item = Piece<'a>> {
    let mut objects = objects.peekable();
    iter::from_fn(move || {
        let mut piece = vec![objects.next()?];
        let mut at = piece[0].part();
        while let Some(here) = at {
            let follows = |next: &Part| match direction {
                Direction::On => here.is_followed_by(next),
                Direction::Back => next.is_followed_by(here),
            };
            let Some(next) = objects.next_if(|next| next.part().is_some_and(follows)) else { break };
            at = next.part();
            piece.push(next);
        }
        Some(Piece { objects: piece })
    })
}
