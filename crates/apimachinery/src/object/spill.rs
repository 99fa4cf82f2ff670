//! Blocks whose deflated text is elsewhere than in memory: what puts it there, and what reads it.
//!
//! In: an object at rest, and where to put its block's text. Out: the same object, whose bytes are read from there for each that asks.
//! Never: does IO itself; takes for an object's bytes what has not their checksum; is met in a server, which reads its objects by what
//! cannot fail.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use super::block::{Block, Part, RecentBlocks};
use super::{Body, Object};

/// Where texts are put.
pub trait Spill: Debug + Send + Sync {
    /// Puts `text` there; none where there is no room for it, or the place fails. Blocks.
    fn put(&self, text: &[u8]) -> Option<Box<dyn Region>>;
}

/// Where one text is. Dropping it gives the room back.
pub trait Region: Debug + Send + Sync {
    /// Reads the text into `out`, which is as long. Blocks.
    ///
    /// # Errors
    /// The place's.
    fn read(&self, out: &mut [u8]) -> io::Result<()>;

    /// Takes note that it did not give back what was put.
    fn note_damage(&self);
}

/// An object's bytes were put elsewhere, and did not come back as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object's bytes were put into a file and cannot be read back")]
pub struct Damaged;

/// What is read of an object of which it is known that its bytes are in memory.
pub(super) fn held<T>(read: Result<T, Damaged>) -> T {
    read.unwrap_or_else(|Damaged| panic!("an object that was spilled is read by what may fail"))
}

/// Puts blocks elsewhere, for who goes along their objects in key order.
#[derive(Debug)]
pub struct Spiller {
    to: Arc<dyn Spill>,
    recent: Arc<RecentBlocks>,
    // The block that was put last, and what it is now: its other objects come next.
    last: Option<(Arc<Block>, Arc<Block>)>,
}

impl Spiller {
    /// - `recent`: the blocks of the resource that were inflated last.
    pub fn new(to: Arc<dyn Spill>, recent: Arc<RecentBlocks>) -> Spiller {
        Spiller { to, recent, last: None }
    }

    /// The object with its bytes elsewhere; none where it is not at rest, is there already, or there is no room. Blocks.
    pub fn spill(&mut self, object: &Object) -> Option<Arc<Object>> {
        let part = match &object.body {
            Body::Sealed(part) => part,
            Body::Dense(bytes) => {
                let block = Block::stored(bytes, self.recent.clone()).spilled(&*self.to)?;
                let (block, len) = (Arc::new(block), bytes.len() as u32);
                return Some(Arc::new(object.with_body(Body::Sealed(Part {
                    block,
                    from: 0,
                    len,
                    index: 0,
                    head: 0,
                }))));
            }
            Body::Plain(_) | Body::Behind(_) => return None,
        };
        let known = self.last.as_ref().filter(|(old, _)| Arc::ptr_eq(old, &part.block));
        let block = match known {
            Some((_, new)) => new.clone(),
            None => {
                let new = Arc::new(part.block.spilled(&*self.to)?);
                self.last = Some((part.block.clone(), new.clone()));
                new
            }
        };
        Some(Arc::new(object.with_body(Body::Sealed(Part { block, ..part.clone() }))))
    }
}

impl Object {
    /// Whether its bytes are elsewhere than in memory: it is read by what may fail.
    pub fn is_spilled(&self) -> bool {
        matches!(&self.body, Body::Sealed(part) if part.block.is_spilled())
    }
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
