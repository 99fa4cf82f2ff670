//! The witness: the newest revision that was acknowledged, written beside the store after each sync, not
//! synced itself.
//!
//! A commit takes one sync, so at start a damaged newest page looks like a commit that a crash tore, and redb
//! goes back to the commit before it. The witness tells the two apart: it is written when a commit is durable
//! and before it is acknowledged, so a store that ends below it has lost something. After a power cut the
//! witness may itself be older than the store, which proves nothing and harms nothing.
//!
//! In: revisions. Out: at start, the revision that the store must reach. `docs/formats/embedded.md` gives the
//! bytes.

use std::io;

use redb::StorageBackend;
use twox_hash::XxHash3_64;

const MAGIC: &[u8; 8] = b"FBWITN01";
const BYTES: usize = 40;

/// See the module's doc. Owner: the writer thread.
#[derive(Debug)]
pub(crate) struct Witness {
    disk: Box<dyn StorageBackend>,
    store_id: [u8; 16],
}

impl Witness {
    pub(crate) fn new(disk: Box<dyn StorageBackend>, store_id: [u8; 16]) -> Witness {
        Witness { disk, store_id }
    }

    /// The store and the revision last written for it; `None` when there is none, or it is not readable.
    pub(crate) fn peek(disk: &dyn StorageBackend) -> io::Result<Option<([u8; 16], u64)>> {
        let mut bytes = [0; BYTES];
        if disk.len()? < BYTES as u64 {
            return Ok(None);
        }
        disk.read(0, &mut bytes)?;
        let store_id = bytes[8..24].try_into().expect("16 bytes");
        let revision = u64::from_le_bytes(bytes[24..32].try_into().expect("8 bytes"));
        Ok((bytes == encode(store_id, revision)).then_some((store_id, revision)))
    }

    /// Whether there never was one here: not one that is damaged or another store's.
    pub(crate) fn is_absent(&self) -> io::Result<bool> {
        Ok(self.disk.len()? == 0)
    }

    /// The revision last written for this store.
    pub(crate) fn read(&self) -> io::Result<Option<u64>> {
        let found = Witness::peek(&*self.disk)?;
        Ok(found.filter(|(store_id, _)| *store_id == self.store_id).map(|(_, revision)| revision))
    }

    /// Says that everything up to `revision` is durable. Not synced: one write into the page cache.
    pub(crate) fn write(&self, revision: u64) -> io::Result<()> {
        if self.disk.len()? < BYTES as u64 {
            self.disk.set_len(BYTES as u64)?;
        }
        self.disk.write(0, &encode(self.store_id, revision))
    }

    /// Makes the last write durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.sync_data()
    }
}

fn encode(store_id: [u8; 16], revision: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..24].copy_from_slice(&store_id);
    bytes[24..32].copy_from_slice(&revision.to_le_bytes());
    let checksum = XxHash3_64::oneshot(&bytes[..32]);
    bytes[32..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Machine;

    #[test]
    fn only_a_whole_witness_of_this_store_counts() {
        let machine = Machine::new();
        let of = |id| Witness::new(Box::new(machine.file("witness")), [id; 16]);
        assert_eq!(of(1).read().expect("readable"), None);
        of(1).write(7).expect("writable");
        of(1).write(9).expect("writable");
        assert_eq!(of(1).read().expect("readable"), Some(9));
        assert_eq!(of(2).read().expect("readable"), None, "another store's");
        machine.damage("witness", |bytes| bytes[25] ^= 1);
        assert_eq!(of(1).read().expect("readable"), None, "damaged");
    }
}
