//! Snapshots: the whole state at one revision, out of a store, into a file, and into a new store.
//!
//! In: a store that serves or one that nobody has open; a snapshot file. Out: entries in key order
//! ([`State`]), the bytes of a file and back ([`Encoder`], [`Decoder`]), a new store that is there whole or
//! not at all ([`Builder`]). History is not part of it. Memory does not depend on how much there is, but for
//! the index of a store that is open. `docs/formats/snapshot.md` gives the bytes.

mod build;
mod decode;
mod encode;
mod format;
mod state;

pub use build::{BuildError, Builder, Sealed};
pub use decode::{Decoder, Next, SnapshotError};
pub use encode::Encoder;
pub use format::{Digest, Entry, Head, Sum, Summary};
pub use state::State;
