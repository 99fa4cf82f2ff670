//! A snapshot file, read and checked block by block. Trusts nothing that it reads; memory is that of one
//! block.

use std::io::{self, Read};

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use twox_hash::XxHash3_64;

use super::format::{
    BLOCK, BLOCK_HEAD_BYTES, CHECKSUM_BYTES, Digest, END, END_BYTES, EXPIRES, Entry, FORMAT, HEAD_BYTES,
    Head, MAGIC, Sum, Summary,
};
use crate::limits::{KEY_BYTES_MAX, SNAPSHOT_BLOCK_BYTES_MAX};

/// Why a snapshot cannot be read. The text names the file, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{file} is not a snapshot of a store: it does not begin as one does")]
    NotOne { file: String },
    /// A newer version wrote it.
    #[error("{file} has format {found}, this version reads {FORMAT}; use the version that wrote it")]
    Newer { file: String, found: u32 },
    #[error("{file} is truncated: it ends at byte {at}, within {part}")]
    Truncated { file: String, part: String, at: u64 },
    #[error("{file} is damaged: {part}, which begins at byte {at}, {what}")]
    Damaged { file: String, part: String, at: u64, what: &'static str },
    #[error("{file} has more behind its end at byte {at}")]
    Longer { file: String, at: u64 },
    #[error("read {file}")]
    Io {
        file: String,
        #[source]
        cause: io::Error,
    },
}

/// Reads a snapshot: [`Decoder::read`] until there is nothing more, which says what it came to.
pub struct Decoder<R> {
    input: R,
    // What errors call it.
    file: String,
    head: Head,
    // Bytes read so far.
    at: u64,
    blocks: u64,
    last: Option<Key>,
    sum: Sum,
}

/// What comes next in a snapshot.
pub enum Next {
    /// At least one.
    Entries(Vec<Entry>),
    /// The snapshot is whole.
    End(Summary),
}

impl<R: Read> Decoder<R> {
    /// Reads the header of what errors call `file`.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn begin(input: R, file: impl Into<String>) -> Result<Decoder<R>, SnapshotError> {
        let head = Head { revision: Revision::FIRST, taken_ms: 0 };
        let (file, sum) = (file.into(), Sum::default());
        let mut decoder = Decoder { input, file, head, at: 0, blocks: 0, last: None, sum };
        decoder.read_head()?;
        Ok(decoder)
    }

    pub fn head(&self) -> Head {
        self.head
    }

    /// Keys so far.
    pub fn keys(&self) -> u64 {
        self.sum.keys()
    }

    /// The next entries, or the end; not to be asked again after that.
    ///
    /// # Errors
    /// [`SnapshotError`]: what was read before may be of a snapshot that is not whole.
    pub fn read(&mut self) -> Result<Next, SnapshotError> {
        let at = self.at;
        let part = format!("block {}", self.blocks + 1);
        let [tag] = self.array::<1>(&part)?;
        match tag {
            BLOCK => self.read_block(at, &part).map(Next::Entries),
            END => self.read_end(at).map(Next::End),
            _ => Err(self.damaged(&part, at, "does not begin as a block does")),
        }
    }

    fn read_head(&mut self) -> Result<(), SnapshotError> {
        let part = "the header";
        let magic = self.array::<8>(part);
        match magic {
            Ok(magic) if magic == *MAGIC => {}
            Ok(_) => return Err(SnapshotError::NotOne { file: self.file.clone() }),
            Err(error) => return Err(error),
        }
        let rest = self.array::<{ HEAD_BYTES - 8 }>(part)?;
        let found = u32::from_le_bytes(field(&rest, 0));
        if found > FORMAT {
            return Err(SnapshotError::Newer { file: self.file.clone(), found });
        }
        let mut whole = MAGIC.to_vec();
        whole.extend(&rest[..rest.len() - CHECKSUM_BYTES]);
        if checksum(0, &whole) != field(&rest, rest.len() - CHECKSUM_BYTES) {
            return Err(self.damaged(part, 0, "does not have the checksum it was written with"));
        }
        let revision = Revision::new(u64::from_le_bytes(field(&rest, 4)));
        let nothing = || self.damaged(part, 0, "has revision 0, which no store has");
        self.head =
            Head { revision: revision.ok_or_else(nothing)?, taken_ms: u64::from_le_bytes(field(&rest, 12)) };
        Ok(())
    }

    fn read_block(&mut self, at: u64, part: &str) -> Result<Vec<Entry>, SnapshotError> {
        let numbers = self.array::<{ BLOCK_HEAD_BYTES - 1 }>(part)?;
        let [count, plain_len, len] =
            [0, 4, 8].map(|offset| u32::from_le_bytes(field(&numbers, offset)) as usize);
        // Nothing is reserved for a length that cannot be true.
        if plain_len > SNAPSHOT_BLOCK_BYTES_MAX || len > plain_len || count == 0 {
            return Err(self.damaged(part, at, "has a length that no block has"));
        }
        let mut whole = vec![BLOCK];
        whole.extend(numbers);
        whole.resize(BLOCK_HEAD_BYTES + len, 0);
        self.fill(&mut whole[BLOCK_HEAD_BYTES..], part)?;
        let expected = self.array::<CHECKSUM_BYTES>(part)?;
        if checksum(self.blocks + 1, &whole) != expected {
            return Err(self.damaged(part, at, "does not have the checksum it was written with"));
        }
        let stored = &whole[BLOCK_HEAD_BYTES..];
        let malformed = |decoder: &Self| decoder.damaged(part, at, "does not hold keys and values in order");
        let plain = if len == plain_len {
            Bytes::copy_from_slice(stored)
        } else {
            let mut plain = vec![0; plain_len];
            let unpacked = lz4_flex::block::decompress_into(stored, &mut plain);
            if unpacked.ok() != Some(plain_len) {
                return Err(malformed(self));
            }
            plain.into()
        };
        let entries = entries(&plain, count).ok_or_else(|| malformed(self))?;
        for entry in &entries {
            if self.last.as_ref().is_some_and(|last| *last >= entry.key)
                || entry.revision > self.head.revision
            {
                return Err(malformed(self));
            }
            self.sum.add(entry.key.as_str(), &entry.value);
            self.last = Some(entry.key.clone());
        }
        self.blocks += 1;
        Ok(entries)
    }

    fn read_end(&mut self, at: u64) -> Result<Summary, SnapshotError> {
        let part = "the end";
        let mut whole = vec![END];
        whole.extend(self.array::<{ END_BYTES - 1 - CHECKSUM_BYTES }>(part)?);
        if checksum(self.blocks + 1, &whole) != self.array::<CHECKSUM_BYTES>(part)? {
            return Err(self.damaged(part, at, "does not have the checksum it was written with"));
        }
        let number = |offset| u64::from_le_bytes(field(&whole, offset));
        let (blocks, keys, bytes) = (number(1), number(9), number(17));
        let noted = Summary { keys, bytes, digest: Digest(field(&whole, 25)) };
        let found = std::mem::take(&mut self.sum).finish();
        if blocks != self.blocks || noted != found {
            return Err(self.damaged(part, at, "is of another content: digest or counts differ"));
        }
        let mut more = [0];
        match self.read_some(&mut more)? {
            0 => Ok(found),
            _ => Err(SnapshotError::Longer { file: self.file.clone(), at: self.at - 1 }),
        }
    }

    fn array<const N: usize>(&mut self, part: &str) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, part)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8], part: &str) -> Result<(), SnapshotError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_some(&mut bytes[filled..])? {
                0 => {
                    let (file, part) = (self.file.clone(), part.to_string());
                    return Err(SnapshotError::Truncated { file, part, at: self.at });
                }
                more => filled += more,
            }
        }
        Ok(())
    }

    fn read_some(&mut self, bytes: &mut [u8]) -> Result<usize, SnapshotError> {
        loop {
            match self.input.read(bytes) {
                Ok(read) => {
                    self.at += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(SnapshotError::Io { file: self.file.clone(), cause }),
            }
        }
    }

    fn damaged(&self, part: &str, at: u64, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged { file: self.file.clone(), part: part.to_string(), at, what }
    }
}

fn checksum(place: u64, bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    XxHash3_64::oneshot_with_seed(place, bytes).to_le_bytes()
}

/// The field at `offset`, which is there.
fn field<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes[offset..offset + N].try_into().expect("as many bytes")
}

/// The entries of a block; `None` when it holds anything else. Values share its memory.
fn entries(plain: &Bytes, count: usize) -> Option<Vec<Entry>> {
    // An entry has 17 bytes at least: a count that cannot be true reserves nothing.
    let mut entries = Vec::with_capacity(count.min(plain.len() / 17));
    let mut at = 0_usize;
    let mut take = |len: usize| {
        let range = at..at.checked_add(len)?;
        at = range.end;
        (range.end <= plain.len()).then_some(range)
    };
    for _ in 0..count {
        let flags = plain[take(1)?][0];
        let len = u32::from_le_bytes(plain[take(4)?].try_into().ok()?) as usize;
        if flags & !EXPIRES != 0 || len > KEY_BYTES_MAX {
            return None;
        }
        let key = Key::new(std::str::from_utf8(&plain[take(len)?]).ok()?);
        let revision = Revision::new(u64::from_le_bytes(plain[take(8)?].try_into().ok()?))?;
        let expires_ms = match flags {
            EXPIRES => Some(u64::from_le_bytes(plain[take(8)?].try_into().ok()?)),
            _ => None,
        };
        let len = u32::from_le_bytes(plain[take(4)?].try_into().ok()?) as usize;
        entries.push(Entry { key, revision, expires_ms, value: plain.slice(take(len)?) });
    }
    (at == plain.len()).then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Encoder;

    #[test]
    fn fuzz_snapshots() {
        let head = Head { revision: Revision::from_log(9), taken_ms: 5 };
        let entry = |key: &str, expires_ms| {
            let value = Bytes::from_static(b"value");
            Entry { key: Key::new(key), revision: Revision::from_log(3), expires_ms, value }
        };
        let (mut encoder, mut file) = Encoder::begin(head);
        file.extend(encoder.block(&[entry("/a", None), entry("/b", Some(7))]));
        file.extend(encoder.finish().0);
        // What is behind the checksums, which stand in the way of all damage: the content of a block.
        let plain = file[HEAD_BYTES + BLOCK_HEAD_BYTES..][..61].to_vec();
        let read = |file: &[u8]| -> Result<u64, SnapshotError> {
            let mut decoder = Decoder::begin(file, "file")?;
            loop {
                if let Next::End(summary) = decoder.read()? {
                    return Ok(summary.keys);
                }
            }
        };
        let corpus = forebay_fuzz::Corpus { inputs: &[&file, &plain], ..Default::default() };
        forebay_fuzz::run("snapshots", &corpus, |input| {
            // A block says how long it is, and has its place before it is inflated.
            forebay_fuzz::charged(SNAPSHOT_BLOCK_BYTES_MAX);
            let block =
                entries(&Bytes::copy_from_slice(input), usize::from(input.first().copied().unwrap_or(0)) + 2);
            let whole = read(input);
            assert!(whole.is_err() || input == file);
            (block.map(|entries| entries.len()), whole.map_err(|error| error.to_string().len() / 8).ok())
        });
    }
}
