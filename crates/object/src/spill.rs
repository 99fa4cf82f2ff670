//! What has to be implemented so that blocks can be kept elsewhere than in memory, and the error of a block
//! that does not come back.
//!
//! In: nothing. Out: the traits by which a block is put elsewhere and read again. Never: does IO itself. A
//! server spills nothing: it reads its objects by methods that cannot fail.

use std::fmt::Debug;
use std::io;

/// A place for texts of blocks.
pub trait Spill: Debug + Send + Sync {
    /// Puts `text` there. `None` where there is no room, or writing fails. Blocks the thread.
    fn put(&self, text: &[u8]) -> Option<Box<dyn Region>>;
}

/// One text at its place. Dropping it gives the room back.
pub trait Region: Debug + Send + Sync {
    /// Reads the text into `out`, which has the text's length. Blocks the thread.
    ///
    /// # Errors
    /// Reading failed.
    fn read(&self, out: &mut [u8]) -> io::Result<()>;

    /// Notes that what was read is not what was put.
    fn note_damage(&self);
}

/// An object's bytes were put elsewhere, and did not come back as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object's bytes were put into a file and cannot be read back")]
pub struct Damaged;

/// Unwraps what was read of an object whose bytes are known to be in memory.
pub(crate) fn held<T>(read: Result<T, Damaged>) -> T {
    read.unwrap_or_else(|Damaged| panic!("an object that was spilled is read by what may fail"))
}
