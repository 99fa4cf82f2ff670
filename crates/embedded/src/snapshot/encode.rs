//! The bytes of a snapshot file, made in order. Pure: whoever has them writes them.

use twox_hash::XxHash3_64;

use super::format::{BLOCK, END, EXPIRES, Entry, FORMAT, Head, MAGIC, Sum, Summary};

/// Makes a file piece by piece: [`Encoder::begin`], a block for each page, [`Encoder::finish`].
pub struct Encoder {
    // Blocks so far.
    blocks: u64,
    sum: Sum,
}

impl Encoder {
    /// The encoder, and what the file begins with.
    pub fn begin(head: Head) -> (Encoder, Vec<u8>) {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(FORMAT.to_le_bytes());
        out.extend(head.revision.get().to_le_bytes());
        out.extend(head.taken_ms.to_le_bytes());
        seal(0, &mut out);
        (Encoder { blocks: 0, sum: Sum::default() }, out)
    }

    /// The block of `entries`, which follow those before in key order. Cost: about 2 ms a MiB.
    pub fn block(&mut self, entries: &[Entry]) -> Vec<u8> {
        self.blocks += 1;
        let mut plain = Vec::new();
        for entry in entries {
            self.sum.add(entry.key.as_str(), &entry.value);
            put(entry, &mut plain);
        }
        let packed = lz4_flex::block::compress(&plain);
        // Stored as it is where compressing does not make it shorter.
        let stored = if packed.len() < plain.len() { &packed } else { &plain };
        let mut out = Vec::with_capacity(stored.len() + 32);
        out.push(BLOCK);
        for number in [entries.len(), plain.len(), stored.len()] {
            out.extend((number as u32).to_le_bytes());
        }
        out.extend(stored);
        seal(self.blocks, &mut out);
        out
    }

    /// What the file ends with, and what it comes to.
    pub fn finish(self) -> (Vec<u8>, Summary) {
        let summary = self.sum.finish();
        let mut out = vec![END];
        for number in [self.blocks, summary.keys, summary.bytes] {
            out.extend(number.to_le_bytes());
        }
        out.extend(summary.digest.0);
        seal(self.blocks + 1, &mut out);
        (out, summary)
    }

    /// Keys so far.
    pub fn keys(&self) -> u64 {
        self.sum.keys()
    }
}

fn put(entry: &Entry, out: &mut Vec<u8>) {
    let key = entry.key.as_str().as_bytes();
    out.push(if entry.expires_ms.is_some() { EXPIRES } else { 0 });
    out.extend((key.len() as u32).to_le_bytes());
    out.extend(key);
    out.extend(entry.revision.get().to_le_bytes());
    if let Some(expires_ms) = entry.expires_ms {
        out.extend(expires_ms.to_le_bytes());
    }
    out.extend((entry.value.len() as u32).to_le_bytes());
    out.extend(&entry.value);
}

/// The place of a part is the seed, so that a whole part in another one's place is noticed.
fn seal(place: u64, out: &mut Vec<u8>) {
    let checksum = XxHash3_64::oneshot_with_seed(place, out);
    out.extend(checksum.to_le_bytes());
}
