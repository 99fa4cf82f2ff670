//! What a snapshot is made of, in memory and as bytes (`docs/formats/snapshot.md`).

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use sha2::{Digest as _, Sha256};

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
    /// The revision of the state.
    pub revision: Revision,
    /// When it was taken, Unix milliseconds.
    pub taken_ms: u64,
}

/// What a snapshot comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub keys: u64,
    /// Bytes of keys and values.
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
pub(super) const MAGIC: &[u8; 8] = b"FBSNAPSH";
pub(super) const FORMAT: u32 = 1;

pub(super) const HEAD_BYTES: usize = 36;
/// Bytes of a block before its content.
pub(super) const BLOCK_HEAD_BYTES: usize = 13;
/// Bytes of the end, with its tag.
pub(super) const END_BYTES: usize = 65;
pub(super) const CHECKSUM_BYTES: usize = 8;

pub(super) const BLOCK: u8 = 1;
pub(super) const END: u8 = 0;
pub(super) const EXPIRES: u8 = 1;
