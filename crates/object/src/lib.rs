//! Objects as bytes at rest: what a cache keeps, and what LIST, WATCH and selectors are served from.
//!
//! In: stored values, or runs of them as another server sent them. Out: [`Object`]s, and walks over
//! neighbours a [`Segment`] at a time; for whoever keeps them, what puts them at rest ([`seal`]). Never:
//! makes a decoded tree; knows who reads.

mod block;
mod delta;
mod intern;
mod kept;
mod layout;
mod message;
mod object;
mod packed;
mod pieces;
mod scan;
mod scratch;
mod sealer;
mod segment;
mod spill;
#[cfg(test)]
mod spill_tests;
mod texts;

pub use block::Text;
pub use intern::Interner;
pub use kept::{Kept, inflate};
pub use layout::{Form, Layout, Scope};
pub use message::{Keep, Message, MessageBytes, MessageRoom};
pub use object::Object;
pub use packed::{Came, Marks, Packed};
pub use scan::ScanError;
pub use scratch::Scratch;
pub use segment::{Deflated, Segment, SegmentId, Segments};
pub use spill::{Damaged, Region, Spill};

/// What puts objects at rest, for who keeps them.
pub mod seal {
    pub use crate::block::RecentBlocks;
    pub use crate::delta::CHAIN_MAX;
    pub use crate::pieces::{Direction, Piece, PieceState, pieces};
    pub use crate::sealer::{BLOCK_BYTES, BLOCK_OBJECTS, Sealer, Spiller, is_enough, is_small};
}
