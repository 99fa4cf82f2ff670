//! Where texts of blocks are that are elsewhere than in memory: what has to be done there for it, and what is said where that fails.
//!
//! In: nothing. Out: the traits that a block is put there and read by. Never: does IO itself; is met in a server, which reads its objects
//! by what cannot fail.

use std::fmt::Debug;
use std::io;

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
pub(crate) fn held<T>(read: Result<T, Damaged>) -> T {
    read.unwrap_or_else(|Damaged| panic!("an object that was spilled is read by what may fail"))
}
