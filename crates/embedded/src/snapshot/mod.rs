//! Snapshots: the whole state at one revision, out of a store, into a file, and into a new store.
//!
//! In: a store that serves or one that nobody has open; a snapshot file. Out: entries in key order ([`State`]), the bytes
//! of a file and back ([`Encoder`], [`Decoder`]), a new store that is there whole or not at all ([`Builder`]). History
//! is not part of it. Memory does not depend on how much there is, but for the index of a store that is open.
//! `docs/formats/snapshot.md` gives the bytes.

mod build;
mod decode;
mod encode;
mod state;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use sha2::{Digest as _, Sha256};

pub use build::{BuildError, Builder, Sealed};
pub use decode::{Decoder, Next, SnapshotError};
pub use encode::Encoder;
pub use state::State;

/// One key of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    /// What put the value.
    pub revision: Revision,
    /// Unix milliseconds at which the store deletes the key.
    pub expires_ms: Option<u64>,
    pub value: Bytes,
}

/// What a snapshot says of itself before its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Of the state.
    pub revision: Revision,
    /// When it was taken, Unix milliseconds.
    pub taken_ms: u64,
}

/// What a snapshot comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub keys: u64,
    /// Of keys and values.
    pub bytes: u64,
    pub digest: Digest,
}

/// SHA-256 over keys and values in key order: the same for the same state, wherever it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A [`Summary`] in the making.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    keys: u64,
    bytes: u64,
    hash: Sha256,
}

impl Sum {
    /// Adds the next key, in key order.
    pub fn add(&mut self, key: &str, value: &[u8]) {
        self.keys += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.hash.update((key.len() as u64).to_le_bytes());
        self.hash.update(key.as_bytes());
        self.hash.update((value.len() as u64).to_le_bytes());
        self.hash.update(value);
    }

    /// Keys so far.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    pub fn finish(self) -> Summary {
        Summary { keys: self.keys, bytes: self.bytes, digest: Digest(self.hash.finalize().into()) }
    }
}

/// What a file begins with, and the format it has.
const MAGIC: &[u8; 8] = b"FBSNAPSH";
const FORMAT: u32 = 1;

const HEAD_BYTES: usize = 36;
/// Of a block before its content.
const BLOCK_HEAD_BYTES: usize = 13;
/// Of the end, with its tag.
const END_BYTES: usize = 65;
const CHECKSUM_BYTES: usize = 8;

const BLOCK: u8 = 1;
const END: u8 = 0;
const EXPIRES: u8 = 1;
